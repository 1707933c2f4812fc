"""The unix sockets of a network namespace."""

from __future__ import annotations

import os
import socket

from opskit.proc.files.net_unix import parse_unix_inodes

HEAD = "Num       RefCount Protocol Flags    Type St Inode Path\n"


def test_inodes():
    """With a path, without one, and with blanks in it; a line that is cut has none."""
    text = (
        f"{HEAD}0000000000000000: 00000002 00000000 00010000 0001 01  8121 /run/dbus/system bus socket\n"
        "0000000000000000: 00000003 00000000 00000000 0001 03 9044\n0000000000000000: 00000003 00000000 0000"
    )
    assert parse_unix_inodes(text) == {8121, 9044}
    assert parse_unix_inodes("") == parse_unix_inodes(HEAD) == frozenset()


def test_our_own():
    """A socket's inode is in this kernel's file, a TCP socket's is not."""
    with (
        socket.socketpair()[0] as unix,
        socket.socket() as tcp,
        open("/proc/self/net/unix", encoding="utf-8", errors="replace") as file,
    ):
        inodes = parse_unix_inodes(file.read())
        assert os.fstat(unix.fileno()).st_ino in inodes
        assert os.fstat(tcp.fileno()).st_ino not in inodes
