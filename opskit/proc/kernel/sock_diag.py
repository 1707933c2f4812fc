"""TCP sockets of a network namespace by netlink: sock_diag(7), NETLINK_SOCK_DIAG.

A socket belongs to the network namespace in which it was made. Everyone may ask. One look at a connection by its cookie costs
6 us; a dump walks the hash table that all network namespaces share, and costs 1 us a socket.
"""

from __future__ import annotations

import _socket  # `socket` turns every number into an enum, which costs milliseconds of start-up
import errno
import os
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

from opskit.proc.inet_diag import INFO, SKMEMINFO

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL_STATES = 0xFFF
_AF_NETLINK, _SOCK_DIAG = 16, 4
_SOL_SOCKET, _SO_RCVBUF, _SO_RCVTIMEO = _socket.SOL_SOCKET, _socket.SO_RCVBUF, _socket.SO_RCVTIMEO
_TIMEOUT = struct.pack("@ll", 10, 0)  # the kernel answers within the call; an emulated one may not
_TCP, _IPV4, _IPV6, _UNIX, _ANY_FAMILY = 6, 2, 10, 1, 0
_COMPATIBLE, _BY_FAMILY = 18, 20  # TCPDIAG_GETSOCK, SOCK_DIAG_BY_FAMILY
_ERROR, _DONE, _OVERRUN = 2, 3, 4
_REQUEST, _DUMP = 1, 0x300
_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence number, port
_CODE = struct.Struct("=i")
_BUFFER_BYTES = 1 << 18
_CHUNK_BYTES = 1 << 16  # the kernel fills 32 KiB
_BUFFERED_REPLIES = 16
_MOST_STALE = 100_000


def extensions(*kinds: int) -> int:
    """The mask that asks for attributes."""
    return sum(1 << kind - 1 for kind in kinds)


_LOOK = extensions(INFO, SKMEMINFO)


class SockDiag:
    """A netlink socket in the network namespace of the thread that makes it. Raises OSError: EPERM, EACCES, EPROTONOSUPPORT."""

    def __init__(self) -> None:
        self._socket = _socket.socket(_AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, _SOCK_DIAG)
        self._number = 0
        self._dump_number = 0  # of a dump that has not ended
        self._compatible = True
        with suppress(OSError):
            self._socket.setsockopt(_SOL_SOCKET, _SO_RCVBUF, _BUFFER_BYTES)
        with suppress(OSError):
            self._socket.setsockopt(_SOL_SOCKET, _SO_RCVTIMEO, _TIMEOUT)

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    def dump(self, states: int = ALL_STATES, asked: int = extensions(INFO)) -> Iterator[bytes]:
        """Chunks of messages about all sockets in these states. Raises OSError: ENOENT or EINVAL where the kernel has no inet_diag."""
        if self._compatible:  # both families in one walk
            body = struct.pack("=BBBB48xII", _ANY_FAMILY, 0, 0, asked, states, 0)
            try:
                yield from self._dump(_COMPATIBLE, body)
                return
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.EINVAL, errno.EOPNOTSUPP):
                    raise
                self._compatible = False
        for family in (_IPV4, _IPV6):
            try:
                yield from self._dump(_BY_FAMILY, struct.pack("=BBBxI48x", family, _TCP, asked, states))
            except OSError as error:
                if family == _IPV4 or error.errno != errno.ENOENT:  # a kernel without IPv6
                    raise

    def dump_unix(self) -> Iterator[bytes]:
        """Chunks of messages about all unix sockets, with name and peer: struct unix_diag_msg. Raises OSError: ENOENT without unix_diag."""
        show_name, show_peer = 1, 4
        yield from self._dump(_BY_FAMILY, struct.pack("=BBHIII8x", _UNIX, 0, 0, ALL_STATES, 0, show_name | show_peer))

    def look(self, keys: list[bytes]) -> Iterator[bytes | None]:
        """A message about each socket, by its key, in their order; None: it is no longer there."""
        for first in range(0, len(keys), _BUFFERED_REPLIES):
            few = keys[first : first + _BUFFERED_REPLIES]
            number = self._number + 1
            self._number += len(few)
            requests = [
                _HEADER.pack(72, _BY_FAMILY, _REQUEST, number + place, 0)
                + struct.pack("=BBBxI", key[0], _TCP, _LOOK, ALL_STATES)
                + key[1:]
                for place, key in enumerate(few)
            ]
            self._socket.send(b"".join(requests))
            for place in range(len(few)):
                yield self._reply(number + place)

    def _reply(self, number: int) -> bytes | None:
        for _ in range(_MOST_STALE):
            message, kind, found, _ = self._receive()
            if found == number:
                return message if kind in (_BY_FAMILY, _COMPATIBLE) else None
        raise OSError(errno.EPROTO, "no answer of sock_diag")

    def _dump(self, kind: int, body: bytes) -> Iterator[bytes]:
        for _ in range(_MOST_STALE):
            if not self._dump_number:
                break
            self._receive()  # the kernel refuses a second dump beside one that was abandoned (EBUSY)
        self._number += 1
        number = self._number
        self._socket.send(_HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | _DUMP, number, 0) + body)
        self._dump_number = number
        while self._dump_number == number:
            chunk, kind, found, end = self._receive()
            if found != number:  # a look that nobody read
                continue
            if kind in (_ERROR, _DONE):
                _check(chunk)
            elif kind == _OVERRUN:
                raise OSError(errno.ENOBUFS, os.strerror(errno.ENOBUFS))
            else:
                yield chunk[:end]

    def _receive(self) -> tuple[bytes, int, int, int]:
        """Messages that came together: the type and the sequence number of the first, and where the messages of a dump end."""
        chunk = self._socket.recv(_CHUNK_BYTES)
        if len(chunk) < _HEADER.size:
            raise OSError(errno.EPROTO, "no answer of sock_diag")
        _, kind, _, number, _ = _HEADER.unpack_from(chunk)
        end = len(chunk)
        if number == self._dump_number:
            done = _end_of_dump(chunk, number)
            if done is not None or kind in (_ERROR, _DONE, _OVERRUN):
                self._dump_number = 0
            end = end if done is None else done
        return chunk, kind, number, end


def _end_of_dump(chunk: bytes, number: int) -> int | None:
    """Where NLMSG_DONE follows the last messages in their chunk (Linux 6.9); None: it comes by itself."""
    place = len(chunk) - _HEADER.size - _CODE.size
    if place < _HEADER.size:
        return None
    length, kind, _, found, _ = _HEADER.unpack_from(chunk, place)
    return place if (length, kind, found) == (len(chunk) - place, _DONE, number) else None


def _check(chunk: bytes) -> None:
    """Raise the error of NLMSG_ERROR or NLMSG_DONE."""
    if len(chunk) < _HEADER.size + 4:
        return
    code = -_CODE.unpack_from(chunk, _HEADER.size)[0]
    if code > 0:
        raise OSError(code, os.strerror(code))
