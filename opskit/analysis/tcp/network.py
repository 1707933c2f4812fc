"""Findings about all connections of a network namespace together: segments sent again, segments out of order, socket buffers. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import HOST, Finding
from opskit.analysis.tcp.space import change, changes, in_window, of_process, who
from opskit.analysis.tcp.window import fills_our_window
from opskit.proc.tcp_sockets import address_text
from opskit.quantities import duration, integers, listed, percent, plural, short_size, size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.collect.tcp.facts import Facts, Space, Watched
    from opskit.collect.tcp.host_facts import HostFacts

_ENOUGH, _ENOUGH_AGAIN = 1000, 20  # segments in the window
_SOME, _MUCH = 0.01, 0.05  # a server with mobile clients sends 1 to 3 % again all day
_DISORDER = 0.02
_SENT_AGAIN = (
    "Tcp.RetransSegs",
    "TcpExt.TCPSynRetrans",
    "TcpExt.TCPDSACKRecvSegs",
    "TcpExt.TCPDSACKRecv",
    "TcpExt.TCPOrigDataSent",
)
_FAR_US = 5000
_BUSY, _HELD_BACK, _AT_LIMIT = 0.5, 0.3, 0.9
_MOST_NAMED = 3


def network_findings(facts: Facts, space: Space) -> Iterator[Finding]:
    """The counters of a namespace."""
    yield from _sent_again(facts, space)
    yield from _out_of_order(facts, space)


def sent_again(host: HostFacts) -> tuple[int, int]:
    """Data segments that were sent again in the window, and all that were sent (on old kernels ACKs too).

    SYNs to a host that is down are no loss, nor are segments that the peer had already (tail loss probes).
    """
    known = "TcpExt.TCPDSACKRecvSegs" if "TcpExt.TCPDSACKRecvSegs" in host.last else "TcpExt.TCPDSACKRecv"
    again = max(0, change(host, "Tcp.RetransSegs") - change(host, "TcpExt.TCPSynRetrans") - change(host, known))
    # Neither counter has those that are sent again.
    new = change(host, "TcpExt.TCPOrigDataSent" if "TcpExt.TCPOrigDataSent" in host.last else "Tcp.OutSegs")
    return again, new + again


def _sent_again(facts: Facts, space: Space) -> Iterator[Finding]:
    host = space.host
    again, sent = sent_again(host)
    if sent < _ENOUGH or again < max(_ENOUGH_AGAIN, sent * _SOME):
        return
    share = again / sent
    yield Finding(
        "tcp-host-retransmits", "warning" if share >= _MUCH else "note", HOST,
        f"the host sent {percent(share)} of its TCP data segments again {in_window(facts)}: {again:,} of {sent:,}",
        changes(host, *_SENT_AGAIN), next=shell.command("ip", "-s", "link"), share=round(share, 4), window_s=facts.window_s,
    )  # fmt: skip


def _out_of_order(facts: Facts, space: Space) -> Iterator[Finding]:
    host = space.host
    late, received = change(host, "TcpExt.TCPOFOQueue"), change(host, "Tcp.InSegs")
    if received < _ENOUGH or late < max(_ENOUGH_AGAIN, received * _DISORDER):
        return
    share = min(1.0, late / received)
    yield Finding(
        "tcp-host-out-of-order", "note", HOST,
        f"{percent(share)} of the TCP segments that arrived {in_window(facts)} were out of order: the network on the way here loses "
        "segments or reorders them",
        changes(host, "TcpExt.TCPOFOQueue", "Tcp.InSegs"), share=round(share, 4), window_s=facts.window_s,
    )  # fmt: skip


class _Held(NamedTuple):
    """A connection that a buffer limits: its bytes, at most, the round trip, and whether the host's limit is reached."""

    connection: Watched
    limit_bytes: int
    rtt_us: int
    is_hosts: bool


def buffer_findings(facts: Facts) -> Iterator[Finding]:
    """Connections whose rate a socket buffer sets."""
    sampled = [each for each in facts.connections if each.samples]  # the busy ones
    for key, limits, what, option in (
        ("net.ipv4.tcp_rmem", _receiving, "receive", "SO_RCVBUF"),
        ("net.ipv4.tcp_wmem", _sending, "send", "SO_SNDBUF"),
    ):
        held = [one for each in sampled if (one := limits(facts, each)) is not None]
        if held:
            yield _small_buffers(facts, key, held, what, option)


def _receiving(facts: Facts, each: Watched) -> _Held | None:
    """A connection whose peer fills our window in each round trip: a larger buffer would make it faster."""
    info, memory = each.last.info, each.last.memory
    if info is None or memory is None or not fills_our_window(each, _FAR_US):
        return None
    at_limit = _at_limit(facts, "net.ipv4.tcp_rmem", memory.receive_limit)
    return _Held(each, info.rcv_ssthresh, info.min_rtt_us or 0, at_limit)


def _sending(facts: Facts, each: Watched) -> _Held | None:
    """A connection that the host's largest send buffer holds back; where the program chose it, that is the connection's verdict."""
    first, last, memory = each.first.info, each.last.info, each.last.memory
    if first is None or last is None or memory is None or each.elapsed_s <= 0 or not last.min_rtt_us:
        return None
    busy_us = (last.busy_us or 0) - (first.busy_us or 0)
    held_us = (last.sndbuf_limited_us or 0) - (first.sndbuf_limited_us or 0)
    is_held = busy_us > each.elapsed_s * 1e6 * _BUSY and held_us > busy_us * _HELD_BACK
    if not is_held or last.min_rtt_us < _FAR_US or not _at_limit(facts, "net.ipv4.tcp_wmem", memory.send_limit):
        return None
    return _Held(each, memory.send_limit, last.min_rtt_us, is_hosts=True)


def _at_limit(facts: Facts, key: str, limit_bytes: int) -> bool:
    bounds = _bounds(facts, key)
    return bounds is not None and limit_bytes >= bounds[2] * _AT_LIMIT


def _bounds(facts: Facts, key: str) -> list[int] | None:
    """The least, the initial and the largest buffer: `4096 131072 6291456`."""
    found = (integers(space.host.sysctls.get(key, "").split()) for space in facts.spaces)
    return next((bounds for bounds in found if bounds is not None and len(bounds) == 3), None)


def _small_buffers(facts: Facts, key: str, held: Sequence[_Held], what: str, option: str) -> Finding:
    slowest = min(held, key=lambda one: one.limit_bytes / one.rtt_us)
    socket, owner = slowest.connection.last, slowest.connection.owner
    rate = slowest.limit_bytes / slowest.rtt_us * 1e6
    bounds = _bounds(facts, key) if slowest.is_hosts else None
    larger = None if bounds is None else f"{key}={bounds[0]} {bounds[1]} {bounds[2] * 4}"
    cause = f"{key} allows {short_size(bounds[2])}" if bounds else f"the program or the kernel set it ({option})"
    places = listed(
        [address_text(one.connection.last.peer, one.connection.last.peer_port) for one in held], _MOST_NAMED
    )
    return Finding(
        "tcp-buffers-small", "note", HOST if bounds else of_process(owner),
        f"the {what} buffer limits {plural(len(held), 'connection')}: {who(owner)} with {address_text(socket.peer, socket.peer_port)} gets at "
        f"most {size(rate)} a second with {short_size(slowest.limit_bytes)} at a round trip of {duration(slowest.rtt_us / 1e6)}; {cause}",
        f"connections with {places}",
        fix=None if larger is None else shell.command("sysctl", larger), window_s=facts.window_s,
    )  # fmt: skip
