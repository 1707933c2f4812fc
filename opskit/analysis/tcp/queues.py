"""Findings about connections that are not taken: listen queues, SYN cookies, SYN_SENT without an answer. Pure.

A listening socket refuses connections while more of them wait for accept(2) than its backlog (include/net/sock.h, sk_acceptq_is_full):
it drops the SYN or the last ACK, and the client tries again after a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import HOST, Entity, Finding
from opskit.analysis.tcp.space import change, changes, in_window, of_process, who
from opskit.proc.tcp_sockets import SYN_SENT, address_text, backlog
from opskit.quantities import agreeing, integer, listed, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.finding import Severity
    from opskit.collect.tcp.facts import Facts, Listener, Owner, Space, Watched
    from opskit.proc.tcp_sockets import Socket

_OVERFLOWS = ("TcpExt.ListenOverflows", "TcpExt.ListenDrops")
_FILLING, _FILLING_LEAST = 0.5, 10  # of the backlog, connections, at both ends of the window
_FEW_COOKIES = 10
_ANSWERED = 0.1  # cookies that come back; below it the SYNs are a flood, or the answers get lost
_PILE = 5  # connections to one port of one host, each without an answer for a second
_MOST_PILES, _MOST_NAMED = 3, 3
_LISTEN = shell.command("opskit", "tcp", "--listen")


def listener_findings(facts: Facts) -> list[Finding]:
    """Listen queues that are full, or were, or may become so."""
    judged = (_of_listener(facts, each, _dropped(facts, each)) for each in facts.listeners)
    return [found for found in judged if found is not None]


def drop_findings(facts: Facts, space: Space, *, is_explained: bool) -> Iterator[Finding]:
    """Connections and SYNs that the namespace dropped. `is_explained`: by the listen queue of a socket."""
    if not is_explained:
        yield from _overflows(facts, space)
    yield from _cookies(facts, space, is_explained)


def _is_full(socket: Socket) -> bool:
    most = backlog(socket)
    return most is not None and socket.recv_queue > most


def _dropped(facts: Facts, listener: Listener) -> int:
    """How many connections this socket dropped: by its own count, which has other drops too, or else by that of its namespace."""
    overflows = sum(change(space.host, "TcpExt.ListenOverflows") for space in facts.spaces)
    first, last = listener.first.memory, listener.last.memory
    if first is None or last is None or first.drops is None or last.drops is None:
        return overflows if _is_full(listener.last) else 0
    return min(overflows, max(0, last.drops - first.drops))


def _of_listener(facts: Facts, listener: Listener, dropped: int) -> Finding | None:
    first, last, owner = listener.first, listener.last, listener.owner
    most, waiting = backlog(last), max(listener.most_waiting, last.recv_queue)
    if most is None:
        return None
    name = address_text(last.local, last.local_port)
    queued = f"{plural(last.recv_queue, 'connection')} {agreeing(last.recv_queue, 'waits', 'wait')} for accept(), its backlog is {most:,}"
    drops = f"; {plural(dropped, 'time')} {in_window(facts)} a new connection was dropped"
    is_lasting = _is_full(first) and _is_full(last)
    severity: Severity = "error" if is_lasting and dropped else "warning" if is_lasting or dropped else "note"
    if is_lasting:
        summary = f"the listen queue of {name} is full: {queued}{drops if dropped else ''}; {who(owner)} does not accept them in time"
    elif dropped:
        summary = f"the listen queue of {name} overflows: at most {waiting:,} waited for accept(), its backlog is {most:,}{drops}"
    elif waiting > most:
        summary = (
            f"the listen queue of {name} was full: at most {waiting:,} waited for accept(), its backlog is {most:,}"
        )
    elif min(first.recv_queue, last.recv_queue) >= max(_FILLING_LEAST, most * _FILLING):
        summary = f"the listen queue of {name} fills up: {queued}"
    else:
        return None
    entity = Entity("socket", name, None, of_process(owner))
    grown = [text for space in facts.spaces if (text := changes(space.host, *_OVERFLOWS))]
    evidence = f"sock_diag: Recv-Q {first.recv_queue:,} and {last.recv_queue:,}, backlog {most:,}"
    return Finding(
        "tcp-listen-queue-fills" if severity == "note" else "tcp-listen-queue-full", severity, entity, summary, "; ".join([evidence, *grown]),
        fix=None if is_lasting else _larger_backlog(facts, most), next=_next(facts, owner),
        share=round(min(1.0, last.recv_queue / max(most, 1)), 4), window_s=facts.window_s,
    )  # fmt: skip


def _larger_backlog(facts: Facts, length: int) -> str | None:
    """What allows a longer queue where the host cuts it; else listen(2) of the program sets it."""
    for space in facts.spaces:
        most = integer(space.host.sysctls.get("net.core.somaxconn", ""))
        if most is not None and 0 < most <= length:
            return shell.command("sysctl", f"net.core.somaxconn={max(4096, most * 2)}")
    return None


def _next(facts: Facts, owner: Owner | None) -> str:
    """What shows why the program does not accept: its threads, its connections, or what it runs."""
    if owner is None:
        return _LISTEN
    command = "jpmp" if owner.is_jvm else "profile" if facts.ask.pids == (owner.pid,) else "tcp"
    return shell.command("opskit", command, owner.pid)


def _overflows(facts: Facts, space: Space) -> Iterator[Finding]:
    number = change(space.host, "TcpExt.ListenOverflows")
    if not number:
        return
    ask = facts.ask
    are_known = facts.listeners and all(backlog(each.last) is not None for each in facts.listeners)
    whose = (
        ", of another process" if ask.pids else ", of a socket that was not asked for" if ask.peer or ask.uids else ""
    )
    yield Finding(
        "tcp-listen-overflows", "note" if whose else "warning", HOST,
        f"{plural(number, 'time')} {in_window(facts)} a new connection found a full listen queue and was dropped"
        + (whose or ("; none was full when it was read" if are_known else "")),
        changes(space.host, *_OVERFLOWS), next=_LISTEN, window_s=facts.window_s,
    )  # fmt: skip


def _cookies(facts: Facts, space: Space, is_explained: bool) -> Iterator[Finding]:
    sent, dropped = change(space.host, "TcpExt.SyncookiesSent"), change(space.host, "TcpExt.TCPReqQFullDrop")
    mode = space.host.sysctls.get("net.ipv4.tcp_syncookies")
    evidence = changes(
        space.host, *(f"TcpExt.Syncookies{each}" for each in ("Sent", "Recv", "Failed")), "TcpExt.TCPReqQFullDrop"
    )
    if dropped:
        yield Finding(
            "tcp-syn-queue-full", "warning", HOST,
            f"{plural(dropped, 'SYN')} {agreeing(dropped, 'was', 'were')} dropped {in_window(facts)}: the queue of half-open "
            "connections is full, and SYN cookies are off",
            evidence, fix=shell.command("sysctl", "net.ipv4.tcp_syncookies=1"), next=_LISTEN, window_s=facts.window_s,
        )  # fmt: skip
    elif sent and mode != "2":  # 2 sends them always, to test
        back = change(space.host, "TcpExt.SyncookiesRecv")
        why = (
            "a SYN flood, or clients that the answers do not reach"
            if back < sent * _ANSWERED
            else "more clients connect at once than the backlog holds"
        )
        yield Finding(
            "tcp-syn-queue-full", "note" if is_explained or sent < _FEW_COOKIES else "warning", HOST,
            f"{plural(sent, 'SYN')} {agreeing(sent, 'was', 'were')} answered with SYN cookies {in_window(facts)}, "
            f"{back:,} came back: {why}",
            evidence, next=_LISTEN, window_s=facts.window_s,
        )  # fmt: skip


def unanswered_findings(facts: Facts) -> Iterator[Finding]:
    """Connections in SYN_SENT whose SYN was sent again: piles of them, then the others in one note."""
    piles: dict[tuple[bytes, int], list[Watched]] = {}
    full = [each.last for each in facts.listeners if _is_full(each.last)]
    for each in facts.connections:
        if each.last.state == SYN_SENT and _repeats(each.last) and not any(_accepts(one, each.last) for one in full):
            piles.setdefault((each.last.peer, each.last.peer_port), []).append(each)
    ranked = sorted(piles.items(), key=lambda pile: -len(pile[1]))
    large = [pile for pile in ranked if len(pile[1]) >= _PILE][:_MOST_PILES]
    for (peer, port), pile in large:
        yield _unanswered(facts, "warning", address_text(peer, port), pile)
    rest = ranked[len(large) :]
    if rest:
        places = listed([address_text(*place) for place, _ in rest], _MOST_NAMED)
        yield _unanswered(facts, "note", places, [each for _, pile in rest for each in pile])


def _accepts(listener: Socket, client: Socket) -> bool:
    """Whether a connection goes to this listening socket, whose full queue is a finding of its own."""
    return listener.local_port == client.peer_port and (listener.local == client.peer or not any(listener.local))


def _repeats(socket: Socket) -> int:
    return max(socket.retransmits, socket.info.retransmits if socket.info else 0)


def _unanswered(facts: Facts, severity: Severity, places: str, pile: Sequence[Watched]) -> Finding:
    owners = {each.owner.pid: each.owner for each in pile if each.owner is not None}
    names = listed([who(owner) for owner in owners.values()], _MOST_NAMED)
    return Finding(
        "tcp-connect-unanswered", severity, of_process(next(iter(owners.values()))) if len(owners) == 1 else HOST,
        f"{plural(len(pile), 'connection')}{f' of {names}' if names else ''} to {places} "
        f"{agreeing(len(pile), 'gets', 'get')} no answer to {agreeing(len(pile), 'its SYN', 'their SYNs')} (SYN_SENT): "
        "a firewall drops it, the host is down, or its listen queue is full",
        f"the SYN was sent again up to {plural(max(_repeats(each.last) for each in pile), 'time')}",
        next=shell.command("opskit", "tcp", *owners) if len(owners) == 1 and not facts.ask.pids else None,
        window_s=facts.window_s,
    )  # fmt: skip
