"""Connections that the peer has closed and a process has not (CLOSE_WAIT): leaks, and what is no leak. Pure.

A server that still works for a client that is gone, and a pool of idle connections whose peers have closed them, have some too. A leak
keeps the same ones, has about as many of them as of working ones, or gains them through a whole watch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding
from opskit.analysis.slope import A_TREND, is_steady, slope
from opskit.analysis.tcp.space import of_process, who
from opskit.proc.tcp_sockets import CLOSE_WAIT, address_text
from opskit.quantities import agreeing, duration, listed, plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.analysis.finding import Severity
    from opskit.collect.tcp.facts import Closing, Facts, Owner

# A process (PID, start), and a peer's port; without a peer its own port, or with port 0 all of its peers.
Place = tuple[int, int, bytes, int]

_WORTH_A_NOTE = 10
_LEAK_INBOUND, _LEAK_OUTBOUND, _LEAK_TO_ALL = 20, 50, 200  # a pool of idle connections has tens to one peer
_OLD_MS = 60_000
_LEAST_GAIN, _MOST_POINTS = 10, 10
_MOST_FDS = 5


class Look(NamedTuple):
    """What a watch keeps of each look: CLOSE_WAIT connections by place."""

    at_s: float
    counts: Mapping[Place, int]


class _Pile(NamedTuple):
    """The connections of one process with one peer's port or with all, or to one port of its own from any peer."""

    owner: Owner | None
    inbound: bool
    peers: frozenset[tuple[bytes, int]]
    port: int
    first: int
    last: int
    lasting: int
    oldest_ms: int | None
    fds: tuple[int, ...]
    stacks: tuple[str, ...]


def closing_look(facts: Facts) -> Look:
    """What to keep of a look."""
    return Look(facts.at_s, {place: pile.last for place, pile in _piles(facts.closing).items()})


def closing_findings(facts: Facts, looks: Sequence[Look] = ()) -> Iterator[Finding]:
    """Piles that leak, or are worth a note; the most connections first. `looks`: of a watch, the last one included."""
    working = _working(facts)
    found: list[tuple[_Pile, Severity, list[tuple[float, int]]]] = []
    for place, pile in sorted(_piles(facts.closing).items(), key=lambda one: (-one[1].last, one[0])):
        track = [(look.at_s, look.counts.get(place, 0)) for look in looks]
        severity = _severity(pile, working.get(place, 0), track)
        if severity is not None and not _is_in_listen_queue(facts, pile):
            found.append((pile, severity, track))
    leaking = {
        pile.owner for pile, severity, _ in found if severity == "warning" and len(pile.peers) == 1 and not pile.inbound
    }
    for pile, severity, track in found:
        if not (_is_to_all(pile) and pile.owner in leaking):
            yield _finding(facts, pile, severity, track)


def _is_to_all(pile: _Pile) -> bool:
    return not pile.inbound and len(pile.peers) > 1


def _is_in_listen_queue(facts: Facts, pile: _Pile) -> bool:
    """Whether they wait for accept(2), whose client is gone: no process has them, and the queue is a finding of its own."""
    waiting = sum(each.last.recv_queue for each in facts.listeners if each.last.local_port == pile.port)
    return pile.owner is None and pile.inbound and pile.last <= waiting


def _place(owner: Owner | None, inbound: bool, host: bytes, port: int) -> Place:
    pid, start = (0, 0) if owner is None else (owner.pid, owner.start_ticks or 0)
    return pid, start, b"" if inbound else host, port


def _piles(closing: Sequence[Closing]) -> dict[Place, _Pile]:
    groups: dict[Place, list[Closing]] = {}
    for each in closing:
        groups.setdefault(_place(each.owner, each.inbound, each.host, each.port), []).append(each)
        if each.owner is not None and not each.inbound:
            groups.setdefault(_place(each.owner, False, b"", 0), []).append(each)
    piles = {place: _pile(group, place[3]) for place, group in groups.items()}
    return {place: pile for place, pile in piles.items() if pile.port or len(pile.peers) > 1}


def _pile(group: Sequence[Closing], port: int) -> _Pile:
    one = group[0]
    frames = {thread.frames[0]: None for each in group for thread in each.threads if thread.frames}
    return _Pile(
        one.owner, one.inbound, frozenset((each.host, each.port) for each in group), port,
        sum(each.first for each in group), sum(each.last for each in group), sum(each.lasting for each in group),
        max((each.oldest_ms for each in group if each.oldest_ms is not None), default=None),
        tuple(sorted(fd for each in group for fd in each.fds)), tuple(frames),
    )  # fmt: skip


def _working(facts: Facts) -> dict[Place, int]:
    """How many connections each place has that are not in CLOSE_WAIT."""
    numbers: dict[Place, int] = {}
    found = [(each.owner, each.inbound, each.host, each.port, each.state, each.connections) for each in facts.idle]
    for each in facts.connections if facts.closing else ():
        socket = each.last
        port = socket.local_port if each.inbound else socket.peer_port
        found.append((each.owner, each.inbound, socket.peer, port, socket.state, 1))
    for owner, inbound, host, port, state, connections in found if facts.closing else ():
        if state != CLOSE_WAIT:
            places = [_place(owner, inbound, host, port), *([] if inbound else [_place(owner, False, b"", 0)])]
            for place in places:
                numbers[place] = numbers.get(place, 0) + connections
    return numbers


def _severity(pile: _Pile, working: int, track: Sequence[tuple[float, int]]) -> Severity | None:
    points = track[:: max(1, len(track) // _MOST_POINTS)]  # a slow leak gains none between most looks
    if is_steady(points) and points[-1][1] - points[0][1] >= _LEAST_GAIN and pile.lasting * 2 >= pile.last:
        return "warning"
    least = _LEAK_INBOUND if pile.inbound else _LEAK_TO_ALL if _is_to_all(pile) else _LEAK_OUTBOUND
    if pile.lasting >= least and (pile.lasting >= working or (pile.oldest_ms or 0) >= _OLD_MS):
        return "warning"
    return "note" if pile.lasting >= _WORTH_A_NOTE and not _is_to_all(pile) else None


def _finding(facts: Facts, pile: _Pile, severity: Severity, track: Sequence[tuple[float, int]]) -> Finding:
    owner, number = pile.owner, pile.last
    place = f"on port {pile.port}" if pile.inbound else f"to {len(pile.peers):,} peers"
    if len(pile.peers) == 1 and not pile.inbound:
        place = f"to {address_text(*next(iter(pile.peers)))}"
    age = "" if pile.oldest_ms is None else f", the oldest at least {duration(pile.oldest_ms / 1000)} ago"
    earlier = track[0][1] if track else pile.first
    since_s = track[-1][0] - track[0][0] if track else facts.window_s
    per_s = slope(track)
    rate = f", {per_s * 60:+,.0f} a minute" if per_s is not None and len(track) >= A_TREND else ""
    grew = f"; they grew from {earlier:,} to {number:,} in {duration(since_s)}{rate}" if number > earlier else ""
    named = [str(fd) for fd in pile.fds[:_MOST_FDS]]  # of many connections not all fds are read
    fds = ", ".join([*named, *([f"… {number - len(named):,} more"] if number > len(named) else [])]) if named else ""
    both = f"{pile.first:,} and {number:,} in CLOSE_WAIT at both ends of {duration(facts.window_s)}, {pile.lasting:,} the same"
    evidence = [
        f"{number:,} in CLOSE_WAIT" if facts.is_still else both,
        *([f"{agreeing(number, 'fd')} {fds}"] if fds else []),
        *([f"waiting in {listed(pile.stacks, 1)}"] if pile.stacks else []),
    ]
    # Without an owner it is not the host: that would explain the limits of every process.
    entity = Entity("socket", place) if owner is None else of_process(owner)
    return Finding(
        "tcp-close-wait", severity, entity,
        f"{who(owner)} has {plural(number, 'connection')} {place} that {agreeing(number, 'its peer', 'their peers')} closed and "
        f"it has not (CLOSE_WAIT){age}{grew}",
        "; ".join(evidence), next=_next(owner, looks=len(track)), window_s=round(since_s, 3),
    )  # fmt: skip


def _next(owner: Owner | None, looks: int) -> str | None:
    if owner is None:
        return None
    watch = () if looks >= A_TREND else ("-w",)
    return shell.command("opskit", "fds", owner.pid, *watch, *(("--ask",) if owner.is_jvm else ()))
