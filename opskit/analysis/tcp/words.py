"""Sentences about connections and groups of them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.tcp import result as verdicts
from opskit.analysis.tcp.shares import FEWEST_LOOKS, has_long_messages
from opskit.analysis.tcp.window import is_same_machine, looks, min_rtt_us, window_of
from opskit.proc.tcp_sockets import SYN_SENT, address_text, host_text
from opskit.quantities import duration, percent, plural, size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opskit.analysis.tcp.result import Group, Judged, Rates, Shares
    from opskit.collect.tcp.facts import Watched

# Of one connection among others: `20 request/response, 6 idle`.
VERDICT_WORDS: Mapping[str, str] = {
    verdicts.READER_HERE: "not read by this application",
    verdicts.READER_THERE: "not read by the peer",
    verdicts.BLACK_HOLE: "in an MTU black hole",
    verdicts.UNANSWERED: "without an answer",
    verdicts.LOSS: "with loss",
    verdicts.QUEUEING: "queueing",
    verdicts.SEND_BUFFER: "limited by our send buffer",
    verdicts.PEER_WINDOW: "limited by the peer's receive window",
    verdicts.OWN_WINDOW: "limited by our receive buffer",
    verdicts.BANDWIDTH: "limited by bandwidth",
    verdicts.REQUESTS: "request/response",
    verdicts.WRITER_HERE: "waiting for this application to write",
    verdicts.WRITER_THERE: "waiting for the peer to write",
    verdicts.IDLE: "idle",
    verdicts.UNKNOWN: "unknown",
}
_OWNERS = ("the peer's application", "the network", "this application")
_SEEN_OUT_OF_ORDER = 0.01
_OFTEN = 0.5
_LONGEST_ANSWER_MS = 600_000


class _Said(NamedTuple):
    """What an answer is made of: the numbers, and the connections that they sum up."""

    rates: Rates
    connections: Sequence[Watched]


def subject(group: Group) -> str:
    """`orders -> 10.0.0.7:5432 (20 connections)`; of connections that the peer made `10.0.0.9 -> orders:8080 (1 connection)`."""
    return f"{_ends(group.command, group.inbound, group.host, group.port)} ({plural(group.connections, 'connection')})"


def connection_subject(judged: Judged) -> str:
    """`orders -> 10.0.0.7:5432 from port 41884`, `10.0.0.9:41884 -> orders:8080`."""
    connection, last = judged.connection, judged.connection.last
    command = None if connection.owner is None else connection.owner.command
    if connection.inbound:
        return f"{address_text(last.peer, last.peer_port)} -> {command or ''}:{last.local_port}"
    return f"{_ends(command, False, last.peer, last.peer_port)} from port {last.local_port}"


def _ends(command: str | None, inbound: bool, host: bytes, port: int) -> str:
    if inbound:
        return f"{host_text(host)} -> {command or ''}:{port}"
    return f"{command or ''} -> {address_text(host, port)}".lstrip()


def sentence(group: Group) -> str:
    """`orders -> 10.0.0.7:5432 (20 connections): the peer's application takes 83 % of the time (request/response: …)`."""
    return f"{subject(group)}: {answer(group)}"


def answer(group: Group) -> str:
    """The verdict of a group with its numbers."""
    if group.verdict == verdicts.REQUESTS and group.shares is not None:
        parts = percents(group.shares)
        most, owner = max(zip(parts, _OWNERS), key=lambda each: each[0])
        return f"{owner} takes {most} % of the time ({shares_text(group.shares)})"
    same = [each.connection for each in group.judged if each.verdict == group.verdict]
    members = same or [each.connection for each in group.judged]  # loss may be that of all together
    return _ANSWERS[group.verdict](_Said(group.rates, members))


def connection_answer(judged: Judged) -> str:
    """The verdict of a connection with its numbers."""
    if judged.shares is not None:
        return shares_text(judged.shares)
    return _ANSWERS[judged.verdict](_Said(judged.rates, [judged.connection]))


def shares_text(shares: Shares) -> str:
    """`request/response: peer's application 67 %, network 27 %, this application 6 %`."""
    peer, network, here = percents(shares)
    return f"request/response: peer's application {peer} %, network {network} %, this application {here} %"


def percents(shares: Shares) -> tuple[int, int, int]:
    """Whole percents whose sum is 100: the largest remainders are rounded up."""
    exact = [share * 100 for share in shares]
    floors = [int(each) for each in exact]
    for place in sorted(range(3), key=lambda at: floors[at] - exact[at])[: 100 - sum(floors)]:
        floors[place] += 1
    peer, network, here = floors
    return peer, network, here


def _rate(bytes_s: float | None) -> str:
    return f"{size(bytes_s)}/s"


def _ms(ms: float | None) -> str:
    return duration(None if ms is None else ms / 1000)


def _is_still(connections: Sequence[Watched], name: str) -> bool:
    """Whether none of them moved any byte."""
    windows = [window_of(each) for each in connections]
    return all(window is None or not getattr(window, name) for window in windows)


def _queued(connections: Sequence[Watched], name: str) -> str:
    waiting = sum(getattr(each.last, name) for each in connections)
    return f"{size(waiting)} {'waits' if waiting == 1 else 'wait'}"


def _span(connections: Sequence[Watched]) -> str:
    return duration(max(each.elapsed_s for each in connections))


def _reader_here(it: _Said) -> str:
    waits = _queued(it.connections, "recv_queue")
    if _is_still(it.connections, "read"):
        unaccepted = all(each.inbound and not each.last.inode for each in it.connections)
        why = "it has not accepted the connection" if unaccepted else f"none of it was read in {_span(it.connections)}"
        return f"this application does not read: {waits} in its receive queue, {why}"
    windows = [window for each in it.connections if (window := window_of(each))]
    read_s = sum(window.per_s(window.read) or 0.0 for window in windows)
    queued = sum(each.last.recv_queue for each in it.connections)
    late = f" for {duration(queued / read_s)}" if read_s else ""
    return f"this application does not read fast enough: {_rate(read_s)}; {waits}{late} in its receive queue"


def _reader_there(it: _Said) -> str:
    waits = _queued(it.connections, "send_queue")
    if _is_still(it.connections, "acked"):
        return f"the peer does not read: its window is closed, {waits}, none of it was taken in {_span(it.connections)}"
    full = f"its window was full {percent(it.rates.rwnd_limited)} of the busy time, " if it.rates.rwnd_limited else ""
    return f"the peer does not read fast enough: {_rate(it.rates.sent_bytes_s)}; {full}{waits} here"


def _black_hole(it: _Said) -> str:
    mss = max(each.last.info.snd_mss for each in it.connections if each.last.info is not None)
    return f"MTU black hole: full segments ({mss:,} bytes) are sent again and again without an acknowledgement, smaller ones arrive"


def _unanswered(it: _Said) -> str:
    times = max(
        max(each.last.retransmits, each.last.info.retransmits if each.last.info else 0) for each in it.connections
    )
    again = f"sent again {plural(times, 'time')}"
    if all(each.last.state == SYN_SENT for each in it.connections):
        return f"the peer does not answer: no connection yet, the SYN was {again}"
    ages = [each.last.info.last_ack_recv_ms for each in it.connections if each.last.info is not None]
    since = f", last acknowledgement {duration(max(ages) / 1000)} ago" if ages else ""
    return f"the peer does not answer: data was {again}{since}; the path or the peer is down"


def _loss(it: _Said) -> str:
    windows = [window for each in it.connections if (window := window_of(each))]
    again, segments = sum(each.resent_segments or 0 for each in windows), sum(each.data_out or 0 for each in windows)
    of = f" of {plural(segments, 'segment')}" if segments else ""
    return f"the network loses {percent(it.rates.loss)}: {again:,}{of} had to be sent again; {_pace(it.rates)}"


def _pace(rates: Rates) -> str:
    return f"{_rate(rates.sent_bytes_s)} at RTT {_ms(rates.rtt_ms)}"


def _queueing(it: _Said) -> str:
    times = it.rates.rtt_ms / it.rates.min_rtt_ms if it.rates.rtt_ms and it.rates.min_rtt_ms else 0.0
    factor = f"{times:.0f}" if times >= 10 else f"{times:.1f}"
    over = f"queueing: RTT {_ms(it.rates.rtt_ms)}, {factor} times its minimum of {_ms(it.rates.min_rtt_ms)}"
    return f"{over}; {_rate(it.rates.sent_bytes_s)} are all the bandwidth of the path"


def _send_buffer(it: _Said) -> str:
    limits = [each.last.memory.send_limit for each in it.connections if each.last.memory is not None]
    of = f" ({size(max(limits))})" if limits else ""
    waited = f"the writer waited for space {percent(it.rates.sndbuf_limited)} of the busy time"
    return f"our send buffer{of} is too small: {waited}; {_pace(it.rates)}"


def _peer_window(it: _Said) -> str:
    windows = [look.snd_wnd for each in it.connections for look in looks(each) if look.snd_wnd is not None]
    of = f" ({size(max(windows))})" if windows else ""
    return f"the peer's receive window{of} is too small: it was full {percent(it.rates.rwnd_limited)} of the busy time; {_pace(it.rates)}"


def _own_window(it: _Said) -> str:
    limits = [each.last.info.rcv_ssthresh for each in it.connections if each.last.info is not None]
    of = f"allows a window of {size(max(limits))} and " if limits else ""
    return f"our receive buffer {of}is too small: {_rate(it.rates.received_bytes_s)} at RTT {_ms(it.rates.min_rtt_ms)} fill it"


def _bandwidth(it: _Said) -> str:
    sent, received = it.rates.sent_bytes_s or 0.0, it.rates.received_bytes_s or 0.0
    if received > sent:
        return f"limited by bandwidth: {_rate(received)} are read as fast as this machine can"
    if (it.rates.rwnd_limited or 0) > _OFTEN:
        full = f"its window was full {percent(it.rates.rwnd_limited)} of the busy time"
        return f"limited by bandwidth: {_pace(it.rates)}, as fast as the peer reads ({full})"
    if all(is_same_machine(min_rtt_us(each.last.info)) for each in it.connections):
        return f"limited by bandwidth: {_pace(it.rates)}, as fast as this machine and the peer's program can"
    return f"limited by bandwidth: {_pace(it.rates)}, {_little_loss(it.rates)}"


def _little_loss(rates: Rates) -> str:
    return f"{percent(rates.loss)} lost, no queue" if rates.loss else "no loss, no queue"


def _requests(it: _Said) -> str:
    windows = [window for each in it.connections if (window := window_of(each)) and window.exchanges]
    per_s = sum((window.exchanges or 0) / window.elapsed_s for window in windows)
    network = f"; data was on its way {percent(it.rates.busy)} of the time" if it.rates.busy is not None else ""
    return f"request/response: {per_s:,.0f} exchanges/s{network}; who takes the rest cannot be told: {_no_shares(it)}"


def _no_shares(it: _Said) -> str:
    """Why the samples do not tell."""
    if sum(len(looks(each)) for each in it.connections) < FEWEST_LOOKS:
        return "there are too few samples"
    if any(has_long_messages(each) for each in it.connections):
        return "they do not show when a long message was complete"
    return "exchanges are too short for the kernel's clock"


def _writer_here(it: _Said) -> str:
    free = f", nothing on its way {percent(1 - it.rates.busy)} of the time" if it.rates.busy is not None else ""
    return f"this application does not write faster: {_rate(it.rates.sent_bytes_s)}{free}"


def _writer_there(it: _Said) -> str:
    late = ""
    if (it.rates.out_of_order or 0) > _SEEN_OUT_OF_ORDER:
        late = f"; {percent(it.rates.out_of_order)} of its segments arrive out of order: the path to here loses or reorders some"
    return f"the peer does not write faster: {_rate(it.rates.received_bytes_s)}, read at once{late}"


def _idle(it: _Said) -> str:
    unread = sum(each.last.recv_queue for each in it.connections if each.last.recv_queue > 1)
    if unread:
        return f"idle; {size(unread)} wait in the receive queue"
    ages_ms = [age for each in it.connections if (age := _unanswered_ms(each)) is not None]
    if not ages_ms:
        return "idle"
    whose = "the peer's" if it.connections[0].inbound else "our"
    of = f" on {len(ages_ms):,} of them" if len(ages_ms) < len(it.connections) else ""
    return f"idle; {whose} last message{of}, {duration(max(ages_ms) / 1000)} ago, has no answer so far"


def _unanswered_ms(connection: Watched) -> int | None:
    """How long ago the client sent something, if it was the last to do so, and the server has answered before."""
    info = connection.last.info
    if info is None or not info.bytes_received or (info.bytes_acked or 0) <= 1:  # a SYN counts as one byte
        return None
    sent, received = info.last_data_sent_ms, info.last_data_recv_ms
    client, server = (received, sent) if connection.inbound else (sent, received)
    return client if client < server and client <= _LONGEST_ANSWER_MS else None


def _unknown(it: _Said) -> str:
    if all(each.last.state == SYN_SENT for each in it.connections):
        return "unknown: no connection yet, the SYN has no answer so far"
    if any(each.last.info is None for each in it.connections):
        return "unknown: read from /proc, which has the queues alone"
    if all(each.first is each.last for each in it.connections):
        return "unknown: seen once, so that there are no rates"
    return f"unknown: {_queued(it.connections, 'send_queue')} for an acknowledgement, too little happened to tell why"


_ANSWERS: Mapping[str, Callable[[_Said], str]] = {
    verdicts.READER_HERE: _reader_here,
    verdicts.READER_THERE: _reader_there,
    verdicts.BLACK_HOLE: _black_hole,
    verdicts.UNANSWERED: _unanswered,
    verdicts.LOSS: _loss,
    verdicts.QUEUEING: _queueing,
    verdicts.SEND_BUFFER: _send_buffer,
    verdicts.PEER_WINDOW: _peer_window,
    verdicts.OWN_WINDOW: _own_window,
    verdicts.BANDWIDTH: _bandwidth,
    verdicts.REQUESTS: _requests,
    verdicts.WRITER_HERE: _writer_here,
    verdicts.WRITER_THERE: _writer_there,
    verdicts.IDLE: _idle,
    verdicts.UNKNOWN: _unknown,
}
