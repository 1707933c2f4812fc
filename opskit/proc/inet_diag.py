"""Messages of sock_diag(7) about TCP sockets: struct inet_diag_msg and its attributes (include/uapi/linux/inet_diag.h).

A dump comes in chunks of many messages, each a struct nlmsghdr (16 bytes), an inet_diag_msg (72) and attributes of a length, a
type and a value. Records of 20,000 sockets take 100 ms of CPU time, so `Reader.rows` reads of every message only what tells
whether the socket did something, in 0.2 us, and `parse_socket` makes the record of one that is shown or judged.
"""

from __future__ import annotations

import struct
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from opskit.proc.tcp_sockets import LISTEN, Socket, SocketMemory, TcpInfo
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MEMINFO, INFO, SKMEMINFO = 1, 2, 7  # INET_DIAG_…, the types of attributes
_HEAD_BYTES, _ATTRIBUTES = 88, 88
_FAMILY, _KEY = 16, slice(20, 68)  # struct inet_diag_sockid: ports, addresses, interface, cookie
_MESSAGE = struct.Struct("=16xBBBB2s2s16s16sI8sIIIII")  # the ports are big-endian
_ATTRIBUTE = struct.Struct("=HH")
_LENGTH = struct.Struct("=I")
_IPV6 = 10
_MAPPED = bytes(10) + b"\xff\xff"
NEVER_MS = 0xFFFFFFFF  # a message without struct tcp_info

# Where the fields of TcpInfo are in struct tcp_info: one byte, then words of 4 and of 8 bytes.
_BYTES = {"retransmits": 2, "backoff": 4}
_WORDS = {
    "rto_us": 8, "snd_mss": 16, "rcv_mss": 20, "unacked": 24, "sacked": 28, "lost": 32, "last_data_sent_ms": 44,
    "last_data_recv_ms": 52, "last_ack_recv_ms": 56, "pmtu": 60, "rcv_ssthresh": 64, "rtt_us": 68, "rttvar_us": 72,
    "snd_cwnd": 80, "advmss": 84, "rcv_space": 96, "total_retrans": 100, "segs_out": 136, "segs_in": 140,
    "notsent_bytes": 144, "min_rtt_us": 148, "data_segs_in": 152, "data_segs_out": 156, "dsack_dups": 216,
    "rcv_ooopack": 224, "snd_wnd": 228,
}  # fmt: skip
_LONG_WORDS = {
    "bytes_acked": 120, "bytes_received": 128, "delivery_rate": 160, "busy_us": 168, "rwnd_limited_us": 176,
    "sndbuf_limited_us": 184, "bytes_sent": 200, "bytes_retrans": 208,
}  # fmt: skip
_INFO_LEAST_BYTES = 104  # Linux 2.6.10 to 3.14; later kernels have more fields


def _columns(*groups: tuple[str, dict[str, int]]) -> tuple[struct.Struct, list[str], list[int]]:
    """A struct of fields by their places, in this order, with their names and where each ends."""
    fields = sorted((place, code, name) for code, places in groups for name, place in places.items())
    text, names, ends = "=", [], [0]
    for place, code, name in fields:
        text += f"{place - ends[-1]}x{code}"
        names.append(name)
        ends.append(place + struct.calcsize(f"={code}"))
    return struct.Struct(text), names, ends[1:]


_INFO, _NAMES, _ENDS = _columns(("B", _BYTES), ("I", _WORDS), ("Q", _LONG_WORDS))
_IN_ORDER = itemgetter(*map(_NAMES.index, TcpInfo._fields))
_MIN_RTT = _NAMES.index("min_rtt_us")
# Bytes received, SO_RCVBUF, bytes in flight, SO_SNDBUF, ahead, bytes queued, options, backlog.
_MEMORY = struct.Struct("=IIII4xI8x")
_MEMORY_DROPS = struct.Struct("=I")

# (family, state, ports, peer, cookie, receive queue, send queue, uid, inode, ms since data was sent, was received, and any ACK)
Row = tuple[int, int, bytes, bytes, bytes, int, int, int, int, int, int, int]
_ROW_HEAD, _ROW_INFO, _ROW_INFO_BYTES = "=16xBB2x4s16x16s4x8s4xIIII", "44xI4xII", 60
# (family, state, local port, destination, ms until the timer): a local port is taken for a peer's port, both addresses, and an interface.
End = tuple[int, int, bytes, bytes, int]
_END_HEAD = "=16xBB2x2s38s8xI16x"
_END = struct.Struct("=2s16s16sI")  # a destination
# (receive queue, send queue, unacked, ms since data was sent, was received, rcv_ssthresh, rtt_us, snd_wnd)
Look = tuple[int, int, int, int, int, int, int, "int | None"]
_LOOK_HEAD, _LOOK_INFO, _LOOK_INFO_BYTES = "=72xII8x", "24xI16xI4xI8xII156xI", 232


class Layout(NamedTuple):
    """Where the values of messages of one length are. `info`: of struct tcp_info; None: it is shorter than what is read, or not there."""

    values: struct.Struct
    info: int | None
    header: bytes  # the attribute's, before `info`


class _Layouts:
    """The layouts of messages, which differ between kernels and between states: values of the head, and of struct tcp_info."""

    def __init__(self, head: str, info: str, info_bytes: int) -> None:
        self._head, self._info, self._info_bytes = head, info, info_bytes
        self.known: dict[int, Layout] = {}

    def of(self, chunk: bytes, start: int) -> Layout | None:
        """The layout of a message; None: it is not whole."""
        length = _LENGTH.unpack_from(chunk, start)[0]
        if length < _HEAD_BYTES or start + length > len(chunk):
            return None
        known = self.known.get(length)
        if known is not None and (
            known.info is None or chunk[start + known.info - 4 : start + known.info] == known.header
        ):
            return known
        info = attributes(chunk, start, length).get(INFO)
        if info is None or info[1] - info[0] < self._info_bytes:
            layout = Layout(struct.Struct(self._head), None, b"")
        else:
            at = info[0] - start
            text = f"{self._head}{at - _HEAD_BYTES}x{self._info}{length - at - self._info_bytes}x"
            layout = Layout(struct.Struct(text), at, chunk[info[0] - 4 : info[0]])
        self.known[length] = layout
        return layout


class Reader:
    """Reads rows of dumps, and looks at single sockets."""

    def __init__(self) -> None:
        self._rows = _Layouts(_ROW_HEAD, _ROW_INFO, _ROW_INFO_BYTES)
        self._looks = _Layouts(_LOOK_HEAD, _LOOK_INFO, _LOOK_INFO_BYTES)
        self._ends = _Layouts(_END_HEAD, "", 0)

    def rows(self, chunk: bytes) -> Iterable[tuple[int, Row]]:
        """Each message's start and row. A message that the chunk does not hold whole ends it."""
        length = _uniform(self._rows, chunk)
        if length is None:
            return _values(self._rows, chunk, (NEVER_MS, NEVER_MS, NEVER_MS))
        return zip(range(0, len(chunk), length), self._rows.known[length].values.iter_unpack(chunk))

    def ends(self, chunk: bytes) -> Iterable[End]:
        """The local port of each message's socket, with its destination."""
        length = _uniform(self._ends, chunk)
        if length is None:
            return (end for _, end in _values(self._ends, chunk, ()))
        return self._ends.known[length].values.iter_unpack(chunk)

    def look(self, message: bytes) -> Look | None:
        """What changes from look to look; None: it is not whole, or has no struct tcp_info."""
        layout = self._looks.of(message, 0) if len(message) >= _HEAD_BYTES else None
        if layout is None:
            return None
        if layout.info is not None:
            found: Look = layout.values.unpack_from(message)
            return found
        socket = parse_socket(message)  # an old kernel, without snd_wnd
        info = socket.info
        if info is None:
            return None
        ages = info.last_data_sent_ms, info.last_data_recv_ms
        return (socket.recv_queue, socket.send_queue, info.unacked, *ages, info.rcv_ssthresh, info.rtt_us, info.snd_wnd)


def _values(layouts: _Layouts, chunk: bytes, unknown: tuple[int, ...]) -> list[tuple[int, Any]]:
    """Each message's start and values; `unknown` stands for those of struct tcp_info."""
    found: list[tuple[int, tuple[Any, ...]]] = []
    start, size = 0, len(chunk)
    while start + _HEAD_BYTES <= size:
        layout = layouts.of(chunk, start)
        if layout is None:
            break
        values = layout.values.unpack_from(chunk, start)
        found.append((start, values if layout.info is not None else values + unknown))
        start += _LENGTH.unpack_from(chunk, start)[0] + 3 & ~3
    return found


def _uniform(layouts: _Layouts, chunk: bytes) -> int | None:
    """The length of every message of a chunk, where all have struct tcp_info in the same place; None: they differ."""
    layout = layouts.of(chunk, 0) if len(chunk) >= _HEAD_BYTES else None
    if layout is None or layout.info is None:
        return None
    length: int = _LENGTH.unpack_from(chunk, 0)[0]
    return length if not len(chunk) % length and is_uniform(chunk, length, layout.info) else None


def message_starts(chunk: bytes) -> Iterator[tuple[int, int]]:
    """Where each whole message of a chunk begins and ends."""
    start = 0
    while start + _HEAD_BYTES <= len(chunk):
        end = start + _LENGTH.unpack_from(chunk, start)[0]
        if not start + _HEAD_BYTES <= end <= len(chunk):
            break
        yield start, end
        start = end + 3 & ~3


def is_uniform(chunk: bytes, length: int, info: int) -> bool:
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


def as_row(socket: Socket) -> Row:
    """The row of a record that was read elsewhere; the addresses and ports stand for the cookie.

    Several sockets may listen on the same port (SO_REUSEPORT): of those the inode belongs to it.
    """
    ports = socket.local_port.to_bytes(2, "big") + socket.peer_port.to_bytes(2, "big")
    local, peer = (_unpacked(socket.family, address) for address in (socket.local, socket.peer))
    cookie = ports + local + peer
    if socket.state == LISTEN:
        cookie += b"%d" % socket.inode
    queues = socket.recv_queue, socket.send_queue
    return (
        socket.family,
        socket.state,
        ports,
        peer,
        cookie,
        *queues,
        socket.uid,
        socket.inode,
        NEVER_MS,
        NEVER_MS,
        NEVER_MS,
    )


def as_end(socket: Socket) -> End:
    """The local port and the destination of a record."""
    local, peer = (_unpacked(socket.family, address) for address in (socket.local, socket.peer))
    destination = _END.pack(socket.peer_port.to_bytes(2, "big"), local, peer, socket.interface)
    return socket.family, socket.state, socket.local_port.to_bytes(2, "big"), destination, socket.expires_ms


def parse_destination(family: int, destination: bytes) -> tuple[bytes, bytes, int, int]:
    """The local address, the peer's, its port, and the interface; IPv4-mapped addresses as IPv4."""
    port, local, peer, interface = _END.unpack(destination)
    return packed(family, local), packed(family, peer), int.from_bytes(port, "big"), interface


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


def _unpacked(family: int, address: bytes) -> bytes:
    if family == _IPV6 and len(address) == 4:
        return _MAPPED + address
    return address.ljust(16, b"\0")


def parse_info(value: bytes) -> TcpInfo | None:
    """A struct tcp_info of any kernel; None: shorter than any."""
    size = len(value)
    if size < _INFO_LEAST_BYTES:
        return None
    fields: list[int | None]
    if size >= _INFO.size:
        fields = [*_INFO.unpack_from(value)]
    else:
        fields = [
            field if end <= size else None for field, end in zip(_INFO.unpack(value.ljust(_INFO.size, b"\0")), _ENDS)
        ]
    if fields[_MIN_RTT] == NEVER_MS:  # not measured yet
        fields[_MIN_RTT] = None
    return TcpInfo(*_IN_ORDER(fields))


def parse_memory(value: bytes) -> SocketMemory | None:
    """The value of INET_DIAG_SKMEMINFO: drops since Linux 4.7."""
    if len(value) < _MEMORY.size:
        return None
    receive, receive_limit, _, send_limit, queued = _MEMORY.unpack_from(value)
    drops = _MEMORY_DROPS.unpack_from(value, _MEMORY.size)[0] if len(value) >= _MEMORY.size + 4 else None
    return SocketMemory(receive, receive_limit, queued, send_limit, drops)
