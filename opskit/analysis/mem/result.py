"""What is said about a process's memory: what ends its growth, what holds the most, how fast it grows. Sizes in bytes; None: unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.finding import Finding
    from opskit.collect.mem.facts import Facts
    from opskit.proc.cgroup.memory import MemoryGroup


class Growth(NamedTuple):
    """What else may grow: direct buffers, code cache, thread stacks, metaspace. `bytes` None: without a limit; `limit`: what limits it."""

    kind: str
    bytes: int | None
    limit: str | None


class Headroom(NamedTuple):
    """What is left until the kernel kills in `level` (None: until the machine is out of memory), and what the heap may still take.

    `left_bytes`: anon, shmem and kernel memory below the limit (page cache goes first). `heap_growth_bytes`: what the heap may still
    become resident up to its limit; None: no JVM, or unknown. `can_be_killed`: the heap alone does not fit; None: unknown, or no JVM.
    The fixes leave what the collector needs for a larger heap, and are rounded to the safe side: whole MiB, from 100 MiB tens of them.
    `unsure_bytes`: v1 does not tell how much of this kernel memory can be reclaimed; so much more may be left.
    `swap_left_bytes`: what may move to swap before the kernel kills. `others`: cgroups above or below with too little left as well.
    `throttled_in`: a cgroup whose memory.high is reached before the kill, `throttle_left_bytes` from now.
    `commit_left_bytes`: with vm.overcommit_memory=2; beyond it allocations fail.
    """

    level: MemoryGroup | None
    left_bytes: int | None
    heap_growth_bytes: int | None
    can_be_killed: bool | None
    fix_heap_bytes: int | None
    fix_limit_bytes: int | None
    growths: tuple[Growth, ...] = ()
    heap_resident_bytes: int | None = None
    unsure_bytes: int = 0
    swap_left_bytes: int = 0
    others: tuple[MemoryGroup, ...] = ()
    throttled_in: MemoryGroup | None = None
    throttle_left_bytes: int | None = None
    commit_left_bytes: int | None = None
    allocations_fail: bool = False  # the heap does not fit below the commit limit

    @property
    def all_left_bytes(self) -> int | None:
        """The same with swap."""
        return None if self.left_bytes is None else self.left_bytes + self.swap_left_bytes


class Suspect(NamedTuple):
    """What holds the memory, the most important first. `code`: the finding that it is, or would be if it grew or did not fit.

    `summary` is a sentence with the figures; `fix` and `next` are command lines of opskit.shell.
    """

    code: str
    bytes: int
    summary: str
    evidence: str
    fix: str | None = None
    next: str | None = None


class Slope(NamedTuple):
    """The growth of one row (a kind), or of `rss`, `cgroup`, `direct`. `full_in_s`: until a limit; None: it shrinks, or has no limit."""

    kind: str
    bytes_per_s: float
    full_in_s: float | None


class Result(NamedTuple):
    """The last look and what follows. `samples`: the looks of -w, the oldest first."""

    facts: Facts
    headroom: Headroom | None
    suspects: Sequence[Suspect]
    slopes: Sequence[Slope]
    findings: Sequence[Finding]
    samples: Sequence[Facts] = ()
