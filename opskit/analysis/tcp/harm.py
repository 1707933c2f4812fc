"""Findings about connections: a verdict becomes one where the data prove harm. Pure.

A slow peer, a full line or a peer's long answers are normal work, and clients come and go: they stay verdicts.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding
from opskit.analysis.tcp import result as verdicts
from opskit.analysis.tcp.connection import LOSS
from opskit.analysis.tcp.window import looks, window_of
from opskit.analysis.tcp.words import answer, subject
from opskit.proc.tcp_sockets import CLOSE_WAIT, ESTABLISHED, address_text, host_text
from opskit.quantities import duration, plural, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.analysis.tcp.result import Group, Judged
    from opskit.analysis.tcp.window import Window

_THROUGHOUT, _LATE_S, _WHOLE_S = 0.9, 1.0, 0.95
_FEWEST_RESENT, _FEWEST_SENT = 10, 200  # segments
_OF_ALL_SENT = 0.05  # one of thousands of clients with a bad line is no trouble of this machine
_CLIENTS_LOSS = 0.05
_UNANSWERED = 3
_BLOCKED_S, _MOST_BACKOFF = 3.0, 16


def connection_findings(groups: Sequence[Group]) -> Iterator[Finding]:
    """One for each group and kind of harm."""
    sent_s = sum(group.rates.sent_bytes_s or 0.0 for group in groups)
    for group in groups:
        for code, verdict, harmed_of in _HARMS:
            harmed = harmed_of([each for each in group.judged if each.verdict == verdict and _is_in_use(each)])
            if harmed:
                of_them = ((verdict, len(harmed)),)
                yield _finding(code, group._replace(verdict=verdict, judged=tuple(harmed), verdicts=of_them))
        if _loses(group, sent_s):
            yield _finding("tcp-network-loses", group._replace(verdict=verdicts.LOSS))


def _is_in_use(judged: Judged) -> bool:
    """Whether a process may still send on it: after its close(2) the kernel does the rest, and nobody waits."""
    return judged.connection.last.state in (ESTABLISHED, CLOSE_WAIT)


def _whole_window(judged: Judged) -> Window | None:
    window = window_of(judged.connection)
    return window if window is not None and window.elapsed_s >= _WHOLE_S else None


def _is_behind(judged: Judged) -> bool:
    """It read nothing, or too little for what was queued to be read within a second: all the time, or as its queue was full at times."""
    window = _whole_window(judged)
    if window is None or window.read is None:
        return False
    if not window.read:
        return True
    seen = looks(judged.connection)
    queues = sorted(look.recv_queue for look in seen)
    is_full = any(look.recv_queue >= look.rcv_ssthresh for look in seen)
    queued = sum(queues) / len(queues) if is_full else queues[int(len(queues) * (1 - _THROUGHOUT))]
    return queued >= _LATE_S * window.read / window.elapsed_s


def _is_blocked(judged: Judged) -> bool:
    """A server that this process writes to took nothing for seconds. A client may take its time.

    A slow reader opens its window again when half of its buffer is free: until then the kernel probes, at twice the time each.
    """
    window, info = _whole_window(judged), judged.connection.last.info
    if window is None or info is None or window.acked != 0 or judged.connection.inbound:
        return False
    probes: int = (1 << min(info.backoff, _MOST_BACKOFF)) - 1
    return info.rto_us / 1e6 * probes >= _BLOCKED_S


def _is_cut_off(judged: Judged) -> bool:
    """The server does not answer. A client may have gone; connections that were never made are those of the host's findings."""
    last = judged.connection.last
    times = max(last.retransmits, last.info.retransmits if last.info is not None else 0)
    return times >= _UNANSWERED and not judged.connection.inbound


def _those(is_harmed: Callable[[Judged], bool], judged: Sequence[Judged]) -> Sequence[Judged]:
    return [each for each in judged if is_harmed(each)]


def _in_black_hole(judged: Sequence[Judged]) -> Sequence[Judged]:
    """All of them, if the peer of one is known to be there, or several show the same. A client may have gone, a server seldom."""
    proven = len(judged) > 1 or any(_is_heard(each) or not each.connection.inbound for each in judged)
    return judged if proven else ()


def _is_heard(judged: Judged) -> bool:
    info, window = judged.connection.last.info, window_of(judged.connection)
    return (info is not None and bool(info.sacked)) or (window is not None and bool(window.received))


def _loses(group: Group, sent_s: float) -> bool:
    """Much is lost of much that was sent. Clients on the internet have lines that always lose some."""
    loss = group.rates.loss or 0.0
    if loss < LOSS or (group.rates.sent_bytes_s or 0) < _OF_ALL_SENT * sent_s:
        return False
    if group.inbound and loss < _CLIENTS_LOSS and _is_on_the_internet(group.host):
        return False
    windows = [
        window for each in group.judged if each.verdict != verdicts.IDLE if (window := window_of(each.connection))
    ]
    resent, sent = sum(each.resent_segments or 0 for each in windows), sum(each.data_out or 0 for each in windows)
    return resent >= _FEWEST_RESENT and sent >= _FEWEST_SENT


def _is_on_the_internet(host: bytes) -> bool:
    from ipaddress import ip_address

    return ip_address(host).is_global


_HARMS: Sequence[tuple[str, str, Callable[[Sequence[Judged]], Sequence[Judged]]]] = (
    ("tcp-application-does-not-read", verdicts.READER_HERE, partial(_those, _is_behind)),
    ("tcp-peer-does-not-read", verdicts.READER_THERE, partial(_those, _is_blocked)),
    ("tcp-mtu-black-hole", verdicts.BLACK_HOLE, _in_black_hole),
    ("tcp-peer-does-not-answer", verdicts.UNANSWERED, partial(_those, _is_cut_off)),
)


def _finding(code: str, group: Group) -> Finding:
    judged = group.judged[0]
    connection, last = judged.connection, judged.connection.last
    owner = connection.owner
    inside = None if owner is None else Entity("process", owner.pid, owner.start_ticks)
    port = last.local_port if group.inbound else group.port
    peer = address_text(last.peer, last.peer_port)
    fix = shell.command("sysctl", "-w", "net.ipv4.tcp_mtu_probing=1") if code == "tcp-mtu-black-hole" else None
    return Finding(
        code, "warning", Entity("socket", f"{port} from {host_text(last.peer)}" if group.inbound else peer, inside=inside),
        f"{subject(group)}: {answer(group)}", _evidence(group), fix, _closer_look(code, judged),
        share=group.rates.loss if code == "tcp-network-loses" else None, window_s=round(connection.elapsed_s, 3),
    )  # fmt: skip


def _closer_look(code: str, judged: Judged) -> str:
    """The stacks of a process that does not read; the path, where that is the trouble; else the connections themselves."""
    connection, host = judged.connection, host_text(judged.connection.last.peer).strip("[]")
    owner = connection.owner
    if code == "tcp-mtu-black-hole":
        return shell.command("tracepath", "-n", host)
    if code == "tcp-peer-does-not-answer":
        return shell.command("ping", "-c", "3", host)
    if code == "tcp-application-does-not-read" and owner is not None:
        return shell.command("opskit", "jpmp" if owner.is_jvm else "profile", owner.pid)
    return shell.command("opskit", "tcp", *([owner.pid] if owner is not None else []), "--peer", host, "-v")


def _evidence(group: Group) -> str:
    """What was read of the first connection."""
    judged = group.judged[0]
    connection, last, window = judged.connection, judged.connection.last, window_of(judged.connection)
    parts = [f"{address_text(last.local, last.local_port)} to {address_text(last.peer, last.peer_port)}"]
    if connection.owner is not None:
        parts.append(f"fd {connection.owner.fd} of {connection.owner.pid}")
    if last.info is not None:
        parts.append(f"tcp_info, {plural(len(looks(connection)), 'look')} in {duration(connection.elapsed_s)}")
    parts.append(f"Recv-Q {size(last.recv_queue)}, Send-Q {size(last.send_queue)}")
    if window is not None and window.resent_segments:
        parts.append(f"{plural(window.resent_segments, 'segment')} of {window.data_out or 0:,} sent again")
    return "; ".join(parts)
