"""What is known of a process while it is sampled: how to unwind its stacks, and the names of its frames and threads."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from opskit.errors import NotSupported, OpskitError
from opskit.proc.files.kallsyms import KernelSymbols
from opskit.proc.memory import ProcessMemory
from opskit.proc.thread_names import thread_name
from opskit.proc.unwind.cursor import Frame
from opskit.proc.unwind.modules import Modules
from opskit.proc.unwind.native import NativeUnwinder
from opskit.proc.unwind.walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.host import Host
    from opskit.jvm.memory.threads import JavaThreads
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.jvm.unwind.java import JavaUnwinder
    from opskit.proc.fs import ProcFS
    from opskit.proc.kernel.cpu_samples import Sample
    from opskit.proc.unwind.cursor import Stack, Unwinder

UNKNOWN_KERNEL = "[kernel]"
NO_JAVA = "Java frames are missing"  # then thread dumps say more
_PRECISE = "DebugNonSafepoints"


class Target(Protocol):
    """A sampled process. `debug_non_safepoints`: whether the JVM has the flag on; None: not a JVM, or unknown.

    `missing`: sentences about what cannot be read.
    """

    debug_non_safepoints: bool | None
    missing: tuple[str, ...]

    def walk(self, sample: Sample) -> Stack:
        """The frames of a sample."""

    def refresh(self) -> None:
        """Read the process's memory and mappings anew from now on; called once per drain."""

    def thread_name(self, tid: int) -> str | None:
        """The full name of a thread by its TID as the process sees it; None where only the kernel names it."""

    def close(self) -> None:
        """Free what is open."""


class CpuTarget:
    """A process of this machine: native code, and Java code where it is a HotSpot JVM."""

    def __init__(self, host: Host, pid: int) -> None:
        """Raise OSError where its memory cannot be read."""
        self.debug_non_safepoints: bool | None = None
        self.missing: tuple[str, ...] = ()
        self._fs, self._pid = host.fs, pid
        self._memory = ProcessMemory(host.fs, pid)
        self._modules = Modules(host.fs, pid, self._memory)
        self._unwinders: Sequence[Unwinder] = ()
        self._jvm: _Jvm | None = None
        self._drains, self._next_look = 0, 1
        self._kernel: KernelSymbols | None = None
        self._kernel_frames: dict[int, Frame] = {}
        self._look_for_jvm()

    def walk(self, sample: Sample) -> Stack:
        """The frames of a sample."""
        kernel = [self._kernel_frame(pc) for pc in sample.kernel] if sample.kernel else ()
        return walk(sample.registers, sample.stack, self._unwinders, kernel)

    def refresh(self) -> None:
        """Read the process's memory and mappings anew from now on; called once per drain."""
        self._memory.forget()
        self._modules.forget()
        if self._jvm is not None:
            self._jvm.forget()
            return
        self._drains += 1
        if self._drains >= self._next_look:  # a JVM that is starting has no tables yet
            self._next_look *= 2
            self._look_for_jvm()

    def thread_name(self, tid: int) -> str | None:
        """The full name of a Java thread by its TID as the JVM sees it; None for other threads."""
        return self._jvm.threads.name(tid) if self._jvm is not None and self._jvm.threads is not None else None

    def close(self) -> None:
        """Close the process's memory."""
        self._memory.close()

    def _look_for_jvm(self) -> None:
        """Find HotSpot's tables."""
        self._unwinders = [NativeUnwinder(self._modules, anonymous=True)]
        if not self._fs.maybe(_maps_libjvm, self._pid, "maps"):
            return
        try:
            self._jvm = _Jvm(self._fs, self._pid, self._memory)
        except (OpskitError, OSError) as error:
            self.missing = (f"{NO_JAVA}: {error}",)
            return
        self._unwinders = [*self._jvm.unwinders, NativeUnwinder(self._modules)]
        self.missing, self.debug_non_safepoints = self._jvm.missing, self._jvm.debug_non_safepoints

    def _kernel_frame(self, pc: int) -> Frame:
        frame = self._kernel_frames.get(pc)
        if frame is None:
            if self._kernel is None:
                self._kernel = self._fs.maybe(KernelSymbols, "kallsyms", default=KernelSymbols())
            frame = self._kernel_frames[pc] = Frame(self._kernel.name(pc) or UNKNOWN_KERNEL, "kernel")
        return frame


class _Jvm:
    """What HotSpot's tables describe of one JVM. `threads` None: they do not describe the threads."""

    def __init__(self, fs: ProcFS, pid: int, memory: ProcessMemory) -> None:
        """Raise NotSupported where the tables do not describe the code, OSError without rights."""
        from opskit.jvm.memory.flags import read_flags
        from opskit.jvm.memory.vmstructs import read_vmstructs
        from opskit.jvm.unwind.java import java_unwinder

        self._fs, self._pid = fs, pid
        structs = read_vmstructs(fs, pid, memory)
        java = java_unwinder(structs, memory)
        self.unwinders: list[Unwinder] = [java]
        self.threads: JavaThreads | None = None
        self.missing: tuple[str, ...] = ()
        self._forget: list[Callable[[], None]] = [java.forget]
        self.debug_non_safepoints = None
        try:
            found = read_flags(structs, memory, (_PRECISE,)).get(_PRECISE)
            self.debug_non_safepoints = found if isinstance(found, bool) else None
            self._read_objects(structs, memory, java)
        except NotSupported as error:
            self.missing = (f"Names of Java threads are missing: {error}",)

    def forget(self) -> None:
        """Compare what is known with the memory before its next use."""
        for each in self._forget:
            each()

    def _comm(self, tid: int) -> str | None:
        return thread_name(self._fs, self._pid, tid)

    def _read_objects(self, structs: VmStructs, memory: ProcessMemory, java: JavaUnwinder) -> None:
        from opskit.jvm.memory.objects import Objects
        from opskit.jvm.memory.threads import JavaThreads
        from opskit.jvm.unwind.virtual import VirtualThreads

        objects = Objects(structs, memory)
        self.threads = JavaThreads(structs, memory, objects, self._comm)
        self._forget.append(self.threads.forget)
        with suppress(NotSupported):  # before JDK 21
            virtual = VirtualThreads(structs, objects, java)
            self.unwinders.insert(0, virtual)
            self._forget.append(virtual.forget)


def _maps_libjvm(maps: str) -> bool:
    return "/libjvm.so" in maps
