"""How listening sockets are shown: connections that wait for accept(2), the backlog, the owner, overflows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.tcp_sockets import address_text, backlog
from opskit.quantities import duration, plural, whole
from opskit.render.cells import or_dash
from opskit.render.fields import COUNT, ID, SHARE, TEXT, Field, record
from opskit.render.report import Block, Report
from opskit.render.views.tcp.fields import OWNER, host_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.tcp.result import Result
    from opskit.collect.tcp.facts import Listener
    from opskit.render.report import About

# The findings that are about listening sockets; the others are the answer of opskit tcp without --listen.
_CODES = frozenset(
    {
        "tcp-listen-queue-full",
        "tcp-listen-queue-fills",
        "tcp-listen-overflows",
        "tcp-syn-queue-full",
        "tcp-drops-counted",
    }
)
_OVERFLOWS = ("TcpExt.ListenOverflows", "TcpExt.ListenDrops", "TcpExt.SyncookiesSent", "TcpExt.TCPReqQFullDrop")


def dropped(listener: Listener) -> int | None:
    """Connections that this socket refused in the window."""
    first, last = listener.first.memory, listener.last.memory
    if first is None or last is None or first.drops is None or last.drops is None:
        return None
    return (last.drops - first.drops) % 2**32


def dropped_since_start(listener: Listener) -> int | None:
    """Connections that this socket has refused since it was made."""
    memory = listener.last.memory
    return memory.drops if memory else None


def _share(listener: Listener) -> float | None:
    """How full its queue was at the most."""
    most = backlog(listener.last)
    return round(min(listener.most_waiting / most, 1), 4) if most else None


LISTENER: Sequence[Field[Listener]] = (
    Field("local", TEXT, "listens on", lambda it: address_text(it.last.local, it.last.local_port), shrinks=14),
    Field("address", value=lambda it: host_name(it.last.local)),
    Field("port", ID, value=lambda it: it.last.local_port),
    Field("waiting", COUNT, "waiting", lambda it: it.last.recv_queue, help="connections that wait for accept(2)"),
    Field("most_waiting", COUNT, "most", help="in the window", rank=3),
    Field("backlog", COUNT, "backlog", lambda it: backlog(it.last), help="of listen(2), at most net.core.somaxconn"),
    Field("filled", SHARE, value=_share, help="0 to 1: most_waiting of backlog"),
    Field("dropped", COUNT, "dropped", dropped, show=or_dash(whole), rank=1,
          help="connections that were refused in the window, the queue was full"),
    Field("dropped_since_start", COUNT, "since start", dropped_since_start, show=or_dash(whole), rank=2,
          help="the same since the socket was made"),
    Field("owner", record(OWNER), value=lambda it: it.owner),
    Field("uid", ID, value=lambda it: it.last.uid),
    Field("pid", ID, "pid", lambda it: it.owner.pid if it.owner else None, json=False),
    Field("fd", ID, "fd", lambda it: it.owner.fd if it.owner else None, json=False, rank=4),
    Field("command", TEXT, "process", lambda it: it.owner.command if it.owner else None, json=False, shrinks=10),
    Field("interface", ID, value=lambda it: it.last.interface or None, help="the index of the interface that it is bound to"),
)  # fmt: skip


def report(about: About, result: Result, top: int | None) -> Report:
    """The fullest first. `top`: -n."""
    rows = result.listeners
    return Report(
        about,
        [Block(LISTENER, rows[: top or None], len(rows), one_line=True)] if rows else [],
        verdict=[*_verdict(result)],
        summary=[*_counters(result)],
        findings=[finding for finding in result.findings if finding.code in _CODES],
    )


def _verdict(result: Result) -> Iterator[str]:
    listeners = result.listeners
    if not listeners:
        whose = " of these processes" if result.facts.ask.pids else ""
        yield f"No TCP socket{whose} listens."
        return
    full = [each for each in listeners if (most := backlog(each.last)) is not None and each.most_waiting > most]
    counted = plural(len(listeners), "listening socket")
    fullest = max(listeners, key=lambda each: each.most_waiting)
    if len(full) == 1:
        where, length = address_text(full[0].last.local, full[0].last.local_port), backlog(full[0].last)
        waiting = plural(full[0].most_waiting, "connection waits", "connections wait")
        yield f"The queue of {where} is full: {waiting} for accept(2), its backlog is {length:,} ({counted})."
    elif full:
        yield f"{len(full):,} of {counted} have a full queue: connections wait for accept(2)."
    elif fullest.most_waiting:
        where = address_text(fullest.last.local, fullest.last.local_port)
        if (length := backlog(fullest.last)) is None:
            yield f"{counted.capitalize()}; at most {fullest.most_waiting:,} wait for accept(2) on {where}; the backlogs are unknown."
        else:
            yield f"No queue is full: {counted}; at most {fullest.most_waiting:,} of {length:,} wait for accept(2) on {where}."
    else:
        yield f"No queue is full: {counted}; no connection waits for accept(2)."


def _counters(result: Result) -> Iterator[str]:
    """What the kernel has counted of its network namespaces: in the window, and since boot."""
    for space in result.facts.spaces:
        last, first = space.host.last, space.host.first
        said = [
            f"{name.rpartition('.')[2]} {last[name]:,}"
            + (f" (+{last[name] - first[name]:,} in {duration(result.facts.window_s)})" if name in first else "")
            for name in _OVERFLOWS
            if last.get(name)
        ]
        if said:
            yield f"since boot{f' in {space.namespace}' if len(result.facts.spaces) > 1 else ''}: {', '.join(said)}"
