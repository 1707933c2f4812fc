"""Which time daemons run. A name proves nothing: what may set the clock has CAP_SYS_TIME in the initial user namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.clock.facts import Daemon
from opskit.proc.files.boot_time import age_s, parse_uptime
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.namespaces import in_initial, namespace

if TYPE_CHECKING:
    from opskit.host import Host
    from opskit.proc.files.status import Status
    from opskit.proc.fs import ProcFS

# By comm, which the kernel cuts to 15 bytes.
NAMES = {
    "chronyd": "chronyd",
    "ntpd": "ntpd",
    "systemd-timesyn": "systemd-timesyncd",
    "ptp4l": "ptp4l",
    "phc2sys": "phc2sys",
    "vmtoolsd": "vmtoolsd",
    "VBoxService": "VBoxService",
}
_MOST = 20
_WHOLE_MAP = ((0, 0, 2**32 - 1),)


def find_daemons(host: Host) -> list[Daemon]:
    """One for each process that has such a name, without the helpers that it has forked."""
    fs = host.fs
    uptime_s = fs.maybe(parse_uptime, "uptime")
    found: dict[int, tuple[int, Daemon]] = {}
    for pid in fs.pids():
        name = NAMES.get((fs.maybe(str, pid, "comm") or "").removesuffix("\n"))
        if name is None:
            continue
        stat, status = fs.maybe(parse_stat, pid, "stat"), fs.maybe(parse_status, pid, "status")
        if stat is None or status is None:
            continue
        may_set = _may_set(fs, pid, status)
        if len(found) >= _MOST and not may_set:
            continue  # anyone may start very many processes of such a name
        age = age_s(uptime_s, stat.start_ticks, host.clock_ticks)
        found[pid] = stat.ppid, Daemon(name, pid, stat.start_ticks, may_set, age, _shares_network(fs, pid))
    return [daemon for parent, daemon in found.values() if parent not in found or found[parent][1].name != daemon.name]


def _may_set(fs: ProcFS, pid: int, status: Status) -> bool | None:
    from opskit.proc.files.uid_map import parse_id_map
    from opskit.proc.rights import missing

    held = status.mask("CapPrm")
    if held is None:
        return None
    if missing(held, "CAP_SYS_TIME"):
        return False
    is_initial = in_initial(fs, "user", pid)
    if is_initial is not None:
        return is_initial
    ids = fs.maybe(parse_id_map, pid, "uid_map")
    return None if ids is None else ids.ranges == _WHOLE_MAP


def _shares_network(fs: ProcFS, pid: int) -> bool | None:
    theirs, ours = namespace(fs, pid, "net"), namespace(fs, "self", "net")
    return None if theirs is None or ours is None else theirs == ours
