"""What the sockets of a process are: protocol, state and peer, from the tables of its network namespace.

TCP's and unix sockets by sock_diag(7) where it is our own namespace; the others, and those of another one, from /proc/PID/net (net/*/proc.c):

netlink:  sk Eth Pid Groups Rmem Wmem Dump Locks Drops Inode
0000000000000000 0   4242  00000111 0        0        0    2        0        43220
packet:   sk RefCnt Type Proto Iface R Rmem User Inode
0000000000000000 3      3    0003   2     1 0      0      43221

udp, raw, icmp and their IPv6 siblings have the columns of tcp (proc/files/net_tcp.py).
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Any, TypeVar

from opskit.proc.files.net_tcp import packed_address
from opskit.proc.fs import optional
from opskit.proc.inet_diag import is_uniform, packed
from opskit.proc.kernel.sock_diag import ALL_STATES
from opskit.proc.tcp_sockets import LISTEN, STATES, TIME_WAIT, host_text
from opskit.proc.unix_sockets import describe, parse_messages, parse_net_unix
from opskit.quantities import hexadecimal, integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from opskit.proc.fs import ProcFS
    from opskit.proc.network import Network
    from opskit.proc.unix_sockets import UnixSocket

T = TypeVar("T")
SOCKET_PREFIX = b"socket:["
_INET = re.compile(
    rb"^ *[0-9]+: ([0-9A-F]{8,32}):([0-9A-F]{4}) ([0-9A-F]{8,32}):([0-9A-F]{4}) ([0-9A-F]{2})"
    rb" [^ \n]+ [^ \n]+ [^ \n]+ +[0-9]+ +[0-9]+ ([0-9]+)",
    re.MULTILINE,
)
_NETLINK = {
    b"0": "route", b"4": "sock_diag", b"6": "xfrm", b"7": "selinux", b"9": "audit", b"10": "fib_lookup", b"11": "connector",
    b"12": "netfilter", b"15": "kobject_uevent", b"16": "generic", b"18": "scsi_transport", b"20": "rdma", b"21": "crypto",
}  # fmt: skip
_NOBODY = (b"00000000", b"0" * 32)
# Ports that programs do not choose themselves (net.ipv4.ip_local_port_range begins here).
_EPHEMERAL_FROM = 32768
_HEAD = "=16xBB2x2s2s16s16s28xI"  # struct inet_diag_msg behind its header
_MESSAGE, _LENGTH = struct.Struct(_HEAD), struct.Struct("=I")

# (family, state, local port, peer's port, local host, peer's host, inode): bytes of a message, or digits of a file with family 0.
_Row = tuple[int, int, bytes, bytes, bytes, bytes, int]


class NamedSocket(NamedTuple):
    """What sockets of a process have in common: protocol, state and peer.

    `port`: the local port of connections to a port that is listened on, whose peer's host is `client`; 0 otherwise.
    """

    kind: str  # tcp, udp, unix, netlink, packet, socket
    detail: str
    client: str = ""
    port: int = 0


class _Names:
    """The names that were found, and the place in them of each socket that is wanted; `left`: those without a name yet, by inode."""

    def __init__(self, targets: Sequence[bytes]) -> None:
        self.left: dict[int | None, bytes] = {}
        try:
            self.left = {int(target[len(SOCKET_PREFIX) : -1]): target for target in targets}  # a number of the kernel's
        except ValueError:  # a copy may have anything
            self.left = {integer(target[len(SOCKET_PREFIX) : -1]): target for target in targets}
        for none in (None, 0):
            self.left.pop(none, None)
        self.names: list[NamedSocket] = []
        self.places: dict[bytes, int] = {}
        self._known: dict[tuple[object, ...], int] = {}

    def add(self, inode: int | None, name: Callable[..., NamedSocket], *key: object) -> None:
        """Name a socket, if it is wanted: name(*key), called once for each key."""
        target = self.left.pop(inode, None)
        if target is not None:
            self.places[target] = self.place((name, *key))

    def place(self, key: tuple[Any, ...]) -> int:
        """The place of the name that key[0] makes of the rest."""
        place = self._known.get(key)
        if place is None:
            place = self._known[key] = len(self.names)
            self.names.append(key[0](*key[1:]))
        return place


def name_sockets(
    fs: ProcFS, parts: tuple[object, ...], targets: Sequence[bytes]
) -> tuple[list[NamedSocket], dict[bytes, int]]:
    """What is known of these sockets, each `socket:[8121]`: names, and the place in them of each target.

    Those of another network namespace, and those without an address, are left out. `parts`: the directory that has `net`: (PID,) or
    (PID, "task", TID). TCP's are read last: a look at them walks a table that all network namespaces share.
    """
    found = _Names(targets)
    is_ours = bool(found.left) and _is_ours(fs, parts)
    if found.left:
        sockets = _dumped(fs, _unix_messages, parse_messages) if is_ours else None
        _add_unix(parse_net_unix(_read(fs, parts, ("unix",))) if sockets is None else sockets, found)
    for names, add in _FILES:
        if found.left:
            add(_read(fs, parts, names), found)
    if found.left:
        rows = _dumped(fs, _tcp_without_info, _messages) if is_ours else None
        _add_tcp(_written(_read(fs, parts, ("tcp", "tcp6"))) if rows is None else rows, found)
    return found.names, found.places


def _read(fs: ProcFS, parts: tuple[object, ...], names: Iterable[str]) -> bytes:
    return b"".join(optional(fs.read, *parts, "net", name, default=b"") for name in names)


def _is_ours(fs: ProcFS, parts: tuple[object, ...]) -> bool:
    if not fs.is_own():
        return False
    theirs, ours = (optional(fs.link, *where, "ns", "net") for where in (parts, ("self",)))
    return theirs is not None and theirs == ours


def _add_unix(sockets: Iterable[UnixSocket], found: _Names) -> None:
    sockets = [*sockets]
    names = {each.inode: each.name for each in sockets if each.name}
    for inode, type_, state, name, peer in sockets:
        found.add(inode, _unix, type_, state, name, names.get(peer, b""))


def _unix(type_: int, state: int, name: bytes, peer: bytes) -> NamedSocket:
    return NamedSocket("unix", describe(type_, state, name, peer))


def _add_netlink(text: bytes, found: _Names) -> None:
    for words in _rows(text, 10):
        found.add(integer(words[9]), _netlink, words[1])


def _netlink(protocol: bytes) -> NamedSocket:
    return NamedSocket("netlink", _NETLINK.get(protocol) or f"protocol {protocol.decode('ascii', 'replace')}")


def _add_packet(text: bytes, found: _Names) -> None:
    for words in _rows(text, 9):
        found.add(integer(words[8]), _packet, words[3])


def _packet(protocol: bytes) -> NamedSocket:
    return NamedSocket("packet", f"protocol 0x{protocol.decode('ascii', 'replace')}")


def _rows(text: bytes, most: int) -> Iterator[list[bytes]]:
    rows = (line.split(None, most) for line in text.split(b"\n"))
    return (words for words in rows if len(words) >= most)


def _add_udp(text: bytes, found: _Names) -> None:
    for local, local_port, peer, port, _, inode in _INET.findall(text):
        if peer not in _NOBODY:
            found.add(integer(inode), _udp_to, peer, port)
        elif (hexadecimal(local_port) or 0) < _EPHEMERAL_FROM:
            found.add(integer(inode), _udp_on, local, local_port)
        else:
            found.add(integer(inode), _udp_unconnected)


def _udp_to(peer: bytes, port: bytes) -> NamedSocket:
    return NamedSocket("udp", f"to {_address(0, peer, port)}")


def _udp_on(host: bytes, port: bytes) -> NamedSocket:
    return NamedSocket("udp", f"on {_address(0, host, port)}")


def _udp_unconnected() -> NamedSocket:
    return NamedSocket("udp", f"on a port above {_EPHEMERAL_FROM - 1}")


def _add_raw(text: bytes, found: _Names) -> None:
    for _, _, peer, _, _, inode in _INET.findall(text):
        found.add(integer(inode), _raw, peer)


def _raw(peer: bytes) -> NamedSocket:
    return NamedSocket("socket", "raw or ping" if peer in _NOBODY else f"raw or ping to {_host(0, peer)}")


_FILES: tuple[tuple[tuple[str, ...], Callable[[bytes, _Names], None]], ...] = (
    (("netlink",), _add_netlink),
    (("packet",), _add_packet),
    (("udp", "udp6", "udplite", "udplite6"), _add_udp),
    (("raw", "raw6", "icmp", "icmp6"), _add_raw),
)


def _dumped(
    fs: ProcFS, dump: Callable[[Network], Iterable[bytes]], parse: Callable[[bytes], Iterable[T]]
) -> list[T] | None:
    """The sockets of our network namespace in a dump; None where the kernel does not tell them."""
    try:
        network = fs.calls.network()
    except OSError:
        return None
    try:
        network.connect()
        return [each for chunk in dump(network) for each in parse(chunk)]
    except OSError:
        return None
    finally:
        network.close()


def _unix_messages(network: Network) -> Iterable[bytes]:
    return network.dump_unix()


def _tcp_without_info(network: Network) -> Iterable[bytes]:
    return network.dump(ALL_STATES & ~(1 << TIME_WAIT), asked=0)  # those have no process any more


def _messages(chunk: bytes) -> Iterable[_Row]:
    """The rows of a chunk of whole messages; one that is cut ends it."""
    start, size = 0, len(chunk)
    length = _LENGTH.unpack_from(chunk)[0] if size >= _MESSAGE.size else 0
    if length >= _MESSAGE.size and not size % length and is_uniform(chunk, length, _LENGTH.size):
        rows: Iterable[_Row] = struct.Struct(f"{_HEAD}{length - _MESSAGE.size}x").iter_unpack(chunk)
        return rows
    found: list[_Row] = []
    while length >= _MESSAGE.size and start + length <= size:
        found.append(_MESSAGE.unpack_from(chunk, start))
        start += length + 3 & ~3
        length = _LENGTH.unpack_from(chunk, start)[0] if start + _LENGTH.size <= size else 0
    return found


def _written(text: bytes) -> Iterator[_Row]:
    """The rows of /proc/PID/net/tcp and tcp6."""
    for local, local_port, peer, port, state, inode in _INET.findall(text):
        yield 0, hexadecimal(state) or 0, local_port, port, local, peer, integer(inode) or 0


def _add_tcp(rows: Iterable[_Row], found: _Names) -> None:
    rows = [*rows]
    listening = {local_port for _, state, local_port, _, _, _, _ in rows if state == LISTEN}
    key: tuple[object, ...]
    for family, state, local_port, port, local, peer, inode in rows:
        target = found.left.pop(inode, None)
        if target is None:
            continue
        if state == LISTEN:
            key = _listener, family, local, local_port
        elif local_port in listening:
            key = _inbound, family, state, peer, local_port
        else:
            key = _outbound, family, state, peer, port
        found.places[target] = found.place(key)


def _listener(family: int, host: bytes, port: bytes) -> NamedSocket:
    return NamedSocket("tcp", f"LISTEN on {_address(family, host, port)}")


def _inbound(family: int, state: int, peer: bytes, port: bytes) -> NamedSocket:
    return NamedSocket("tcp", state_name(state), _host(family, peer), _port(family, port))


def _outbound(family: int, state: int, peer: bytes, port: bytes) -> NamedSocket:
    return NamedSocket("tcp", f"{state_name(state)} to {_address(family, peer, port)}")


def state_name(state: int) -> str:
    """`ESTAB`, `CLOSE_WAIT`."""
    return STATES[state].replace("-", "_") if 0 < state < len(STATES) else f"state {state}"


def _address(family: int, host: bytes, port: bytes) -> str:
    return f"{_host(family, host)}:{_port(family, port)}"


def _port(family: int, port: bytes) -> int:
    return int.from_bytes(port, "big") if family else hexadecimal(port) or 0


def _host(family: int, host: bytes) -> str:
    if family:
        return host_text(packed(family, host))
    address = packed_address(host.decode("ascii"))
    return "?" if address is None else host_text(address)
