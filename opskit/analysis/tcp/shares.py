"""Requests and responses on a connection: who takes the time, the peer's application, the network, or this one. Pure.

A cycle is seen from this side: data leaves and is acknowledged (a round trip: network), an answer is awaited (the peer's application),
the answer is here and nothing new was sent (this application). The kernel counts the first (tcpi_busy_time); who sent last tells
the other two apart. It holds for the client and for the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.tcp.result import Shares
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opskit.analysis.tcp.window import Window
    from opskit.collect.tcp.facts import Sample
    from opskit.proc.tcp_sockets import TcpInfo

FEWEST_LOOKS = 20  # for shares within some ten points; what the kernel counts itself needs none
_MOST_UNDECIDED = 0.3
_TICK_S = 0.01  # of the kernel's last_data_sent and last_data_recv, at 100 Hz
# A cycle with at least so many samples is followed event by event; of a shorter one each sample is a random look.
_LOOKS_A_CYCLE = 3.0
_LONG_ANSWER, _FULL = 10, 0.8  # segments: more than slow start sends at once; of the largest segment
_FEW_PURE = 0.1  # acknowledgements without data, of the exchanges
_DELAYED_ACK_S = (0.03, 0.06)  # Linux: 40 ms

_FEWEST_ORDERED, _CLEARLY = 3, 2.0

_STATES = _PEER, _ARRIVING, _HERE, _UNDECIDED = "peer", "arriving", "here", "undecided"


class Waits(NamedTuple):
    """Shares of the time: our data is on its way or an answer is awaited; an answer arrives in parts; this application has the word."""

    awaited: float
    arriving: float
    here: float
    undecided: float


def waits(
    looks: Sequence[Sample], cycles: float | None, otherwise: str = _UNDECIDED, *, is_long: bool = False
) -> Waits:
    """What the samples say. `cycles`: requests in the time of the samples; None: unknown, and so is how long one takes.

    `otherwise`: whose turn it is where the samples do not tell (acknowledged()); `is_long`: answers come in many segments.
    """
    tied = _tied_are(looks)
    tied = otherwise if tied == _UNDECIDED else tied
    states = [_state(look, tied) for look in looks]
    for number, (look, later) in enumerate(zip(looks, looks[1:])):
        if states[number] == _HERE and not look.recv_queue and _came(look, later) and not _left(look, later):
            states[number] = _ARRIVING
    if cycles is not None and 0 < cycles * _LOOKS_A_CYCLE <= len(looks):
        spent = [*_followed(looks, states)]
    else:
        spent = [(state, 1.0) for state in states]
        if is_long and cycles:
            spent += _still_arriving(looks, states, cycles)
    total = sum(seconds for _, seconds in spent) or 1.0
    return Waits(*(sum(seconds for state, seconds in spent if state == name) / total for name in _STATES))


def _still_arriving(looks: Sequence[Sample], states: Sequence[str], cycles: float) -> Sequence[tuple[str, float]]:
    """Of the looks after data came: those at which more was to come, by how long this application really takes to ask again."""
    paused_s = [max(0.0, _sent_s(look) - _came_s(look)) for look, state in zip(looks, states) if state == _PEER]
    if len(paused_s) < _FEWEST_ORDERED:
        return []
    cycle_s = (looks[-1].at_s - looks[0].at_s) / cycles
    really = min(1.0, sum(paused_s) / len(paused_s) / cycle_s) * len(looks)
    arriving = max(0.0, states.count(_HERE) - really)
    return [(_ARRIVING, arriving), (_HERE, -arriving)]


def _state(look: Sample, tied: str) -> str:
    if look.send_queue:
        return _PEER
    if look.recv_queue:
        return _HERE
    since_sent, since_came = look.last_data_sent_ms, look.last_data_recv_ms
    return tied if since_sent == since_came else _PEER if since_sent < since_came else _HERE


def _tied_are(looks: Sequence[Sample]) -> str:
    """What a look is at which data was sent and came in the same tick of the kernel's clock (1 to 10 ms).

    Where answers take longer than that, it can only be that an answer was followed by the next request, which is awaited now.
    """
    here_ms = [look.last_data_recv_ms - look.last_data_sent_ms for look in looks if look.last_data_sent_ms < look.last_data_recv_ms]  # fmt: skip
    awaited_ms = [look.last_data_sent_ms - look.last_data_recv_ms for look in looks if look.last_data_recv_ms < look.last_data_sent_ms]  # fmt: skip
    if len(here_ms) + len(awaited_ms) < _FEWEST_ORDERED:
        return _UNDECIDED
    # Where one of them was never seen, it takes a tick at most.
    here, awaited = (sum(times) / len(times) if times else 1000 * _TICK_S for times in (here_ms, awaited_ms))
    if awaited > _CLEARLY * here:
        return _PEER
    if here > _CLEARLY * awaited:
        return _HERE
    return _UNDECIDED if here_ms and awaited_ms else _PEER if here_ms else _HERE


def _sent_s(look: Sample) -> float:
    return look.at_s - look.last_data_sent_ms / 1000


def _came_s(look: Sample) -> float:
    return look.at_s - look.last_data_recv_ms / 1000


def _came(look: Sample, later: Sample) -> bool:
    """Whether data came between two samples."""
    return _came_s(later) > _came_s(look) + _TICK_S


def _left(look: Sample, later: Sample) -> bool:
    """Whether data was sent between two samples."""
    return _sent_s(later) > _sent_s(look) + _TICK_S


def _followed(looks: Sequence[Sample], states: Sequence[str]) -> Iterator[tuple[str, float]]:
    """The time between samples, cut where data was sent or came."""
    for look, later, state in zip(looks, looks[1:], states):
        at, now = look.at_s, state
        events = [(_sent_s(later), _PEER)] * _left(look, later) + [(_came_s(later), _HERE)] * _came(look, later)
        for event_s, after in sorted(events):
            event_s = min(max(event_s, at), later.at_s)
            # Until data comes an answer was awaited, also where an earlier part of it was here.
            awaited = after == _HERE and now not in (_PEER, _ARRIVING)
            yield _ARRIVING if awaited else now, event_s - at
            at, now = event_s, after
        yield now, later.at_s - at


def shares(window: Window, waited: Waits, last: TcpInfo, min_rtt_us: int | None) -> Shares | None:
    """Who takes the time of requests and responses; None where the samples do not tell. `min_rtt_us`: to this peer."""
    if window.busy is None:
        return None
    travelling, is_long = on_the_way(window, last, min_rtt_us), has_long_answers(window, last)
    if not is_long and _answers_acknowledge(window):
        return Shares(window.busy - travelling, travelling, 1 - window.busy)
    if waited.undecided > _MOST_UNDECIDED:
        return None
    network = min(1.0, travelling + (waited.arriving if is_long else 0.0))
    peer = max(0.0, waited.awaited - travelling) + (0.0 if is_long else waited.arriving)
    others = peer + waited.here
    scale = (1 - network) / others if others else 0.0
    return Shares(peer * scale, network, waited.here * scale) if others else Shares(1 - network, network, 0.0)


def on_the_way(window: Window, last: TcpInfo, min_rtt_us: int | None) -> float:
    """The share of the time in which our data was on its way.

    A peer may acknowledge a request late, with its answer, or by a timer after 40 ms: then it counts with the least round trip time.
    """
    busy, exchanges, pure = window.busy or 0.0, window.exchanges, window.pure_acks
    if min_rtt_us is None or not exchanges or pure is None:
        return busy
    excess_s = (last.rtt_us - min_rtt_us) / 1e6
    if pure >= exchanges / 2 and not _DELAYED_ACK_S[0] <= excess_s <= _DELAYED_ACK_S[1]:
        return busy
    travelling_s = exchanges * min_rtt_us / 1e6 + (window.resent_segments or 0) * last.rto_us / 1e6
    return min(busy, travelling_s / window.elapsed_s)


def acknowledged(window: Window) -> str:
    """Whose turn it is longer, by who acknowledges without data: nobody does who answers within 40 ms."""
    theirs, ours, exchanges = window.pure_acks, window.own_pure_acks, window.exchanges
    if theirs is None or ours is None or not exchanges:
        return _UNDECIDED
    many, few = exchanges / 2, _FEW_PURE * exchanges
    return _PEER if theirs >= many and ours <= few else _HERE if ours >= many and theirs <= few else _UNDECIDED


def _answers_acknowledge(window: Window) -> bool:
    """Whether answers come before an acknowledgement without data (40 ms): then the kernel's busy time lasts until them."""
    if not window.exchanges or window.pure_acks is None or not window.data_in or not window.data_out:
        return False
    is_one_each = max(window.data_in, window.data_out) < _LONG_ANSWER * window.exchanges
    return is_one_each and window.pure_acks <= _FEW_PURE * window.exchanges


def has_long_answers(window: Window, last: TcpInfo) -> bool:
    """Whether answers are so long that the network takes time for them: many segments, and full ones."""
    if not window.data_in or not window.data_out or not window.received:
        return False
    return window.data_in >= _LONG_ANSWER * window.data_out and window.received / window.data_in >= _FULL * last.rcv_mss


def mean(found: Iterable[Shares]) -> Shares | None:
    """Of several connections."""
    rows = [*found]
    if not rows:
        return None
    return Shares(*(sum(part) / len(rows) for part in zip(*rows)))
