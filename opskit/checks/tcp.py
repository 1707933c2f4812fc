"""TCP: two dumps of all sockets over the window, and the host's counters. Owners are looked for where a finding needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.analysis.tcp.quick import judge_quick, needs_owners
from opskit.checks.gaps import why_denied
from opskit.collect.tcp.collect import Collector
from opskit.collect.tcp.facts import Request
from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.checks.look import Look
    from opskit.collect.tcp.facts import Facts


def check(look: Look) -> Outcome:
    """Judge the sockets of opskit's network namespace, or of those of the processes."""
    collector = Collector(look.host, Request(look.pids, look.window_s, quick=True))
    try:
        facts = collector.look()
        findings = judge_quick(facts)
        if not look.pids and needs_owners(facts, findings):
            facts = collector.with_owners()
            findings = judge_quick(facts)
    finally:
        collector.close()
    sockets = sum(sum(space.states.values()) for space in facts.spaces)
    return Outcome(findings, [plural(sockets, "TCP socket")], _gaps(look, facts))


def _gaps(look: Look, facts: Facts) -> list[Gap]:
    gaps = [
        Gap("tcp", "owners of some sockets", why_denied(look.host.fs))
        if look.host.fs.is_live and " could not be read" in line
        else Gap("tcp", "details of some sockets", line)
        for line in facts.missing
    ]
    if not look.pids:
        from opskit.collect.tcp.space import other_namespaces

        others = other_namespaces(look.host)
        if others:
            what = f"TCP of {plural(others, 'other network namespace')}"
            gaps.append(Gap("tcp", what, "opskit tcp PID looks into that of a process"))
    return gaps
