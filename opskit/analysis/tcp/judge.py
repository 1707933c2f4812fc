"""Judge the TCP connections of a window, and the machine that they run on. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.finding import most_severe_first
from opskit.analysis.tcp.groups import groups_of
from opskit.analysis.tcp.harm import connection_findings
from opskit.analysis.tcp.host import host_findings
from opskit.analysis.tcp.result import Result
from opskit.proc.tcp_sockets import backlog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.tcp.closing import Look
    from opskit.collect.tcp.facts import Facts, Listener


def judge(facts: Facts, looks: Sequence[Look] = ()) -> Result:
    """Verdicts of all connections in groups, listening sockets, leaks, and findings. `looks`: what closing_look() kept of a watch."""
    groups = groups_of(facts.connections, facts.idle)
    found = [*connection_findings(groups), *host_findings(facts, looks)]
    return Result(
        facts, groups, tuple(sorted(facts.listeners, key=_fullest_first)),
        tuple(sorted(facts.closing, key=lambda each: (-each.last, each.host, each.port))), tuple(most_severe_first(found)),
    )  # fmt: skip


def _fullest_first(listener: Listener) -> tuple[float, int, int]:
    return (
        -listener.most_waiting / max(backlog(listener.last) or 0, 1),
        -listener.most_waiting,
        listener.last.local_port,
    )
