"""Read the memory cgroups that have a limit: of the whole machine, or those of some processes."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from opskit.proc.cgroup.limits import memory_limit_of
from opskit.proc.cgroup.memory import MemoryGroup, memory_groups, read_limit
from opskit.proc.cgroup.sweep import all_cgroups
from opskit.proc.cgroup.tree import MOST_CGROUPS, visible_levels
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.namespaces import in_initial
from opskit.proc.process import command_name
from opskit.quantities import plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.host import Host
    from opskit.proc.cgroup.tree import Level
    from opskit.proc.fs import ProcFS

_WORTH_A_LOOK = 0.85  # of the limit, page cache too; below it a cgroup is not near its limit
_MOST_MEMBERS = 200


class Holder(NamedTuple):
    """The process of a cgroup with the most anonymous and shared memory."""

    pid: int
    command: str
    bytes: int
    start_ticks: int | None = None


class LimitedGroup(NamedTuple):
    """A cgroup whose use is not far below a limit. `holder`: None where it has no process that can be read. `chain`: the paths above it.

    `is_outside`: its processes may be outside of opskit's PID namespace.
    """

    group: MemoryGroup
    holder: Holder | None
    chain: tuple[str, ...] = ()
    is_outside: bool = False


class GroupFacts(NamedTuple):
    """`looked_at`: cgroups; `limited`: those of them that have a limit; `near`: those whose use is not far below it.

    `swap_free_bytes`: of the machine. `missing`: what is unknown, and why.
    """

    looked_at: int
    limited: int
    near: tuple[LimitedGroup, ...]
    swap_free_bytes: int
    missing: tuple[tuple[str, str], ...] = ()


def collect_groups(host: Host, pids: Sequence[int], swap_free_bytes: int) -> GroupFacts:
    """One look at all cgroups; with `pids` at those of these processes and above."""
    fs = host.fs
    missing: list[tuple[str, str]] = []
    levels: tuple[Level, ...]
    if pids:
        found: dict[str, Level] = {}
        for pid in pids:
            own, why = visible_levels(fs, pid, "memory")
            found.update((level.path, level) for level in own)
            if why is not None and not own:
                missing.append((f"the memory limits of {pid}", why))
        levels = tuple(found.values())
    else:
        levels = all_cgroups(fs, "memory")
        if len(levels) >= MOST_CGROUPS:
            missing.append(("memory limits", f"there are more than {plural(MOST_CGROUPS, 'cgroup')}"))
    limited = [level for level in levels if _has_limit(fs, level)]
    near = [level for level in limited if _may_be_near(fs, level)]
    is_outside = in_initial(fs, "pid") is False
    groups = ((level, memory_groups(fs, (level,))) for level in near)
    return GroupFacts(
        len(levels),
        len(limited),
        tuple(LimitedGroup(read[0], _holder(host, level), _above(level), is_outside) for level, read in groups if read),
        swap_free_bytes,
        tuple(missing),
    )


def _has_limit(fs: ProcFS, level: Level) -> bool:
    found = memory_limit_of(fs, level)
    if found is not None and found.limit_bytes is not None:
        return True
    return level.version == 2 and read_limit(fs, level, "memory.high") is not None


def _may_be_near(fs: ProcFS, level: Level) -> bool:
    found = memory_limit_of(fs, level)
    if found is None or found.usage is None:
        return False
    high = read_limit(fs, level, "memory.high") if level.version == 2 else None
    limits = [limit for limit in (found.limit_bytes, high) if limit is not None]
    return bool(limits) and found.usage >= _WORTH_A_LOOK * min(limits)


def _above(level: Level) -> tuple[str, ...]:
    parts = level.path.strip("/").split("/")
    return tuple("/" + "/".join(parts[:end]) for end in range(1, len(parts)))


def _holder(host: Host, level: Level) -> Holder | None:
    """Of the cgroup's processes and those of the cgroups below it."""
    fs = host.fs
    members = []
    for pid in islice((pid for each in level.with_those_below(fs) for pid in each.pids(fs)), _MOST_MEMBERS):
        status = fs.maybe(parse_status, pid, "status")
        if status is not None:
            held = (status.bytes_of("RssAnon") or status.bytes_of("VmRSS") or 0) + (status.bytes_of("RssShmem") or 0)
            members.append((held, pid))
    if not members:
        return None
    held, pid = max(members)
    stat = fs.maybe(parse_stat, pid, "stat")
    return Holder(pid, command_name(fs, pid), held, stat and stat.start_ticks)
