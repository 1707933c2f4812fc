"""Which processes may be near their limit on open files, by counts alone: no table of file descriptors is read where the kernel counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.file_nr import read_file_nr
from opskit.proc.files.limits import is_nearly_full, parse_soft_limits
from opskit.proc.files.status import parse_status
from opskit.proc.fs import DENIED, optional
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.collect.fds.facts import Near
    from opskit.host import Host

_FEWEST = 13  # below, no limit but that of a sandbox is nearly used


class QuickFacts(NamedTuple):
    """The processes that use most of their limits, of `processes`; `denied`: how many could not be counted. `file_nr`: open files and fs.file-max."""

    processes: int
    nearest: tuple[Near, ...]
    denied: int
    file_nr: tuple[int, int] | None


def collect_quick(host: Host, pids: Sequence[int] = ()) -> QuickFacts:
    """Count the open files of these processes, or of all and of the machine."""
    fs = host.fs
    near: list[int] = []
    denied = 0
    counts = _kernel_counts(host)
    chosen = pids or fs.pids()
    for pid in chosen:
        try:
            count = _size(host, pid) if counts else _listed(host, pid)
        except DENIED:
            denied += 1
            continue
        if count < _FEWEST:
            continue
        soft = fs.maybe(parse_soft_limits, pid, "limits")
        if soft is not None and is_nearly_full(soft.open_files, count):
            near.append(pid)
    return QuickFacts(len(chosen) - denied, _nearest(host, near), denied, None if pids else read_file_nr(fs))


def _nearest(host: Host, near: Sequence[int]) -> tuple[Near, ...]:
    """Read on where there are any."""
    if not near:
        return ()
    from opskit.collect.fds.host import name_near
    from opskit.proc.open_files import open_files

    counted = ((pid, open_files(host.fs, pid)) for pid in near)
    return name_near(host, [(pid, files) for pid, files in counted if files is not None and files.taken])


def _kernel_counts(host: Host) -> bool:
    """Whether the size of PID/fd is the number of its file descriptors: since Linux 6.2, not in a copy."""
    return host.fs.is_live and bool(_size(host, "self"))


def _size(host: Host, pid: int | str) -> int:
    found = optional(host.fs.file_id_at, host.fs.path(pid, "fd"))
    return 0 if found is None else found.size_bytes


def _listed(host: Host, pid: int) -> int:
    """The file descriptors of a process; 0 where too few to matter, or it is gone. Raises PermissionError."""
    # FDSize is the size of the table, which is at least what is in it.
    status = host.fs.maybe(parse_status, pid, "status")
    table = integer(status.fields.get("FDSize", "")) if status is not None else None
    soft = host.fs.maybe(parse_soft_limits, pid, "limits")
    if table is None or soft is None or not is_nearly_full(soft.open_files, table):
        return 0
    try:
        return host.fs.fd_count(pid)
    except (FileNotFoundError, ProcessLookupError, NotADirectoryError):
        return 0
