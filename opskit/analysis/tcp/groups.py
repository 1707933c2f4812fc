"""Connections of one process with one peer's port, or of one peer with our port, judged together. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.tcp import result as verdicts
from opskit.analysis.tcp.connection import FEWEST_RESENT, LOSS, evidence_of, judge_connection, shares_of
from opskit.analysis.tcp.result import VERDICTS, Group, Judged, Rates
from opskit.analysis.tcp.shares import FEWEST_LOOKS, mean
from opskit.analysis.tcp.window import looks, min_rtt_us, window_of
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opskit.analysis.tcp.result import Shares
    from opskit.collect.tcp.facts import Idle, Watched

_RANK = {verdict: number for number, verdict in enumerate(VERDICTS)}
_MOST_ASKED = 200  # connections whose looks tell the shares of a group
_QUIET = (verdicts.IDLE, verdicts.UNKNOWN)
_AT_REST = Rates(0.0, 0.0, None, None, None, None, 0.0, None, None, 0, 0)
# What a group's sum may show although no connection of it has enough segments.
_ABOVE_LOSS = VERDICTS[: VERDICTS.index(verdicts.LOSS)]


class _Key(NamedTuple):
    """What the connections of a group have in common."""

    space: int
    inbound: bool
    host: bytes
    port: int
    command: str | None


def groups_of(connections: Iterable[Watched], idle: Iterable[Idle] = ()) -> tuple[Group, ...]:
    """All connections in groups, the worst group first. `idle`: those that were only counted."""
    members: dict[_Key, list[Watched]] = {}
    counted: dict[_Key, list[Idle]] = {}
    least_us: dict[tuple[int, bytes], int] = {}
    for watched in connections:
        last = watched.last
        members.setdefault(_key(watched), []).append(watched)
        rtt, peer = min_rtt_us(last.info), (watched.space, last.peer)
        if rtt is not None and rtt < least_us.get(peer, rtt + 1):
            least_us[peer] = rtt
    for each in idle:
        command = None if each.owner is None else each.owner.command
        counted.setdefault(_Key(each.space, each.inbound, each.host, each.port, command), []).append(each)
    groups = [
        _group(key, members.get(key, ()), counted.get(key, ()), least_us.get((key.space, key.host)))
        for key in dict.fromkeys((*members, *counted))
    ]
    return tuple(sorted(groups, key=_worst_first))


def _key(watched: Watched) -> _Key:
    last, owner = watched.last, watched.owner
    port = last.local_port if watched.inbound else last.peer_port
    return _Key(watched.space, watched.inbound, last.peer, port, None if owner is None else owner.command)


def _group(key: _Key, members: Sequence[Watched], idle: Sequence[Idle], least_rtt_us: int | None) -> Group:
    judged = sorted((judge_connection(watched, least_rtt_us) for watched in members), key=_worst_judged_first)
    counts: dict[str, int] = {}
    for each in judged:
        counts[each.verdict] = counts.get(each.verdict, 0) + 1
    if idle:
        counts[verdicts.IDLE] = counts.get(verdicts.IDLE, 0) + sum(each.connections for each in idle)
    rates = _summed(judged) if judged else _AT_REST
    verdict = _verdict(judged, rates)
    owners = [*(each.owner for each in members), *(each.owner for each in idle)]
    return Group(
        key.command, tuple(sorted({owner.pid for owner in owners if owner is not None})), key.inbound, key.host, key.port,
        verdict, tuple(sorted(counts.items(), key=lambda item: _RANK[item[0]])), rates,
        _shares(judged, least_rtt_us) if verdict == verdicts.REQUESTS else None, tuple(judged), key.space,
    )  # fmt: skip


def _verdict(judged: Sequence[Judged], rates: Rates) -> str:
    """Of the connections that are not idle, the verdict that most of them, and most of their traffic, have."""
    active = [each for each in judged if each.verdict not in _QUIET]
    if not active:
        return judged[0].verdict if judged else verdicts.IDLE
    moved = sum(_bytes_s(each) for each in active)
    weights: dict[str, float] = {}
    for each in active:
        weight = 1 / len(active) + (_bytes_s(each) / moved if moved else 0.0)
        weights[each.verdict] = weights.get(each.verdict, 0.0) + weight
    most = min(weights, key=lambda verdict: (-weights[verdict], _RANK[verdict]))
    if (rates.loss or 0) > LOSS and most not in _ABOVE_LOSS and _resent(active) >= FEWEST_RESENT:
        return verdicts.LOSS
    return most


def _bytes_s(judged: Judged) -> float:
    return (judged.rates.sent_bytes_s or 0.0) + (judged.rates.received_bytes_s or 0.0)


def _resent(judged: Iterable[Judged]) -> int:
    windows = (window_of(each.connection) for each in judged)
    return sum(window.resent_segments or 0 for window in windows if window is not None)


def _shares(judged: Sequence[Judged], least_rtt_us: int | None) -> Shares | None:
    """The mean over its connections; two looks at each of many connections are as good as many at one.

    Of more than `_MOST_ASKED` every second, third, … one is taken: they are in the order of their paces.
    """
    asking = [each.connection for each in judged if each.verdict == verdicts.REQUESTS]
    asking = asking[:: -(-len(asking) // _MOST_ASKED) or 1]
    if sum(len(looks(watched)) for watched in asking) < FEWEST_LOOKS:
        return None
    taken = (shares_of(evidence_of(watched, least_rtt_us)) for watched in asking)
    return mean(each for each in taken if each is not None)


def _summed(judged: Sequence[Judged]) -> Rates:
    """Sums of bytes and queues; means of the others over connections with traffic, weighted where they are parts of something."""
    rates = [each.rates for each in judged]
    active = [each.rates for each in judged if each.verdict not in _QUIET] or rates
    windows = [window for each in judged if each.verdict != verdicts.IDLE if (window := window_of(each.connection))]
    resent = [(window.resent, window.sent) for window in windows if window.resent is not None and window.sent]
    late = [(window.out_of_order, window.data_in) for window in windows if window.out_of_order is not None and window.data_in]  # fmt: skip
    return Rates(
        summed(each.sent_bytes_s for each in rates), summed(each.received_bytes_s for each in rates), _ratio(resent),
        _ratio(late), _mean(each.rtt_ms for each in active),
        min((each.min_rtt_ms for each in rates if each.min_rtt_ms is not None), default=None),
        _mean(each.busy for each in active),
        _ratio([(window.rwnd_s, window.busy_s) for window in windows if window.rwnd_s is not None and window.busy_s]),
        _ratio([(window.sndbuf_s, window.busy_s) for window in windows if window.sndbuf_s is not None and window.busy_s]),
        sum(each.recv_queue_bytes for each in rates), sum(each.send_queue_bytes for each in rates),
    )  # fmt: skip


def summed(values: Iterable[float | None]) -> float | None:
    """The sum of those that are known; None without any."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _ratio(pairs: Sequence[tuple[float, float]]) -> float | None:
    whole = sum(pair[1] for pair in pairs)
    return min(1.0, sum(pair[0] for pair in pairs) / whole) if whole else None


def _worst_judged_first(judged: Judged) -> tuple[int, float]:
    waiting = judged.rates.recv_queue_bytes + judged.rates.send_queue_bytes
    return _RANK[judged.verdict], -(waiting + _bytes_s(judged))


def _worst_first(group: Group) -> tuple[int, float, bytes, int]:
    """The order of the verdicts; of requests and responses those where more connections wait for others first."""
    waiting = (1 - group.shares.here) * dict(group.verdicts)[verdicts.REQUESTS] if group.shares else 0.0
    moved = (group.rates.sent_bytes_s or 0.0) + (group.rates.received_bytes_s or 0.0)
    return _RANK[group.verdict], -(waiting or moved), group.host, group.port
