"""The values of groups and connections: columns of the tables, keys of the JSON object, metrics."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opskit.analysis.tcp.words import connection_answer, sentence
from opskit.proc.tcp_sockets import STATES, address_text, host_text
from opskit.quantities import duration, listed, percent, short_duration, size
from opskit.render.cells import or_dash, rounded_at
from opskit.render.fields import COUNT, FLAG, ID, NUMBER, SHARE, SIZE, TEXT, Field, list_of, map_of, record, records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.analysis.tcp.result import Group, Judged, Shares
    from opskit.collect.fd_threads import FdThread
    from opskit.collect.tcp.facts import Closing, Owner


def _whole(name: str) -> Callable[[Any], int | None]:
    read = attrgetter(f"rates.{name}")

    def value(row: Any) -> int | None:
        found = read(row)
        return None if found is None else round(found)

    return value


def _ms_text(ms: float) -> str:
    return duration(ms / 1000)


SHARES: Sequence[Field[Shares]] = (
    Field("peer", SHARE, value=lambda shares: round(shares.peer, 4), help="the peer's application"),
    Field("network", SHARE, value=lambda shares: round(shares.network, 4)),
    Field("here", SHARE, value=lambda shares: round(shares.here, 4), help="this application"),
)
# Of a group or of a connection. The titles are columns of -f text.
RATES: Sequence[Field[Any]] = (
    Field("sent_bytes_per_s", SIZE, "sent per s", _whole("sent_bytes_s"), help="acknowledged by the peer"),
    Field("received_bytes_per_s", SIZE, "received per s", _whole("received_bytes_s")),
    Field("rtt_ms", NUMBER, "rtt ms", rounded_at("rates.rtt_ms", 3), help="smoothed round trip time"),
    Field("min_rtt_ms", NUMBER, "min rtt ms", rounded_at("rates.min_rtt_ms", 3), help="the least so far"),
    Field("loss", SHARE, "loss", rounded_at("rates.loss", 6), help="0 to 1: bytes sent again, of all sent"),
    Field("out_of_order", SHARE, "out of order", rounded_at("rates.out_of_order", 6), help="0 to 1, of the segments received"),
    Field("busy", SHARE, "busy", rounded_at("rates.busy", 4), help="0 to 1, of the window: data was on its way"),
    Field("rwnd_limited", SHARE, "rwnd limited", rounded_at("rates.rwnd_limited", 4), help="0 to 1, of the busy time: the peer's window was full"),
    Field("sndbuf_limited", SHARE, "sndbuf limited", rounded_at("rates.sndbuf_limited", 4), help="0 to 1, of the busy time: the send buffer was full"),
    Field("receive_queue_bytes", SIZE, "recv queue", attrgetter("rates.recv_queue_bytes"), help="not read by this application"),
    Field("send_queue_bytes", SIZE, "send queue", attrgetter("rates.send_queue_bytes"), help="not acknowledged by the peer"),
)  # fmt: skip
TABLE_RATES: Sequence[Field[Any]] = (
    Field("sent", SIZE, "sent", _whole("sent_bytes_s"), show=or_dash(lambda it: f"{size(it)}/s"), rank=2),
    Field("received", SIZE, "received", _whole("received_bytes_s"), show=or_dash(lambda it: f"{size(it)}/s"), rank=3),
    Field("rtt", NUMBER, "RTT", attrgetter("rates.rtt_ms"), show=or_dash(_ms_text), rank=5),
    Field("min_rtt", NUMBER, "least", attrgetter("rates.min_rtt_ms"), show=or_dash(_ms_text), rank=6),
    Field("loss", SHARE, "lost", attrgetter("rates.loss"), show=or_dash(percent), rank=4),
    Field("busy", SHARE, "busy", attrgetter("rates.busy"), show=or_dash(percent), rank=7),
)  # fmt: skip


OWNER: Sequence[Field[Owner]] = (
    Field("pid", ID),
    Field("start_ticks", ID),
    Field("command"),
    Field("fd", ID),
    Field("others", COUNT, help="how many more processes have the socket open"),
    Field("is_jvm", FLAG),
)
THREAD: Sequence[Field[FdThread]] = (
    Field("fd", ID),
    Field("tid", ID),
    Field("name", help="of the Java thread, else of the kernel's"),
    Field("call", help="the system call that it sleeps in"),
    Field("among", COUNT, help="how many fds the call waits for"),
    Field("frames", list_of(TEXT), value=lambda thread: [*thread.frames], help="its Java stack, innermost first (--ask)"),
)  # fmt: skip


def _last(name: str) -> Callable[[Judged], Any]:
    return attrgetter(f"connection.last.{name}")


def _part(whole: str, name: str) -> Callable[[Judged], Any]:
    """A value of tcp_info or of the socket's memory, which not every source has."""
    read, of_part = _last(whole), attrgetter(name)

    def value(row: Judged) -> Any:
        part = read(row)
        return None if part is None else of_part(part)

    return value


def owner_of(judged: Judged) -> Owner | None:
    """The process that has the connection open."""
    return judged.connection.owner


def host_name(packed: bytes) -> str:
    """`10.0.0.7`, `2001:db8::7`: without the brackets that a port needs."""
    return host_text(packed).strip("[]")


def state_name(number: int) -> str:
    """`ESTAB`; the number of a state that is not known."""
    return STATES[number] if 0 < number < len(STATES) else str(number)


def local_text(judged: Judged) -> str:
    """`10.0.0.2:41884`."""
    socket = judged.connection.last
    return address_text(socket.local, socket.local_port)


def peer_text(judged: Judged) -> str:
    """`10.0.0.7:5432`."""
    socket = judged.connection.last
    return address_text(socket.peer, socket.peer_port)


CONNECTION: Sequence[Field[Judged]] = (
    Field("owner", record(OWNER), value=owner_of, help="null: no process has it, or it cannot be read"),
    Field("uid", ID, value=_last("uid"), help="of the socket"),
    Field("inode", ID, value=_last("inode")),
    Field("local", TEXT, value=local_text),
    Field("peer", TEXT, value=peer_text),
    Field("state", value=lambda row: state_name(row.connection.last.state)),
    Field("inbound", FLAG, value=attrgetter("connection.inbound"), help="its local port is listened on here"),
    Field("verdict"),
    Field("sentence", value=connection_answer, help="the verdict with its numbers"),
    Field("shares", record(SHARES), help="of requests and responses"),
    Field("sampled", FLAG, help="looked at 20 to 50 times a second, not at both ends of the window alone"),
    Field("elapsed_s", NUMBER, value=lambda row: round(row.connection.elapsed_s, 3)),
    *RATES,
    Field("bytes_sent_total", SIZE, value=_part("info", "bytes_sent"), help="since the connection was made; so the next ones"),
    Field("bytes_acked_total", SIZE, value=_part("info", "bytes_acked")),
    Field("bytes_received_total", SIZE, value=_part("info", "bytes_received")),
    Field("segments_retransmitted_total", COUNT, value=_part("info", "total_retrans")),
    Field("last_data_sent_ms", NUMBER, value=_part("info", "last_data_sent_ms"), help="how long ago"),
    Field("last_data_received_ms", NUMBER, value=_part("info", "last_data_recv_ms"), help="how long ago"),
    Field("rto_ms", NUMBER, value=lambda row: _ms(_part("info", "rto_us")(row)), help="retransmission timeout"),
    Field("congestion_window_segments", COUNT, value=_part("info", "snd_cwnd")),
    Field("mss_bytes", SIZE, value=_part("info", "snd_mss")),
    Field("path_mtu_bytes", SIZE, value=_part("info", "pmtu")),
    Field("peer_window_bytes", SIZE, value=_part("info", "snd_wnd")),
    Field("receive_buffer_bytes", SIZE, value=_part("memory", "receive_limit"), help="SO_RCVBUF"),
    Field("send_buffer_bytes", SIZE, value=_part("memory", "send_limit"), help="SO_SNDBUF"),
    Field("threads", records(THREAD), value=lambda row: [*row.connection.threads], help="that wait on its fd"),
)  # fmt: skip


def _ms(us: int | None) -> float | None:
    return None if us is None else us / 1000


GROUP: Sequence[Field[Group]] = (
    Field("command", help="null: the process cannot be read, or there is none"),
    Field("pids", list_of(ID), value=lambda group: [*group.pids]),
    Field("inbound", FLAG, help="the peers have connected to our port; else we to theirs"),
    Field("host", value=lambda group: host_name(group.host), help="the peer's address"),
    Field("port", ID, help="inbound: ours, else the peer's"),
    Field("connections", COUNT),
    Field("verdict", help="see docs/commands/tcp.md"),
    Field("sentence", value=sentence),
    Field("verdicts", map_of(COUNT), value=lambda group: dict(group.verdicts), help="how many connections have each"),
    Field("shares", record(SHARES), help="of requests and responses"),
    *RATES,
    Field(
        "judged",
        records(CONNECTION),
        value=lambda group: [*group.judged],
        help="its connections, the worst first; where there are many, without the idle ones",
    ),
)
CLOSING: Sequence[Field[Closing]] = (
    Field("owner", record(OWNER)),
    Field("command", TEXT, "process", lambda it: it.owner.command if it.owner else "", json=False, shrinks=12),
    Field("pid", ID, "pid", lambda it: it.owner.pid if it.owner else None, json=False),
    Field("host", value=lambda it: host_name(it.host), help="the peer's address"),
    Field("port", ID, help="inbound: ours, else the peer's"),
    Field("inbound", FLAG),
    Field("peer", TEXT, "peer", lambda it: address_text(it.host, it.port) if not it.inbound else host_name(it.host), json=False, shrinks=15),
    Field("first", COUNT, value=attrgetter("first"), help="at the begin of the window"),
    Field("last", COUNT, "CLOSE-WAIT", help="at its end"),
    Field("lasting", COUNT, help="of the first ones, those that are still there at its end"),
    Field("oldest_ms", NUMBER, value=attrgetter("oldest_ms"), help="since the last ACK from the peer: at least as long ago"),
    Field("oldest", TEXT, "since", lambda it: _age(it.oldest_ms), json=False, right=True),
    Field("fds", list_of(ID), value=lambda it: [*it.fds]),
    Field("some_fds", TEXT, "fds", lambda it: listed([*map(str, it.fds)], 5), json=False, shrinks=8, rank=1),
    Field("threads", records(THREAD), value=lambda it: [*it.threads]),
)  # fmt: skip


def _age(ms: int | None) -> str:
    return "-" if ms is None else short_duration(ms / 1000)
