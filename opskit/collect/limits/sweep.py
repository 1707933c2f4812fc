"""Read the limits of the whole machine: of every cgroup on tasks, of users, of the kernel."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from opskit.proc.cgroup.limits import pids_limit
from opskit.proc.cgroup.sweep import all_cgroups
from opskit.proc.cgroup.tree import is_at_or_below
from opskit.proc.files.limits import UNLIMITED, is_nearly_full, parse_soft_limits
from opskit.proc.files.loadavg import parse_loadavg
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.namespaces import INITIAL, namespace
from opskit.proc.visibility import hides_processes
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opskit.collect.process_names import Named
    from opskit.host import Host
    from opskit.proc.cgroup.tree import Level
    from opskit.proc.files.status import Status

_MOST_MEMBERS = 500  # of a cgroup, among which the largest is looked for
_RESOURCE, _ADMIN = 1 << 24, 1 << 21  # CAP_SYS_RESOURCE, CAP_SYS_ADMIN
_RESERVED_PIDS = 300


class Request(NamedTuple):
    """What to read. `window_s` 0: no rates."""

    window_s: float = 1.0


class Members(NamedTuple):
    """The processes of a cgroup and those below it: how many, and the one with the most threads."""

    processes: int
    main: Named | None


class TaskLimit(NamedTuple):
    """A cgroup's nearly full pids.max. `refused`: in the window; None: unknown. `refused_before`: since it was made."""

    path: str
    file: str
    limit: int
    used: int
    refused: int | None
    refused_before: int | None
    members: Members


class UserTasks(NamedTuple):
    """A user whose threads nearly use up RLIMIT_NPROC of some of its processes; `largest` of these."""

    uid: int
    user: str
    limit: int
    threads: int
    largest: Named


class Total(NamedTuple):
    """A limit of the kernel on all tasks that is nearly used up, and how many there are."""

    name: str
    limit: int
    used: int


class Facts(NamedTuple):
    """What was read. `cgroups`: how many with the pids controller; `processes`: how many limits."""

    ask: Request
    window_s: float
    cgroups: int
    processes: int
    tasks: tuple[TaskLimit, ...]
    users: tuple[UserTasks, ...]
    totals: tuple[Total, ...]


def collect(host: Host, ask: Request) -> Facts:
    """Read the counters, what has none while the window passes, and the counters again."""
    pids = all_cgroups(host.fs, "pids")
    begun_s = host.monotonic()
    limits = [
        (level, found) for level in pids if (found := pids_limit(host.fs, level)) and found.limit_bytes is not None
    ]
    near = {level: _refused(host, level) for level, found in limits if is_nearly_full(found.limit, found.usage)}
    (processes, users), totals = _users(host), _totals(host)
    window_s = 0.0
    if near and ask.window_s:
        host.sleep(max(0.0, begun_s + ask.window_s - host.monotonic()))
        window_s = host.monotonic() - begun_s
    tasks = [task for level, before in near.items() if (task := _task_limit(host, level, before, pids, window_s))]
    return Facts(ask, window_s, len(pids), processes, tuple(tasks), users, totals)


def _task_limit(
    host: Host, level: Level, before: int | None, all_: Sequence[Level], window_s: float
) -> TaskLimit | None:
    """A cgroup's limit at the end of the window; None where it is gone, or was raised."""
    now, refused = pids_limit(host.fs, level), _refused(host, level)
    gained = refused - before if window_s and refused is not None and before is not None else None
    if now is None or now.limit_bytes is None or now.usage is None:
        return None
    members = _members(host, level, all_)
    return TaskLimit(level.path, now.file, now.limit_bytes, now.usage, gained, before, members)


def _refused(host: Host, level: Level) -> int | None:
    return level.table(host.fs, "pids.events").get("max")


def _named(host: Host, pid: int) -> Named:
    from opskit.collect.process_names import name_process

    return name_process(host, pid)


def _members(host: Host, level: Level, all_: Iterable[Level]) -> Members:
    """Those of a cgroup: the PIDs in it and below."""
    groups = (each for each in all_ if is_at_or_below(each.path, level.path))
    pids = dict.fromkeys(pid for each in groups for pid in each.pids(host.fs))
    best: tuple[int, int] | None = None
    for pid in [*pids][:_MOST_MEMBERS]:
        stat = host.fs.maybe(parse_stat, pid, "stat")
        if stat is not None:
            best = max(best or (0, 0), (stat.threads, -pid))
    return Members(len(pids), best and _named(host, -best[1]))


def _totals(host: Host) -> tuple[Total, ...]:
    load, most = host.fs.maybe(parse_loadavg, "loadavg"), host.sysctl("kernel", "threads-max")
    if load is None:
        return ()
    found = [] if most is None else [Total("kernel.threads-max", most, load.tasks)]
    pid_max = host.sysctl("kernel", "pid_max")
    if pid_max is not None and (namespace(host.fs, 1, "pid") or INITIAL["pid"]) == INITIAL["pid"]:
        found.append(Total("kernel.pid_max", pid_max - _RESERVED_PIDS, load.tasks))
    return tuple(total for total in found if is_nearly_full(total.limit, total.used))


def _users(host: Host) -> tuple[int, tuple[UserTasks, ...]]:
    """How many processes have a limit, and each user that may reach one. Threads are counted only where a limit is near the number of all tasks."""
    fs = host.fs
    load = fs.maybe(parse_loadavg, "loadavg")
    limits = {pid: soft.processes for pid in fs.pids() if (soft := fs.maybe(parse_soft_limits, pid, "limits"))}
    low = {pid: limit for pid, limit in limits.items() if limit != UNLIMITED}
    if load is None or hides_processes(fs) or not any(is_nearly_full(limit, load.tasks) for limit in low.values()):
        return len(limits), ()
    status = {pid: one for pid in limits if (one := fs.maybe(parse_status, pid, "status"))}
    threads: Counter[int] = Counter()
    for each in status.values():
        threads[each.real_uid] += each.threads or 1
    near = {
        pid: limit for pid, limit in low.items()
        if pid in status and is_nearly_full(limit, threads[status[pid].real_uid]) and not _is_exempt(status[pid])
    }  # fmt: skip
    found: dict[int, UserTasks] = {}
    for pid, limit in sorted(near.items(), key=lambda item: (item[1], -(status[item[0]].threads or 1))):
        uid, space = status[pid].real_uid, namespace(fs, pid, "user")
        if uid not in found:
            # Since Linux 5.14 each user namespace has counts of its own.
            used = sum(
                each.threads or 1 for other, each in status.items()
                if each.real_uid == uid and namespace(fs, other, "user") in (None, space)
            )  # fmt: skip
            if is_nearly_full(limit, used):
                found[uid] = UserTasks(uid, host.user_name(uid), int(limit), used, _named(host, pid))
    return len(limits), tuple(found.values())


def _is_exempt(status: Status) -> bool:
    """Whether RLIMIT_NPROC does not hold: for root and for two capabilities (kernel/fork.c)."""
    return status.real_uid == 0 or bool((status.mask("CapEff") or 0) & (_RESOURCE | _ADMIN))
