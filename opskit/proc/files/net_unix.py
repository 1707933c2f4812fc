"""/proc/PID/net/unix (proc_pid_net(5), net/unix/af_unix.c): the unix sockets of a network namespace.

Num       RefCount Protocol Flags    Type St Inode Path
000000000f1c2b3a: 00000002 00000000 00010000 0001 01  8121 /run/dbus/system_bus_socket
000000003d4e5f60: 00000003 00000000 00000000 0001 03  9044
"""

from __future__ import annotations

from opskit.proc.lines import lines_of
from opskit.quantities import integer


def parse_unix_inodes(text: str) -> frozenset[int]:
    """The inodes of the sockets, as in the links of fds: `socket:[8121]`."""
    inodes = (integer(words[6]) for line in lines_of(text)[1:] if len(words := line.split(None, 7)) > 6)
    return frozenset(inode for inode in inodes if inode is not None)
