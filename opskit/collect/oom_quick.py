"""A quick look for OOM kills: the running kernel's log, else the ends of today's logs, and the counters over a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.cgroup.limits import oom_kills
from opskit.proc.cgroup.tree import controller_root, visible_levels
from opskit.proc.files.boot_time import parse_uptime
from opskit.proc.files.vmstat import parse_vmstat
from opskit.proc.fs import optional
from opskit.proc.namespaces import in_initial
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.collect.oom import Facts, Known
    from opskit.host import Host
    from opskit.proc.cgroup.tree import Level
    from opskit.proc.fs import ProcFS
    from opskit.proc.oom.log import OomLog

_LOGS = ("/var/log/kern.log", "/var/log/messages", "/var/log/syslog")
_TAIL_BYTES = 2 << 20
_DAY_S = 24 * 3600.0


class Quick(NamedTuple):
    """One look. `facts`: of the logs; None: the counters show no kill, and no log was read.

    `gained`: kills in the window by the counters, None: not counted. `paths`: the cgroups of the processes that were asked about, None:
    of the machine. `sources`: the logs that were read; `unread`: why not the kernel's.
    `gone`: kills in cgroups that are gone with those above, or of another PID namespace.
    """

    facts: Facts | None
    gained: int | None
    window_s: float
    paths: frozenset[str] | None = None
    sources: tuple[str, ...] = ()
    unread: str | None = None
    gone: tuple[Known, ...] = ()


def collect_quick(host: Host, window_s: float, pids: Sequence[int] = ()) -> Quick:
    """Look at the end of a window. Raises NotSupported for a copy, which has no counters that move."""
    host.prove_moving("opskit oom without logs")
    before = _count(host, pids)
    begun_s = host.monotonic()
    host.sleep(window_s)
    after = _count(host, pids)
    gained = sum(max(0, number - before.get(path, number)) for path, number in after.items()) if after else None
    quick = Quick(None, gained, host.monotonic() - begun_s, frozenset(after) if pids else None)
    return quick if after and not any(after.values()) else _with_logs(host, quick, after)


def _count(host: Host, pids: Sequence[int]) -> Mapping[str, int]:
    """Kills by cgroup of these processes; without processes of the machine, by `/`. Empty: not counted."""
    if not pids:
        counted = host.fs.maybe(parse_vmstat, "vmstat", default={}).get("oom_kill")
        return {} if counted is None else {"/": counted}
    found: dict[str, int] = {}
    for pid in pids:
        found.update(oom_kills(host.fs, visible_levels(host.fs, pid, "memory")[0]))
    return {path: number for path, number in found.items() if path != "/"}


def _with_logs(host: Host, quick: Quick, counted: Mapping[str, int]) -> Quick:
    from opskit.collect.kernel_log import read_ring
    from opskit.collect.oom import RING, Facts, dated, moment, why_no_ring, without_copies
    from opskit.collect.oom_counters import counted_in_cgroups

    fs, end = host.fs, moment(host.now().timestamp(), host.monotonic())
    logs: list[tuple[str, OomLog]] = []
    unread, is_whole = None, False
    if host.is_own:
        try:
            ring = read_ring(host, whole=False)
        except OSError as error:
            unread = why_no_ring(host, error)
        else:
            is_whole = bool(ring.is_whole)
            logs.append((RING, ring.log))
    else:
        unread = "it belongs to another PID namespace"
    total = sum(counted.values()) if quick.paths is None and counted else None
    if not is_whole and (total is None or sum(len(log.kills) for _, log in logs) < total):
        logs += _ends_of_logs(host)
    kills = without_copies([dated(host, kill, name, end) for name, log in logs for kill in log.kills])
    if quick.paths is not None:
        kills = [each for each in kills if _is_in(each, quick.paths)]
    other_pids = in_initial(fs, "pid") is False
    top = controller_root(fs, "memory")
    gone = tuple(each for each in kills if _is_gone(fs, each, top, other_pids=other_pids))
    kills = [each for each in kills if each not in gone]
    facts = Facts(
        kills, (), (),
        is_live=True,
        end=end,
        counted=None if total is None else max(0, total - len(gone)) if quick.paths is None else max(counted.values(), default=0),
        cgroups=counted_in_cgroups(fs) if not kills and not is_whole and quick.paths is None else (),
        uptime_s=fs.maybe(parse_uptime, "uptime"),
        is_whole=is_whole,
        other_pids=other_pids,
        more=sum(log.more for _, log in logs),
    )  # fmt: skip
    return quick._replace(facts=facts, gone=gone, sources=tuple(name for name, _ in logs), unread=unread)


def _is_gone(fs: ProcFS, known: Known, top: Level | None, *, other_pids: bool) -> bool:
    """Whether nobody can be waiting for what was killed: not even the slice of its cgroup exists. A unit that failed has its slice."""
    path = known.kill.cgroup if known.kill.by_cgroup else None
    first = (path or "").strip("/").partition("/")[0]
    if not first or top is None:
        return other_pids
    return not fs.root_exists(f"{top.directory.lstrip('/')}/{first}")


def _is_in(known: Known, paths: frozenset[str]) -> bool:
    path = known.kill.task_cgroup or known.kill.cgroup or ""
    return any(path == each or path.startswith(f"{each}/") for each in paths)


def _ends_of_logs(host: Host) -> list[tuple[str, OomLog]]:
    """The last part of each log that was written to within a day."""
    found = []
    now_s = host.now().timestamp()
    for path in _LOGS:
        read = optional(_end_of, host, f"{host.fs.root}{path}", now_s)
        if read is not None:
            found.append((path, read))
    return found


def _end_of(host: Host, path: str, now_s: float) -> OomLog | None:
    from opskit.proc.oom.log import read_log

    place = host.fs.file_id_at(path)
    if now_s - place.mtime_ns / 1e9 > _DAY_S:
        return None
    file = host.fs.hold_regular(path)
    try:
        data = file.read_at(max(0, place.size_bytes - _TAIL_BYTES), _TAIL_BYTES)
    finally:
        file.close()
    return read_log([data], host.page_bytes, now_s, first_lines=0)
