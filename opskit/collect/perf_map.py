"""Profile a JVM by frame pointers: what it needs, and a target whose Java frames are named by a perf map."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from opskit.collect.cpu_target import CpuTarget
from opskit.errors import NotSupported
from opskit.jvm.memory.flags import read_flags
from opskit.jvm.memory.vmstructs import read_vmstructs
from opskit.jvm.unwind.frame_pointers import INTERPRETER, CompiledCode, FramePointers, named_later
from opskit.proc.memory import ProcessMemory
from opskit.proc.unwind.native import NativeUnwinder
from opskit.proc.unwind.perf_map import parse_perf_map

if TYPE_CHECKING:
    from opskit.collect.cpu_profile import CpuProfile, StackKey
    from opskit.host import Host
    from opskit.jvm.attach.client import AttachClient

FIRST_JDK = 17  # Compiler.perfmap (JDK-8254723)
FLAG = "PreserveFramePointer"
_MISSING = (
    f"interpreted methods have no names in a perf map: they are shown as {INTERPRETER}",
    "inlined methods are shown as the method that they were compiled into",
)


def check_can_follow(host: Host, client: AttachClient) -> None:
    """Raise NotSupported unless a JVM keeps frame pointers and can write a perf map."""
    target = client.target
    if not _keeps_frame_pointers(host, client):
        raise NotSupported(
            f"--sampler perf-map: {target.who} runs without -XX:+{FLAG}, and its compiled code has no frame pointers to "
            "follow; start it with that option, or use --sampler unwind, which needs none"
        )
    if target.java_major is not None and target.java_major < FIRST_JDK:
        raise NotSupported(
            f"--sampler perf-map: {target.who} is JDK {target.java_major}, which cannot write a perf map (JDK {FIRST_JDK} and "
            "later can); use --sampler unwind, which needs none"
        )


def _keeps_frame_pointers(host: Host, client: AttachClient) -> bool:
    """By the flag in the JVM's memory; where that cannot be read, by asking the JVM."""
    try:
        memory = ProcessMemory(host.fs, client.pid)
    except OSError:
        memory = None
    if memory is not None:
        try:
            found = read_flags(read_vmstructs(host.fs, client.pid, memory), memory, (FLAG,))
        except (NotSupported, OSError):
            found = {}
        finally:
            memory.close()
        if FLAG in found:
            return found[FLAG] is True
    flags = client.jcmd("VM.flags -all").split("\n")
    return any(words[1:4] == [FLAG, "=", "true"] for words in map(str.split, flags))


class PerfMapTarget(CpuTarget):
    """A JVM whose Java frames are found by frame pointers, and named by the map."""

    def __init__(self, host: Host, pid: int, data: bytes) -> None:
        """Raise OSError where its memory cannot be read."""
        self._code = CompiledCode(parse_perf_map(data))
        super().__init__(host, pid)

    def _look_for_jvm(self) -> None:
        super()._look_for_jvm()  # it also names the threads
        self._unwinders = [FramePointers(self._modules, self._code), NativeUnwinder(self._modules)]
        self.missing, self.debug_non_safepoints = _MISSING, None


def with_later_names(profile: CpuProfile, data: bytes) -> CpuProfile:
    """Name the code that was compiled during the run, by a map from its end."""
    code = CompiledCode(parse_perf_map(data))
    stacks: Counter[StackKey] = Counter()
    for key, count in profile.stacks.items():
        stacks[key._replace(frames=tuple(named_later(frame, code) for frame in key.frames))] += count
    return profile._replace(stacks=stacks)
