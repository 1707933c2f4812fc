"""A quick look for OOM kills: the running kernel's log, and the counters over a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.cgroup.limits import oom_kills
from opskit.proc.cgroup.sweep import cgroups_of
from opskit.proc.cgroup.tree import controller_root, is_at_or_below
from opskit.proc.files.boot_time import parse_uptime
from opskit.proc.files.vmstat import parse_vmstat
from opskit.proc.fs import DENIED
from opskit.proc.namespaces import in_initial
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.host import Host
    from opskit.proc.cgroup.tree import Level
    from opskit.proc.fs import ProcFS

_DRIFT = 1e-4  # of the log's clock, which nobody adjusts
_SLEPT_S = 30.0  # the clocks with and without suspend differ by less where the machine never slept


class QuickKill(NamedTuple):
    """A kill. `cgroup`: the one at its limit; None: the machine's memory. `own`: the victim's. None: unknown.

    `is_gone`: not even the slice of the cgroup exists, or it was in another PID namespace: nobody waits for it.
    """

    pid: int | None
    name: str
    cgroup: str | None
    own: str | None
    ago_s: float | None
    is_gone: bool = False


class Quick(NamedTuple):
    """One look. `counted`: kills since boot, or since the cgroups were made, `gained`: in the window; None: not counted.

    `paths`: the cgroups of the processes that were asked about, None: of the machine. `source`: the log that was read; None: the
    counters show no kill, or `unread` says why. `drift_s`: how far the times of kills may be off: the log has a clock of its own.
    """

    kills: tuple[QuickKill, ...]
    counted: int | None
    gained: int | None
    window_s: float
    paths: frozenset[str] | None = None
    source: str | None = None
    unread: str | None = None
    drift_s: float = 0.0


def collect_quick(host: Host, window_s: float, pids: Sequence[int] = ()) -> Quick:
    """Look at the end of a window. A copy has no counters that move."""
    before = _count(host, pids)
    begun_s = host.monotonic()
    host.sleep(window_s)
    after = _count(host, pids)
    elapsed_s = host.monotonic() - begun_s
    paths = frozenset(after) if pids else None
    if not after:
        return _with_log(host, Quick((), None, None, elapsed_s, paths))
    gained = sum(max(0, number - before.get(path, number)) for path, number in after.items())
    quick = Quick((), max(after.values()), gained, elapsed_s, paths)
    return _with_log(host, quick) if quick.counted else quick


def _count(host: Host, pids: Sequence[int]) -> Mapping[str, int]:
    """Kills by cgroup of these processes; without processes of the machine, by `/`. Empty: not counted."""
    if not pids:
        counted = host.fs.maybe(parse_vmstat, "vmstat", default={}).get("oom_kill")
        return {} if counted is None else {"/": counted}
    found = oom_kills(host.fs, cgroups_of(host.fs, pids, "memory"))
    return {path: number for path, number in found.items() if path != "/"}


def _with_log(host: Host, quick: Quick) -> Quick:
    if not host.is_own:
        return quick._replace(unread="it belongs to another PID namespace")
    from opskit.collect.kernel_log import why_denied
    from opskit.proc.kernel.kmsg import read_kernel_log

    try:
        text = host.fs.calls.ask(read_kernel_log).text
    except OSError as error:
        why = why_denied(host.fs) if isinstance(error, DENIED) else str(error.strerror)
        return quick._replace(unread=why)
    kills = tuple(_kills(host, text))
    if quick.paths is not None:
        kills = tuple(each for each in kills if _is_in(each, quick.paths))
    return quick._replace(kills=kills, source="the kernel's log", drift_s=_DRIFT * host.monotonic())


def _kills(host: Host, text: str) -> Iterator[QuickKill]:
    from opskit.proc.oom.killed import read_killed

    fs, log, now_s = host.fs, read_killed(text), host.monotonic()
    uptime_s = fs.maybe(parse_uptime, "uptime")
    slept_s = max(0.0, (uptime_s or now_s) - now_s)
    resumed_s = (log.resumed_s or 0.0) if slept_s > _SLEPT_S else 0.0
    other_pids = in_initial(fs, "pid") is False
    top = controller_root(fs, "memory")
    found: list[tuple[float, int | None, str, str | None, str | None]]
    found = [(each.at_s, each.pid, each.name, each.cgroup, each.own) for each in log.kills]
    if not log.is_complete:
        found = list(_by_reports(host))
    for at_s, pid, name, cgroup, own in found:
        ago_s = max(0.0, now_s - at_s) + (slept_s if at_s < resumed_s else 0.0)
        yield QuickKill(pid, name, cgroup, own, ago_s, _is_gone(fs, cgroup, top, other_pids=other_pids))


def _by_reports(host: Host) -> Iterator[tuple[float, int | None, str, str | None, str | None]]:
    """The same by the parser of whole reports: of older kernels, and of a log that begins in a report: its cgroup is not told then, and only counted."""
    from opskit.collect.kernel_log import read_ring

    for kill in read_ring(host).log.kills:
        if kill.pid is not None and (kill.cgroup is not None or not kill.by_cgroup):
            cgroup = kill.cgroup if kill.by_cgroup else None
            yield kill.at_s, kill.pid, kill.name, cgroup, kill.task_cgroup or kill.cgroup


def _is_gone(fs: ProcFS, cgroup: str | None, top: Level | None, *, other_pids: bool) -> bool:
    """Whether nobody can be waiting for what was killed. A unit that failed has its slice, a container what is above it."""
    first = (cgroup or "").strip("/").partition("/")[0]
    if not first or top is None:
        return other_pids
    return not fs.root_exists(f"{top.directory.lstrip('/')}/{first}")


def _is_in(kill: QuickKill, paths: frozenset[str]) -> bool:
    path = kill.own or kill.cgroup or ""
    return any(is_at_or_below(path, each) for each in paths)
