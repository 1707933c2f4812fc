"""Profile what a process runs on the CPUs: perf events, unwound from outside by reading its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.proc.unwind.cursor import End, Frame

# Events of every CPU (needs CAP_PERFMON), or of the process's threads only (as its owner, without the kernel's frames).
Scope = Literal["cpus", "threads"]


class StackKey(NamedTuple):
    """What samples are counted by. `virtual`: the virtual thread that ran on the thread; `tid`: as the process sees it."""

    tid: int
    virtual: str | None
    frames: tuple[Frame, ...]


class ThreadOnCpu(NamedTuple):
    """A thread during the run. `name`: full where the JVM tells; `cpu_ms`, `waited_ms`: by schedstat, None: unknown."""

    name: str
    cpu_ms: float | None
    waited_ms: float | None
    samples: int


class CpuProfile(NamedTuple):
    """The samples of one run. `threads`: by TID as the process sees it, also those that ended.

    `lost`: samples that the kernel dropped. `ends`: how many walks ended how. `cpu_ms`: of the whole process.
    `kernel_seen`: whether the kernel's frames could be sampled. `debug_non_safepoints`, None: not a JVM, or unknown.
    `missing`: sentences about what could not be read. `ended`: why the run ended early.
    """

    pid: int
    start_ticks: int | None
    name: str
    hz: float
    elapsed_s: float
    threads: Mapping[int, ThreadOnCpu]
    stacks: Mapping[StackKey, int]
    lost: int
    ends: Mapping[End, int]
    cpu_ms: float | None
    scope: Scope
    kernel_seen: bool
    debug_non_safepoints: bool | None = None
    missing: tuple[str, ...] = ()
    ended: Literal["interrupted", "exited"] | None = None

    @property
    def samples(self) -> int:
        """All samples of the process that were received."""
        return sum(self.stacks.values())
