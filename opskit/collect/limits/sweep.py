"""Read the limits of the whole machine: of every cgroup on tasks and CPUs, of users, of the kernel. Not those of each process."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from opskit.proc.cgroup.limits import Throttling, pids_limit, quota_cpus, throttling
from opskit.proc.cgroup.sweep import all_cgroups
from opskit.proc.cgroup.tree import visible_levels
from opskit.proc.files.limits import UNLIMITED, is_nearly_full, parse_soft_limits
from opskit.proc.files.loadavg import parse_loadavg
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.namespaces import INITIAL, namespace
from opskit.proc.visibility import hides_processes
from opskit.quantities import integer
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
    """What to read: the cgroups above `pids`, or where there are none all and the limits of users and of the kernel. `window_s` 0: no rates."""

    pids: tuple[int, ...] = ()
    window_s: float = 1.0


class Members(NamedTuple):
    """The processes of a cgroup and those below it: how many, and the one with the most threads or CPU time."""

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


class QuotaUse(NamedTuple):
    """A cgroup whose CPU quota ran out in the window. `file` has the quota; `period_us` None: unknown."""

    path: str
    file: str
    version: int
    cpus: float
    period_us: int | None
    periods: int
    throttled_periods: int
    throttled_s: float | None
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
    """What was read. `cgroups`: how many with the pids or the cpu controller; `processes`: how many limits. `missing`: (what, why)."""

    ask: Request
    window_s: float
    cgroups: int
    processes: int
    tasks: tuple[TaskLimit, ...]
    quotas: tuple[QuotaUse, ...]
    users: tuple[UserTasks, ...]
    totals: tuple[Total, ...]
    missing: tuple[tuple[str, str], ...] = ()


def collect(host: Host, ask: Request) -> Facts:
    """Read the counters, what has none while the window passes, and the counters again."""
    missing: list[tuple[str, str]] = []
    cpu, pids = (_levels(host, ask, controller, missing) for controller in ("cpu", "pids"))
    begun_s = host.monotonic()
    quotas = [(level, cpus, throttling(host.fs, level)) for level in cpu if (cpus := quota_cpus(host.fs, level))]
    limits = [
        (level, found) for level in pids if (found := pids_limit(host.fs, level)) and found.limit_bytes is not None
    ]
    near = {level: _refused(host, level) for level, found in limits if is_nearly_full(found.limit, found.usage)}
    processes, users, totals = (len(ask.pids), (), ()) if ask.pids else (*_users(host), _totals(host))
    window_s = 0.0
    used: list[QuotaUse] = []
    if (quotas or near) and ask.window_s:
        host.sleep(max(0.0, begun_s + ask.window_s - host.monotonic()))
        window_s = host.monotonic() - begun_s
        used = [use for quota in quotas if (use := _quota_use(host, *quota, cpu))]
    if quotas and not ask.window_s:
        missing.append(("throttling by CPU quotas", "a copy has no rates"))
    tasks = [task for level, before in near.items() if (task := _task_limit(host, level, before, pids, window_s))]
    paths = {level.path for level in (*cpu, *pids)}
    return Facts(ask, window_s, len(paths), processes, tuple(tasks), tuple(used), users, totals, tuple(missing))


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


def _levels(host: Host, ask: Request, controller: str, missing: list[tuple[str, str]]) -> Sequence[Level]:
    if not ask.pids:
        return all_cgroups(host.fs, controller)
    found: dict[str, Level] = {}
    for pid in ask.pids:
        levels, unknown = visible_levels(host.fs, pid, controller)
        found.update({level.path: level for level in levels})
        if unknown and "are not visible" not in unknown:
            missing.append((f"the {controller} limits of some cgroups above {pid}", unknown))
    return [*found.values()]


def _refused(host: Host, level: Level) -> int | None:
    return level.table(host.fs, "pids.events").get("max")


def _quota_use(host: Host, level: Level, cpus: float, before: Throttling, all_: Sequence[Level]) -> QuotaUse | None:
    now = throttling(host.fs, level)
    if now.periods is None or before.periods is None:
        return None
    throttled = (now.throttled_periods or 0) - (before.throttled_periods or 0)
    if throttled <= 0:
        return None
    known = now.throttled_s is not None and before.throttled_s is not None
    throttled_s = (now.throttled_s or 0.0) - (before.throttled_s or 0.0) if known else None
    if level.version == 1:
        file, period_us = "cpu.cfs_quota_us", level.number(host.fs, "cpu.cfs_period_us")
    else:
        file, (_, _, period) = "cpu.max", (level.load(host.fs, "cpu.max") or "").partition(" ")
        period_us = integer(period)
    return QuotaUse(
        level.path, f"{level.directory}/{file}", level.version, cpus, period_us, now.periods - before.periods,
        throttled, throttled_s, _members(host, level, all_, by_cpu=True),
    )  # fmt: skip


def _named(host: Host, pid: int) -> Named:
    from opskit.collect.process_names import name_process

    return name_process(host, pid)


def _members(host: Host, level: Level, all_: Iterable[Level], *, by_cpu: bool = False) -> Members:
    """Those of a cgroup: the PIDs in it and below."""
    below = f"{level.path.rstrip('/')}/"
    pids: dict[int, None] = {}
    for each in all_:
        if each.path == level.path or each.path.startswith(below):
            words = (each.load(host.fs, "cgroup.procs") or "").split()
            pids.update(dict.fromkeys(pid for word in words if (pid := integer(word))))  # 0: of another PID namespace
    best: tuple[int, int] | None = None
    for pid in [*pids][:_MOST_MEMBERS]:
        stat = host.fs.maybe(parse_stat, pid, "stat")
        if stat is not None:
            weight = stat.user_ticks + stat.system_ticks if by_cpu else stat.threads
            best = max(best or (weight, -pid), (weight, -pid))
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
