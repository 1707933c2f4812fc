"""Links of /proc/PID/fd, and /proc/PID/fdinfo/N (Documentation/filesystems/proc.rst, 3.8).

pipe:[4194986548]        an anonymous pipe; a FIFO shows as its path
socket:[8121]

pos:	0
flags:	02004002
mnt_id:	15
ino:	1044
scm_fds: 3
"""

from __future__ import annotations

from opskit.errors import BadInput

PIPE_PREFIX = b"pipe:["


def parse_fdinfo(text: str) -> dict[str, str]:
    """The `key: value` lines of an fdinfo file. Raises BadInput if there is none."""
    fields = {key: value.strip() for key, colon, value in (line.partition(":") for line in text.splitlines()) if colon}
    if not fields:
        raise BadInput("fdinfo", "no `key: value` line", found=text)
    return fields
