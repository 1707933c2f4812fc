"""What an async-profiler that the user has recorded inside a JVM: the request and the facts of a run."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Literal

from opskit.collect.cpu_profile import DEFAULT_HZ, StackKey
from opskit.jvm.profiles import parse_folded
from opskit.proc.unwind.cursor import Frame
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.collect.cpu_profile import CpuProfile
    from opskit.proc.unwind.cursor import End, FrameKind

# What is sampled. ctimer: CPU time, by a timer of each thread; cpu: by perf events where the JVM may use them, with kernel
# frames; wall: all threads, running or not; alloc: bytes allocated; lock: nanoseconds waited for monitors and locks.
Event = Literal["ctimer", "cpu", "wall", "alloc", "lock"]
Unit = Literal["samples", "bytes", "ns"]
UNITS: dict[Event, Unit] = {"ctimer": "samples", "cpu": "samples", "wall": "samples", "alloc": "bytes", "lock": "ns"}


class AsprofRequest(NamedTuple):
    """A run. `library`: of find_library(); `hz`: of ctimer, cpu and wall."""

    pid: int
    library: str
    event: Event = "ctimer"
    hz: float = DEFAULT_HZ
    duration_s: float = 10.0


class AsprofProfile(NamedTuple):
    """The facts of a run. `profile.stacks` are weighed in `unit`, the root frame is not the thread.

    `event`: what ran, which is `cpu` where the library has no ctimer. `version` None: the library does not name it. `stays`: sentences about
    what remains in the JVM until it ends. `notes`: what the profiler itself warned of.
    """

    profile: CpuProfile
    event: Event
    unit: Unit
    library: str
    version: str | None
    stays: tuple[str, ...]
    notes: tuple[str, ...] = ()


_KINDS: dict[str, FrameKind] = {
    "_[j]": "compiled", "_[i]": "inlined", "_[0]": "interpreted", "_[1]": "c1", "_[k]": "kernel",
}  # fmt: skip
_THREAD = re.compile(r"\[(?:(.*) )?tid=([0-9]{1,10})\]", re.DOTALL)
# What async-profiler writes in place of frames that it could not find: [unknown_Java], [not_walkable_not_Java], …
_FAILED = re.compile(r"\[(?:[a-z]+_)+[A-Za-z]+\]")
_THREAD_END = re.compile(r"tid=[0-9]{1,10}\]$")
_MOST_PARTS = 64  # of a thread's name with semicolons or line breaks


class Stacks(NamedTuple):
    """Collapsed stacks by thread. `names`: of threads, by TID. `ends`: the weight of complete and of incomplete stacks."""

    stacks: Counter[StackKey]
    names: dict[int, str]
    ends: Counter[End]


def read_stacks(text: str, source: str, per_sample: int = 1) -> Stacks:
    """Read what it writes with `collapsed,threads,ann,dot`: the thread first, marks behind Java methods. Raises BadInput.

    `per_sample`: how much a sample stands for in the unit of the counts.
    """
    found = Stacks(Counter(), {}, Counter())
    frames: dict[str, Frame] = {}
    for stack in parse_folded(_whole_lines(text), source):
        names = stack.frames
        thread, depth = _thread_of(names)
        depth = depth if thread else 0
        for name in names:
            if name not in frames:
                frames[name] = _frame(name)
        tid = 0 if thread is None else integer(thread[2]) or 0
        if thread is not None:
            found.names[tid] = thread[1] or ""
        key = StackKey(tid, None, tuple(frames[name] for name in names[: len(names) - depth]))
        weight = max(1, round(stack.samples / per_sample))
        found.stacks[key] += weight
        found.ends["torn" if any(map(_FAILED.fullmatch, names)) else "root"] += weight
    return found


def _whole_lines(text: str) -> str:
    """Join the lines that a thread's name with line breaks was cut into: only the last one has a count."""
    lines: list[str] = []
    parts: list[str] = []
    for line in text.split("\n"):
        parts.append(line)
        stack, _, count = line.rpartition(" ")
        if stack.strip() and integer(count) is not None:
            lines.append(" ".join(parts))
        elif len(parts) < _MOST_PARTS:
            continue
        parts.clear()
    return "\n".join(lines)


def _thread_of(frames: tuple[str, ...]) -> tuple[re.Match[str] | None, int]:
    """The thread, and how many of the outermost frames are parts of its name: it may contain semicolons."""
    for depth in range(1, min(len(frames), _MOST_PARTS) + 1):
        found = _THREAD_END.search(frames[-depth])
        if found:
            return _THREAD.fullmatch(";".join(frames[: -depth - 1 : -1])), depth
    return None, 0


def _frame(name: str) -> Frame:
    kind = _KINDS.get(name[-4:])
    return Frame(name, "native") if kind is None else Frame(name[:-4], kind)
