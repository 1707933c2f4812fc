"""Findings about the host's part in TCP: queues, CLOSE_WAIT, ports, limits, the network as a whole, counters since boot. Pure.

Counters since boot are judged by their change in the window; what they counted before is a note.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.finding import HOST, Finding, most_severe_first
from opskit.analysis.tcp.closing import closing_findings
from opskit.analysis.tcp.limits import limit_findings, machine_findings
from opskit.analysis.tcp.network import buffer_findings, network_findings
from opskit.analysis.tcp.queues import drop_findings, listener_findings, unanswered_findings
from opskit.analysis.tcp.space import change

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.tcp.closing import Look
    from opskit.collect.tcp.facts import Facts, Space

_PAST = {
    "TcpExt.ListenOverflows": "connections dropped at full listen queues",
    "TcpExt.TCPReqQFullDrop": "SYNs dropped without SYN cookies",
    "TcpExt.SyncookiesSent": "SYN cookies sent",
    "TcpExt.TCPTimeWaitOverflow": "connections ended without TIME_WAIT",
    "TcpExt.TCPMemoryPressures": "times of TCP memory pressure",
    "TcpExt.TCPAbortOnMemory": "connections aborted for memory or orphans",
    "Conntrack.drop": "packets dropped by connection tracking",
    "Conntrack.early_drop": "connection tracking entries evicted",
}


def host_findings(facts: Facts, looks: Sequence[Look] = ()) -> list[Finding]:
    """The findings about the host, the most severe first. `looks`: what closing_look() kept of a watch, the last one included."""
    queues = listener_findings(facts)
    found = [*queues, *closing_findings(facts, looks), *unanswered_findings(facts), *buffer_findings(facts)]
    for space in facts.spaces:
        of_space = [
            *drop_findings(facts, space, is_explained=any(each.severity != "note" for each in queues)),
            *limit_findings(facts, space),
            *network_findings(facts, space),
            *([] if facts.ask.pids and not _dropped_any(facts) else _past(facts, space)),
        ]
        found += [_with_namespace(each, facts, space) for each in of_space]
    return most_severe_first([*found, *machine_findings(facts)])


def _with_namespace(finding: Finding, facts: Facts, space: Space) -> Finding:
    """Where there are several, the evidence names it."""
    if len(facts.spaces) < 2 or space.namespace is None:
        return finding
    return finding._replace(evidence=f"{finding.evidence}; network namespace {space.namespace}")


def _dropped_any(facts: Facts) -> bool:
    """Whether a listening socket that was read has ever dropped a connection."""
    return any(each.last.memory is not None and each.last.memory.drops for each in facts.listeners)


def _past(facts: Facts, space: Space) -> Iterator[Finding]:
    """One note about what was counted before the window and did not grow in it."""
    first = space.host.first
    past = [(name, first[name]) for name in _PAST if first.get(name) and not change(space.host, name)]
    if past:
        before = "" if facts.is_still else "before this window, "
        yield Finding(
            "tcp-drops-counted", "note", HOST,
            f"{before}since the network namespace was made: {', '.join(f'{number:,} {_PAST[name]}' for name, number in past)}",
            ", ".join(f"{name} {number}" for name, number in past), window_s=facts.window_s,
        )  # fmt: skip
