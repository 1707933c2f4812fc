"""Messages of sock_diag(7) about TCP sockets: struct inet_diag_msg and its attributes (include/uapi/linux/inet_diag.h).

A dump comes in chunks of many messages, each a struct nlmsghdr (16 bytes), an inet_diag_msg (72) and attributes of a length, a
type and a value. With 20,000 sockets a record for each costs a second look at the clock: `rows` reads of every message only what
tells whether the socket did something, and `parse_socket` makes the record of those that are shown or judged.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.proc.tcp_sockets import Socket, SocketMemory, TcpInfo
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

MEMINFO, INFO, SKMEMINFO = 1, 2, 7  # INET_DIAG_…, the types of attributes
_HEAD_BYTES, _ATTRIBUTES = 88, 88
_FAMILY, _KEY = 16, slice(20, 68)  # struct inet_diag_sockid: ports, addresses, interface, cookie
_MESSAGE = struct.Struct("=16xBBBB2s2s16s16sI8sIIIII")  # the ports are big-endian
_ATTRIBUTE = struct.Struct("=HH")
_LENGTH = struct.Struct("=I")
_IPV6 = 10
_MAPPED = bytes(10) + b"\xff\xff"
NEVER_MS = 0xFFFFFFFF  # a message without struct tcp_info

# struct tcp_info in the order of TcpInfo; x: what is not read, among it the bit fields.
_INFO = struct.Struct("=2xBxB3xI4xIII4xI8xI4xIIIIII4xII8xI I16xQQ IIIIII QQQQ 8xQQ 8xII")
_INFO_LEAST_BYTES = 104  # to tcpi_total_retrans: Linux 2.6.10 to 3.14
# Where fields end that came later: each index of TcpInfo, and the end of the field.
_LATER = tuple(zip(range(18, 34), (128, 136, 140, 144, 148, 152, 156, 160, 168, 176, 184, 192, 208, 216, 228, 232)))
_MIN_RTT = TcpInfo._fields.index("min_rtt_us")
_MEMORY = struct.Struct(
    "=IIII4xI8x"
)  # SK_MEMINFO_RMEM_ALLOC, RCVBUF, WMEM_ALLOC, SNDBUF, FWD_ALLOC, WMEM_QUEUED, OPTMEM, BACKLOG
_MEMORY_DROPS = struct.Struct("=I")

# (family, state, ports, peer, cookie, receive queue, send queue, uid, inode, ms since data was sent, was received, and any ACK)
Row = tuple[int, int, bytes, bytes, bytes, int, int, int, int, int, int, int]
_ROW_HEAD, _ROW_INFO, _ROW_INFO_BYTES = "=16xBB2x4s16x16s4x8s4xIIII", "44xI4xII", 60
_ROW_WITHOUT = struct.Struct(_ROW_HEAD)


class Layout(NamedTuple):
    """Where the values of messages of one length are. `info`: of struct tcp_info; None: they have none."""

    row: struct.Struct
    info: int | None
    header: bytes  # the attribute's, before `info`


class Message(NamedTuple):
    """The place of a message in a chunk of a dump."""

    chunk: bytes
    start: int

    def socket(self) -> Socket:
        """Its record."""
        return parse_socket(self.chunk, self.start)

    @property
    def key(self) -> bytes:
        """What names the socket in a request for it alone."""
        return key_of(self.chunk, self.start)


class Reader:
    """Reads rows of dumps. It keeps the layouts of messages, which differ between kernels and between states."""

    def __init__(self) -> None:
        self._layouts: dict[int, Layout] = {}

    def rows(self, chunk: bytes) -> Iterable[tuple[int, Row]]:
        """Each message's start and row. A message that the chunk does not hold whole ends it."""
        size = len(chunk)
        if size < _HEAD_BYTES:
            return ()
        length = _LENGTH.unpack_from(chunk, 0)[0]
        layout = self._layout(chunk, 0, length)
        if layout is None:
            return ()
        if layout.info is not None and not size % length and _is_uniform(chunk, length, layout.info):
            return zip(range(0, size, length), layout.row.iter_unpack(chunk))
        return self._mixed(chunk)

    def _mixed(self, chunk: bytes) -> list[tuple[int, Row]]:
        found: list[tuple[int, Row]] = []
        start, size = 0, len(chunk)
        while start + _HEAD_BYTES <= size:
            length = _LENGTH.unpack_from(chunk, start)[0]
            layout = self._layout(chunk, start, length)
            if layout is None:
                break
            if layout.info is None:
                row = (*_ROW_WITHOUT.unpack_from(chunk, start), NEVER_MS, NEVER_MS, NEVER_MS)
            else:
                row = layout.row.unpack_from(chunk, start)
            found.append((start, row))
            start += length + 3 & ~3
        return found

    def _layout(self, chunk: bytes, start: int, length: int) -> Layout | None:
        """The layout of a message; None: it is not whole."""
        if length < _HEAD_BYTES or start + length > len(chunk):
            return None
        known = self._layouts.get(length)
        if known is not None and (
            known.info is None or chunk[start + known.info - 4 : start + known.info] == known.header
        ):
            return known
        info = attributes(chunk, start, length).get(INFO)
        if info is None or info[1] - info[0] < _ROW_INFO_BYTES:
            layout = Layout(_ROW_WITHOUT, None, b"")
        else:
            at = info[0] - start
            row = struct.Struct(f"{_ROW_HEAD}{at - _HEAD_BYTES}x{_ROW_INFO}{length - at - _ROW_INFO_BYTES}x")
            layout = Layout(row, at, chunk[info[0] - 4 : info[0]])
        self._layouts[length] = layout
        return layout


def _is_uniform(chunk: bytes, length: int, info: int) -> bool:
    """Whether all messages have the length and the attribute of the first one."""
    number = len(chunk) // length
    return not length % 4 and all(
        chunk[place::length].count(chunk[place : place + 1]) == number for place in (0, 1, 2, 3, *range(info - 4, info))
    )


def attributes(chunk: bytes, start: int, length: int) -> dict[int, tuple[int, int]]:
    """Where the value of each attribute begins and ends, by its type."""
    found: dict[int, tuple[int, int]] = {}
    place, end = start + _ATTRIBUTES, min(start + length, len(chunk))
    while place + _ATTRIBUTE.size <= end:
        size, kind = _ATTRIBUTE.unpack_from(chunk, place)
        if size < _ATTRIBUTE.size or place + size > end:
            break
        found[kind] = (place + _ATTRIBUTE.size, place + size)
        place += size + 3 & ~3
    return found


def key_of(chunk: bytes, start: int) -> bytes:
    """The family, and the ports, addresses, interface and cookie of a message's socket."""
    return chunk[start + _FAMILY : start + _FAMILY + 1] + chunk[start + _KEY.start : start + _KEY.stop]


def parse_socket(chunk: bytes, start: int = 0) -> Socket:
    """The record of a whole message."""
    family, state, timer, retransmits, local_port, peer_port, local, peer, interface, cookie, *rest = (
        _MESSAGE.unpack_from(chunk, start)
    )
    expires_ms, receive, send, uid, inode = rest
    values = attributes(chunk, start, _LENGTH.unpack_from(chunk, start)[0])
    info, memory = values.get(INFO), values.get(SKMEMINFO)
    return Socket(
        family, state, packed(family, local), int.from_bytes(local_port, "big"), packed(family, peer),
        int.from_bytes(peer_port, "big"), receive, send, uid, inode,
        timer, expires_ms, retransmits, interface, cookie,
        parse_info(chunk[slice(*info)]) if info else None, parse_memory(chunk[slice(*memory)]) if memory else None,
    )  # fmt: skip


def packed(family: int, address: bytes) -> bytes:
    """An address of 16 bytes as 4 (IPv4, also mapped to IPv6) or 16."""
    if family != _IPV6:
        return address[:4]
    return address[12:] if address.startswith(_MAPPED) else address


def parse_info(value: bytes) -> TcpInfo | None:
    """A struct tcp_info of any kernel; None: shorter than any."""
    size = len(value)
    if size < _INFO_LEAST_BYTES:
        return None
    fields = list(_INFO.unpack(value[: _INFO.size].ljust(_INFO.size, b"\0")))
    if size < _INFO.size:
        for number, end in _LATER:
            if end > size:
                fields[number] = None
    if fields[_MIN_RTT] == NEVER_MS:  # not measured yet
        fields[_MIN_RTT] = None
    return TcpInfo(*fields)


def parse_memory(value: bytes) -> SocketMemory | None:
    """The value of INET_DIAG_SKMEMINFO: drops since Linux 4.7."""
    if len(value) < _MEMORY.size:
        return None
    receive, receive_limit, _, send_limit, queued = _MEMORY.unpack_from(value)
    drops = _MEMORY_DROPS.unpack_from(value, _MEMORY.size)[0] if len(value) >= _MEMORY.size + 4 else None
    return SocketMemory(receive, receive_limit, queued, send_limit, drops)
