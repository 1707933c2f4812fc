"""Unix sockets with their names and peers: by sock_diag(7), struct unix_diag_msg (include/uapi/linux/unix_diag.h), or a file without peers.

/proc/PID/net/unix (net/unix/af_unix.c); a name that begins with @ is abstract (unix(7)):

Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000003 00000000 00010000 0001 01 43219 /run/systemd/journal/stdout
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from opskit.quantities import hexadecimal, integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

CONNECTED, UNCONNECTED, LISTENING = 1, 7, 10  # the states of TCP
_LINE = re.compile(
    rb"^[0-9a-fA-F]+: [0-9A-F]+ [0-9A-F]+ ([0-9A-F]+) ([0-9A-F]+) ([0-9A-F]+) +([0-9]+)(?: ([^\n]*))?$", re.MULTILINE
)
_LISTENS, _UNCONNECTED = 0x10000, 1  # __SO_ACCEPTCON of the flags, SS_UNCONNECTED of the state
_TYPES = {1: "stream", 2: "datagram", 5: "seqpacket"}
_AUTOBOUND = re.compile(rb"@[0-9a-f]{5}")  # unix(7), "Autobind feature"
_MESSAGE, _ATTRIBUTE = struct.Struct("=I13xBBxI8x"), struct.Struct("=HH")
_WORD = struct.Struct("=I")
_NAME, _PEER = 0, 2  # UNIX_DIAG_NAME, UNIX_DIAG_PEER


class UnixSocket(NamedTuple):
    """A unix socket. `type`: of socket(2); `name`: a path, an abstract name with @, or empty. `peer`: its inode; 0: none, or unknown."""

    inode: int
    type: int
    state: int
    name: bytes
    peer: int


def parse_net_unix(text: bytes) -> Iterator[UnixSocket]:
    """The sockets of the file; lines of another form are left out."""
    for flags, type_, state, inode, name in _LINE.findall(text):
        is_open = (hexadecimal(state) or 0) != _UNCONNECTED
        listens = (hexadecimal(flags) or 0) & _LISTENS
        found = LISTENING if listens else CONNECTED if is_open else UNCONNECTED
        yield UnixSocket(integer(inode) or 0, hexadecimal(type_) or 0, found, name, 0)


def parse_messages(chunk: bytes) -> Iterator[UnixSocket]:
    """The sockets of a chunk of whole messages; one that is cut ends it."""
    start, size = 0, len(chunk)
    while start + _MESSAGE.size <= size:
        length, type_, state, inode = _MESSAGE.unpack_from(chunk, start)
        end = start + length
        if length < _MESSAGE.size or end > size:
            return
        name, peer = b"", 0
        place = start + _MESSAGE.size
        while place + _ATTRIBUTE.size <= end:
            long, kind = _ATTRIBUTE.unpack_from(chunk, place)
            if long < _ATTRIBUTE.size or place + long > end:
                break
            if kind == _PEER and long >= _ATTRIBUTE.size + _WORD.size:
                (peer,) = _WORD.unpack_from(chunk, place + _ATTRIBUTE.size)
            elif kind == _NAME:
                name = _shown(chunk[place + _ATTRIBUTE.size : place + long])
            place += long + 3 & ~3
        yield UnixSocket(inode, type_, state, name, peer)
        start += length + 3 & ~3


def _shown(name: bytes) -> bytes:
    """An abstract name as the file writes it; a path ends at its NUL."""
    return b"@" + name[1:].replace(b"\0", b"@") if name.startswith(b"\0") else name.partition(b"\0")[0]


def describe(type_: int, state: int, name: bytes, peer: bytes) -> str:
    """`stream to /run/docker.sock`, `stream listening /run/app.sock`, `datagram unconnected`. `peer`: the name of its peer."""
    how = "listening" if state == LISTENING else "unconnected" if state == UNCONNECTED and not name else ""
    words = (_TYPES.get(type_, ""), how, f"to {_text(peer)}" if peer else _text(name))
    return " ".join(word for word in words if word)


def _text(name: bytes) -> str:
    return "a name of the kernel's" if _AUTOBOUND.fullmatch(name) else name.decode("utf-8", "surrogateescape")
