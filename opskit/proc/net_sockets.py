"""The sockets of a process's network namespace by inode: /proc/PID/net/{unix,netlink,packet,udp,raw,icmp,tcp} (net/*/proc.c).

unix:     Num RefCount Protocol Flags Type St Inode Path
0000000000000000: 00000003 00000000 00000000 0001 03 43219 /run/systemd/journal/stdout
netlink:  sk Eth Pid Groups Rmem Wmem Dump Locks Drops Inode
0000000000000000 0   4242  00000111 0        0        0    2        0        43220
packet:   sk RefCnt Type Proto Iface R Rmem User Inode
0000000000000000 3      3    0003   2     1 0      0      43221

udp, raw, icmp and their IPv6 siblings have the columns of tcp (proc/files/net_tcp.py).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.proc.files.net_tcp import host_of
from opskit.proc.fs import optional
from opskit.proc.tcp_sockets import LISTEN, STATES
from opskit.quantities import hexadecimal
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from opskit.proc.fs import ProcFS

_INET = re.compile(
    rb"^ *[0-9]+: ([0-9A-F]{8,32}):([0-9A-F]{4}) ([0-9A-F]{8,32}):([0-9A-F]{4}) ([0-9A-F]{2})"
    rb" [^ ]+ [^ ]+ [^ ]+ +[0-9]+ +[0-9]+ ([0-9]+)",
    re.MULTILINE,
)
_UNIX = re.compile(
    rb"^[0-9a-fA-F]+: [0-9A-F]+ [0-9A-F]+ ([0-9A-F]+) ([0-9A-F]+) ([0-9A-F]+) +([0-9]+)(?: ([^\n]*))?$", re.MULTILINE
)
_UNIX_TYPES = {b"0001": "stream", b"0002": "datagram", b"0005": "seqpacket"}
_UNIX_LISTENS, _UNIX_UNCONNECTED = 0x10000, b"01"
_AUTOBOUND = re.compile(rb"@[0-9a-f]{5}")  # unix(7), "Autobind feature"
_NETLINK = {
    b"0": "route", b"4": "sock_diag", b"6": "xfrm", b"7": "selinux", b"9": "audit", b"10": "fib_lookup", b"11": "connector",
    b"12": "netfilter", b"15": "kobject_uevent", b"16": "generic", b"18": "scsi_transport", b"20": "rdma", b"21": "crypto",
}  # fmt: skip
_NOBODY = (b"00000000", b"0" * 32)
# Ports that programs choose for themselves (net.ipv4.ip_local_port_range begins here).
_EPHEMERAL_FROM = 32768


class NamedSocket(NamedTuple):
    """A socket of a process. `state`, local and peer addresses are empty where the protocol has none.

    `port`: the local port of a connection to a port that is listened on, whose peer is `client`; 0 otherwise.
    """

    kind: str  # tcp, udp, unix, netlink, packet, socket
    detail: str
    local: str = ""
    peer: str = ""
    client: str = ""
    port: int = 0


def name_sockets(fs: ProcFS, parts: tuple[object, ...], inodes: Iterable[bytes]) -> dict[bytes, NamedSocket]:
    """What is known of these sockets; those of another network namespace, and those without an address, are left out.

    `parts`: the directory that has `net`: (PID,) or (PID, "task", TID). The files are read until all are found, TCP's last:
    each read of those walks a table that all namespaces share.
    """
    left = set(inodes)
    found: dict[bytes, NamedSocket] = {}
    for names, read in _FILES:
        if not left:
            break
        text = b"".join(optional(fs.read, *parts, "net", name, default=b"") for name in names)
        found.update(read(text, left))
        left.difference_update(found)
    return found


def _unix(text: bytes, wanted: set[bytes]) -> Iterator[tuple[bytes, NamedSocket]]:
    for flags, type_, state, inode, path in _UNIX.findall(text):
        if inode in wanted:
            shown = (
                "with a name of the kernel's" if _AUTOBOUND.fullmatch(path) else path.decode("utf-8", "surrogateescape")
            )
            listens = (hexadecimal(flags) or 0) & _UNIX_LISTENS
            how = "listening" if listens else "unconnected" if state == _UNIX_UNCONNECTED and not path else ""
            words = (_UNIX_TYPES.get(type_, ""), how, shown)
            yield inode, NamedSocket("unix", " ".join(word for word in words if word))


def _netlink(text: bytes, wanted: set[bytes]) -> Iterator[tuple[bytes, NamedSocket]]:
    for words in _rows(text, 10):
        if words[9] in wanted:
            yield (
                words[9],
                NamedSocket("netlink", _NETLINK.get(words[1], f"protocol {words[1].decode('ascii', 'replace')}")),
            )


def _packet(text: bytes, wanted: set[bytes]) -> Iterator[tuple[bytes, NamedSocket]]:
    for words in _rows(text, 9):
        if words[8] in wanted:
            yield words[8], NamedSocket("packet", f"protocol 0x{words[3].decode('ascii', 'replace')}")


def _rows(text: bytes, most: int) -> Iterator[list[bytes]]:
    rows = (line.split(None, most) for line in text.split(b"\n"))
    return (words for words in rows if len(words) >= most)


def _udp(text: bytes, wanted: set[bytes]) -> Iterator[tuple[bytes, NamedSocket]]:
    for local, local_port, peer, port, _, inode in _INET.findall(text):
        if inode in wanted:
            yield inode, _datagram((local, local_port), (peer, port))


def _raw(text: bytes, wanted: set[bytes]) -> Iterator[tuple[bytes, NamedSocket]]:
    for local, _, peer, _, _, inode in _INET.findall(text):
        if inode in wanted:
            to = "" if peer in _NOBODY else f" to {_host(peer)}"
            yield inode, NamedSocket("socket", f"raw or ping{to}", _host(local), _host(peer))


def _datagram(local: tuple[bytes, bytes], peer: tuple[bytes, bytes]) -> NamedSocket:
    port = hexadecimal(local[1]) or 0
    if peer[0] not in _NOBODY:
        detail = f"to {_address(*peer)}"
    elif port < _EPHEMERAL_FROM:
        detail = f"on port {port}"
    else:
        detail = f"on a port above {_EPHEMERAL_FROM - 1}"
    return NamedSocket("udp", detail, _address(*local), _address(*peer))


def _tcp(text: bytes, wanted: set[bytes]) -> Iterator[tuple[bytes, NamedSocket]]:
    rows = _INET.findall(text)
    listen = b"%02X" % LISTEN
    listening = {local_port for _, local_port, _, _, state, _ in rows if state == listen}
    outbound: dict[tuple[bytes, bytes, bytes], str] = {}  # one text for all connections to a peer
    hosts: dict[bytes, str] = {}

    def host(digits: bytes) -> str:
        if digits not in hosts:
            hosts[digits] = _host(digits)
        return hosts[digits]

    for local, local_port, peer, port, state, inode in rows:
        if inode not in wanted:
            continue
        number = hexadecimal(local_port) or 0
        here = f"{host(local)}:{number}"
        if state == listen:
            yield inode, NamedSocket("tcp", f"LISTEN on {here}", here)
            continue
        key = state, peer, port
        if key not in outbound:
            outbound[key] = f"{state_name(state)} to {_address(peer, port)}"
        there = outbound[key].rpartition(" ")[2]
        if local_port in listening:
            yield inode, NamedSocket("tcp", state_name(state), here, there, host(peer), number)
        else:
            yield inode, NamedSocket("tcp", outbound[key], here, there)


def state_name(digits: bytes) -> str:
    """`ESTAB`, `CLOSE_WAIT` of the number in hexadecimal digits."""
    number = hexadecimal(digits) or 0
    return STATES[number].replace("-", "_") if 0 < number < len(STATES) else f"state {number}"


def _host(digits: bytes) -> str:
    return host_of(digits.decode("ascii")) or "?"


def _address(host: bytes, port: bytes) -> str:
    return f"{_host(host)}:{hexadecimal(port) or 0}"


_FILES: tuple[tuple[tuple[str, ...], Callable[[bytes, set[bytes]], Iterator[tuple[bytes, NamedSocket]]]], ...] = (
    (("unix",), _unix),
    (("netlink",), _netlink),
    (("packet",), _packet),
    (("udp", "udp6", "udplite", "udplite6"), _udp),
    (("raw", "raw6", "icmp", "icmp6"), _raw),
    (("tcp", "tcp6"), _tcp),
)
