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
    become resident up to its limit; None: no JVM, or unknown. `can_be_killed`: the heap alone does not fit. The fixes are rounded to MiB.
    """

    level: MemoryGroup | None
    left_bytes: int | None
    heap_growth_bytes: int | None
    can_be_killed: bool | None
    fix_heap_bytes: int | None
    fix_limit_bytes: int | None
    growths: tuple[Growth, ...] = ()


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
