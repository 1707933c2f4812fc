"""Links of /proc/PID/fd, and /proc/PID/fdinfo/N (Documentation/filesystems/proc.rst, 3.8).

pipe:[4194986548]        an anonymous pipe; a FIFO shows as its path
socket:[8121]

pos:	0
flags:	02004002
mnt_id:	15
ino:	1044
scm_fds: 3

tfd:        5 events:       1d data: ffffffffffffffff  pos:0 ino:61af sdev:7     a line for each fd that an epoll watches
"""

from __future__ import annotations

from opskit.errors import BadInput
from opskit.quantities import hexadecimal, integer
from opskit.records import NamedTuple

PIPE_PREFIX = b"pipe:["


def parse_fdinfo(text: str) -> dict[str, str]:
    """The `key: value` lines of an fdinfo file. Raises BadInput if there is none."""
    fields = {key: value.strip() for key, colon, value in (line.partition(":") for line in text.splitlines()) if colon}
    if not fields:
        raise BadInput("fdinfo", "no `key: value` line", found=text)
    return fields


class EpollTarget(NamedTuple):
    """An fd that an epoll watches. `events`: the bits of epoll_ctl(2). `inode`: of its file; None: an older kernel."""

    fd: int
    events: int
    inode: int | None


def parse_epoll(text: str) -> list[EpollTarget]:
    """The `tfd:` lines of an epoll's fdinfo; lines of another form are left out."""
    found = []
    for line in text.splitlines():
        if not line.startswith("tfd:"):
            continue
        words = line.split()
        values = dict(zip(words[::2], words[1::2]))
        fd, events = integer(values.get("tfd:", "")), hexadecimal(values.get("events:", ""))
        inode = next((hexadecimal(word[4:]) for word in words if word.startswith("ino:")), None)
        if fd is not None and events is not None:
            found.append(EpollTarget(fd, events, inode))
    return found
