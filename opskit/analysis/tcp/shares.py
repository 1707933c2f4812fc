"""Requests and responses on a connection: who takes the time, the peer's application, the network, or this one. Pure.

A cycle is seen from this side: data leaves and is acknowledged (a round trip: network), an answer is awaited (the peer's application),
the answer is here and nothing new was sent (this application). The kernel counts the first (tcpi_busy_time); who sent last tells
the other two apart. It holds for the client and for the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.tcp.result import Shares
from opskit.analysis.tcp.window import window_of
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opskit.analysis.tcp.window import Window
    from opskit.collect.tcp.facts import Sample, Watched
    from opskit.proc.tcp_sockets import TcpInfo

FEWEST_LOOKS = 20  # for shares within some ten points; what the kernel counts itself needs none
_MOST_UNDECIDED = 0.15
_TICK_S, _TICK_MS = 0.01, 10  # of the kernel's last_data_sent and last_data_recv, at 100 Hz
# A cycle with at least so many samples is followed event by event; of a shorter one each sample is a random look.
_LOOKS_A_CYCLE = 3.0
_LONG_ANSWER, _FULL = 10, 0.8  # segments: more than slow start sends at once; of the largest segment
_DELAYED_ACK_S = (0.03, 0.06)  # Linux: 40 ms

_FEWEST_ORDERED, _CLEARLY, _SEVERAL_SEGMENTS = 3, 2.0, 1.5
_FEWEST_LENGTHS, _LARGEST_ERROR = 5, 0.03  # the standard error of a share
_ROUNDED_MS2 = 10.0  # the least variance of a length, both of whose ends are in ticks of 4 to 10 ms
_SHORTEST_S = 0.002  # an exchange
_SELDOM, _LAST = 0.02, 2  # of the looks; segments
_ALONE = 0.1  # of the exchanges: acknowledgements that came without an answer

_STATES = _PEER, _ARRIVING, _HERE, _UNDECIDED = "peer", "arriving", "here", "undecided"


class Waits(NamedTuple):
    """Shares of the time: our data is on its way or an answer is awaited; an answer arrives in parts; this application has the word."""

    awaited: float
    arriving: float
    here: float
    undecided: float


def waits(looks: Sequence[Sample], window: Window) -> Waits:
    """What the samples say of messages of few segments."""
    tied = _tied_are(looks)
    if tied == _UNDECIDED:
        tied = acknowledged(window)
    states = [_state(look, tied) for look in looks]
    # From request to request, or less where both have several segments.
    cycle_s = window.elapsed_s / window.exchanges if window.exchanges else None
    is_slow = cycle_s is not None and cycle_s * len(looks) >= _LOOKS_A_CYCLE * (looks[-1].at_s - looks[0].at_s)
    if is_slow:
        return _parts(_followed(looks, _with_arriving(looks, states), tied))
    found = _parts((state, 1.0) for state in states)
    here = _by_lengths(looks, states, cycle_s)
    if here is None:
        return found
    here *= 1 - found.undecided
    return found._replace(awaited=1 - found.undecided - here, here=here)


def _with_arriving(looks: Sequence[Sample], states: Sequence[str]) -> list[str]:
    """The states, where more of an answer came before anything was sent: it was still arriving."""
    found, comes = [*states], False
    for number in range(len(looks) - 2, -1, -1):
        look, later = looks[number], looks[number + 1]
        came, left = _came(look, later), _left(look, later)
        if came or left:
            comes = came and (not left or _came_s(later) < _sent_s(later))
        if comes and states[number] == _HERE and not look.recv_queue:
            found[number] = _ARRIVING
    return found


def _parts(spent: Iterable[tuple[str, float]]) -> Waits:
    sums = dict.fromkeys(_STATES, 0.0)
    for state, amount in spent:
        sums[state] += amount
    total = sum(sums.values()) or 1.0
    return Waits(*(amount / total for amount in sums.values()))


def _here_ms(looks: Sequence[Sample], states: Sequence[str]) -> list[int]:
    """How long this application had the word, of looks at which an answer was awaited: from the last data that came to the request."""
    found = [look.last_data_recv_ms - look.last_data_sent_ms for look, state in zip(looks, states) if state == _PEER]
    return [ms for ms in found if ms >= 0]  # not a request in parts


def _awaited_ms(looks: Sequence[Sample], states: Sequence[str]) -> list[int]:
    """The same of the others, of looks at which this application had the word: from the last data sent to the last that came."""
    found = [look.last_data_sent_ms - look.last_data_recv_ms for look, state in zip(looks, states) if state == _HERE]
    return [ms for ms in found if ms >= 0]


def _by_lengths(looks: Sequence[Sample], states: Sequence[str], cycle_s: float | None) -> float | None:
    """The share of this application by how long the phase before each look was: at a steady pace few looks are enough."""
    here, awaited = _here_ms(looks, states), _awaited_ms(looks, states)
    here_s, awaited_s = (
        sum(times) / len(times) / 1000 if len(times) >= _FEWEST_ORDERED else None for times in (here, awaited)
    )
    both_s = None if here_s is None or awaited_s is None else here_s + awaited_s
    if both_s is not None and (cycle_s is None or both_s > _SEVERAL_SEGMENTS * cycle_s):
        cycle_s = both_s
    if not cycle_s:
        return None
    if here_s is not None and len(here) >= len(awaited):
        return min(1.0, here_s / cycle_s)
    return None if awaited_s is None else max(0.0, 1 - awaited_s / cycle_s)


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


def _followed(looks: Sequence[Sample], states: Sequence[str], tied: str) -> Iterator[tuple[str, float]]:
    """The time between samples, cut where data was sent or came. Where both were in the same tick, the turn `tied` came later."""
    for look, later, state in zip(looks, looks[1:], states):
        at, now = look.at_s, state
        events = [(_sent_s(later), _PEER)] * _left(look, later) + [(_came_s(later), _HERE)] * _came(look, later)
        for event_s, after in sorted(events, key=lambda event: (event[0], event[1] == tied)):
            event_s = min(max(event_s, at), later.at_s)
            # Until data comes an answer was awaited, also where an earlier part of it was here.
            awaited = after == _HERE and now not in (_PEER, _ARRIVING)
            yield _ARRIVING if awaited else now, event_s - at
            at, now = event_s, after
        yield now, later.at_s - at


def shares(looks: Sequence[Sample], window: Window, last: TcpInfo, min_rtt_us: int | None) -> Shares | None:
    """Who takes the time of requests and responses; None where the samples do not tell. `min_rtt_us`: to this peer."""
    if window.busy is None or is_too_fast(window):
        return None
    if has_long_requests(window, last):
        return _of_long_requests(looks, window, min_rtt_us)
    travelling = on_the_way(window, last, min_rtt_us)
    if has_long_answers(window, last):
        return _of_long_answers(looks, window, travelling)
    waited = waits(looks, window)
    awaited, here = waited.awaited, waited.here
    if waited.undecided > _MOST_UNDECIDED and not _by_answers(window):
        return None
    if _by_answers(window) or awaited < window.busy:
        # Requests were acknowledged by their answers, or no earlier: the kernel has counted how long they were awaited.
        awaited, here = window.busy, max(0.0, 1 - window.busy - waited.arriving)
    return _scaled(max(0.0, awaited - travelling) + waited.arriving, travelling, here)


def is_too_fast(window: Window) -> bool:
    """Whether exchanges take so short that wake-ups and system calls of both sides, which are nobody's share, weigh in them."""
    return bool(window.exchanges) and window.elapsed_s < _SHORTEST_S * (window.exchanges or 0)


def _by_answers(window: Window) -> bool:
    """Whether the answers have acknowledged the requests: they were on their way, by the kernel's count, until one came."""
    return window.pure_acks is not None and window.pure_acks <= _ALONE * (window.exchanges or 0)


def _scaled(peer: float, network: float, here: float) -> Shares:
    network = min(1.0, network)
    scale = (1 - network) / (peer + here) if peer + here else 0.0
    return Shares(peer * scale, network, here * scale) if scale else Shares(1 - network, network, 0.0)


def _of_long_answers(looks: Sequence[Sample], window: Window, travelling: float) -> Shares | None:
    """The network has what is left after the answer's begin was awaited, and its end was here: nobody says when it is complete."""
    states = _states_of_long(looks)
    awaited = window.busy if _by_answers(window) else _parts(zip(states, _weights(looks))).awaited
    here = _share_of(_here_ms(looks, states), window)
    if awaited is None or here is None or awaited + here > 1 + _MOST_UNDECIDED:
        return None
    return _scaled(max(0.0, awaited - travelling), travelling + max(0.0, 1 - awaited - here), here)


def _of_long_requests(looks: Sequence[Sample], window: Window, min_rtt_us: int | None) -> Shares | None:
    """The peer has what passes from the last segment to the next message that comes, without a round trip.

    What is left is this application's, less what the kernel has counted as on its way: it knows no end where the last
    acknowledgement comes late, with the next message.
    """
    states = _states_of_long(looks)
    seen = _parts(zip(states, _weights(looks)))
    if min_rtt_us is None or seen.undecided > _MOST_UNDECIDED:
        return None
    busy, here = window.busy or 0.0, seen.here
    lengths = _awaited_ms(looks, states)
    queue_ms = (sum(look.rtt_us for look in looks) / len(looks) - min_rtt_us) / 1000
    if len(lengths) < _FEWEST_LENGTHS or queue_ms > max(_TICK_MS, min_rtt_us / 1000):
        late = sum(
            0 < look.unacked <= _LAST and look.last_data_sent_ms > look.rtt_us / 1000 + _TICK_MS for look in looks
        )
        peer = max(0.0, 1 - busy - here)
        return None if late > _SELDOM * len(looks) else _scaled(peer, 1 - peer - here, here)
    answered = _share_of(lengths, window)
    if answered is None:
        return None
    trips = (window.exchanges or 0) / 1e6 / window.elapsed_s
    peer = max(0.0, answered - trips * min(look.rtt_us for look in looks))
    here = max(1 - peer - busy, min(here, 1 - peer - trips * min_rtt_us), 0.0)
    return _scaled(peer, max(0.0, 1 - peer - here), here)


def _weights(looks: Sequence[Sample]) -> list[float]:
    """How much time each look stands for: on a busy machine some are late."""
    times = [look.at_s for look in looks]
    return [later - earlier for earlier, later in zip([times[0], *times], [*times[1:], times[-1]])]


def _states_of_long(looks: Sequence[Sample]) -> list[str]:
    """Whose turn it is, where what was not acknowledged is on its way."""
    found = [_state(look, _UNDECIDED) for look in looks]
    return [_PEER if look.send_queue else state for look, state in zip(looks, found)]


def _share_of(lengths_ms: Sequence[int], window: Window) -> float | None:
    """The share of the window that phases of these lengths take, one in each exchange; None: they are too few, or differ too much, to tell."""
    number = len(lengths_ms)
    if number < _FEWEST_LENGTHS:
        return None
    mean_ms = sum(lengths_ms) / number
    spread = max(sum((ms - mean_ms) ** 2 for ms in lengths_ms), number * _ROUNDED_MS2)
    exchange_ms = 1000 * window.elapsed_s / max(window.exchanges or 0, 1)
    if (spread / number / number) ** 0.5 > _LARGEST_ERROR * exchange_ms:
        return None
    return min(1.0, mean_ms / exchange_ms)


def on_the_way(window: Window, last: TcpInfo, min_rtt_us: int | None) -> float:
    """The share of the time in which our data was on its way.

    A peer may acknowledge the end of it late, with its answer, or by a timer after 40 ms: that is the peer's time.
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
    """Whose turn it is longer, by who acknowledges without data: nobody does who answers a single segment within 40 ms."""
    theirs, ours, exchanges = window.pure_acks, window.own_pure_acks, window.exchanges
    if theirs is None or ours is None or not exchanges:
        return _UNDECIDED
    many, few, one = exchanges / 2, _ALONE * exchanges, _SEVERAL_SEGMENTS * exchanges
    if theirs >= many and ours <= few and (window.data_out or 0) <= one:
        return _PEER
    return _HERE if ours >= many and theirs <= few and (window.data_in or 0) <= one else _UNDECIDED


def has_long_answers(window: Window, last: TcpInfo) -> bool:
    """Whether what comes is so long that the network takes time for it: many segments, and full ones."""
    return _is_long(window.data_in, window.data_out, window.received, last.rcv_mss)


def has_long_requests(window: Window, last: TcpInfo) -> bool:
    """The same of what is sent: requests, or the answers of a server."""
    return _is_long(window.data_out, window.data_in, window.acked, last.snd_mss)


def has_long_messages(watched: Watched) -> bool:
    """Whether a connection has either, at a pace that could be followed."""
    window, info = window_of(watched), watched.last.info
    if window is None or info is None or is_too_fast(window):
        return False
    return has_long_answers(window, info) or has_long_requests(window, info)


def _is_long(segments: int | None, others: int | None, moved: int | None, mss: int) -> bool:
    if not segments or not others or not moved:
        return False
    return segments >= _LONG_ANSWER * others and moved / segments >= _FULL * mss


def mean(found: Iterable[Shares]) -> Shares | None:
    """Of several connections."""
    rows = [*found]
    if not rows:
        return None
    return Shares(*(sum(part) / len(rows) for part in zip(*rows)))
