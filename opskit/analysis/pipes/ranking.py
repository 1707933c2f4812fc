"""Pipes by their number of file descriptors. Pure."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.proc.files.fd import PIPE_PREFIX
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from opskit.proc.pipe_scan import Holder


def identity(key: bytes) -> tuple[str, int, int | None]:
    """(kind, inode, device) of a scan's key: `pipe:[N]` or `fifo:DEVICE:INODE`."""
    if key.startswith(PIPE_PREFIX):
        return "pipe", int(key[6:-1]), None
    _, device, inode = key.split(b":")
    return "fifo", int(inode), int(device)


def total_fds(holders: Iterable[Holder]) -> dict[bytes, int]:
    """Fds a pipe, over all holders."""
    totals: dict[bytes, int] = {}
    get = totals.get
    for holder in holders:
        for key, count in holder.counts.items():
            totals[key] = get(key, 0) + count
    return totals


def ranked(totals: Mapping[bytes, int], sort: str = "fds") -> list[tuple[int, int, bytes]]:
    """(fds, inode, key) a pipe: most fds first and then by inode, or by inode alone. Raises BadInput for `pipe:[x]`."""
    size = len(PIPE_PREFIX)
    try:
        inodes = (int(key[size:-1]) if key.startswith(PIPE_PREFIX) else identity(key)[1] for key in totals)
        rows = [(count, inode, key) for inode, (key, count) in zip(inodes, totals.items())]
    except ValueError:
        wrong = next(key for key in totals if key.startswith(PIPE_PREFIX) and integer(key[size:-1]) is None)
        raise BadInput("fd", "a link that is no pipe:[INODE]", found=wrong.decode("utf-8", "replace")) from None
    rows.sort(key=itemgetter(1, 2))
    if sort == "fds":
        rows.sort(key=itemgetter(0), reverse=True)  # stable: ties stay in the order of their inodes
    return rows


def commands_by_pipe(holders: Iterable[Holder], command: Mapping[int, str]) -> dict[bytes, dict[str, int]]:
    """Per pipe: the fds of each command's processes together."""
    names: dict[bytes, dict[str, int]] = {}
    for holder in holders:
        name = command[holder.pid]
        for key, count in holder.counts.items():
            row = names.get(key)
            if row is None:
                names[key] = {name: count}
            else:
                row[name] = row.get(name, 0) + count
    return names
