"""The quick look at TCP: findings about the host, and about connections with a queue where there are any. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.tcp.host import host_findings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opskit.analysis.finding import Finding
    from opskit.collect.tcp.facts import Facts

_WORTH_A_SCAN = 20  # connections in CLOSE_WAIT, which are judged by process
_OF_SOCKETS = ("tcp-close-wait", "tcp-connect-unanswered", "tcp-ports-exhausted", "tcp-ports-nearly-exhausted")
_NOT_READ, _PEER_READS_NOT = "tcp-application-does-not-read", "tcp-peer-does-not-read"


def judge_quick(facts: Facts) -> Sequence[Finding]:
    """The findings. Connections without a queue have none, and their rules are not imported."""
    if not facts.connections:
        return host_findings(facts)
    from opskit.analysis.tcp.judge import judge

    served = {str(each.last.local_port) for each in facts.connections if each.inbound}
    return _once([_unless_slow(finding, served) for finding in judge(facts).findings])


def _once(findings: Sequence[Finding]) -> list[Finding]:
    """Both ends of a connection may be here: a server that does not read, and the client that waits for it, are one problem."""
    unread = {str(each.entity.id): each for each in findings if each.code == _NOT_READ}
    found, told = [], set()
    for finding in findings:
        address, _, port = str(finding.entity.id).rpartition(":")
        server = unread.get(f"{port} from {address.strip('[]')}") if finding.code == _PEER_READS_NOT else None
        if server is not None and server.entity.inside is not None:
            told.add(server)
            who = server.entity.inside.name
            finding = finding._replace(
                summary=f"{finding.summary}; the peer is {who} on this machine",
                next=server.next,
                waits_for=server.entity.inside,
            )
        found.append(finding)
    return [finding for finding in found if finding not in told]


def _unless_slow(finding: Finding, served: set[str]) -> Finding:
    """A client that takes its time to read, as a pager or a download with a limit does, is a note; a server is not."""
    is_served = str(finding.entity.id).partition(" from ")[0] in served
    is_slow = finding.code == _NOT_READ and finding.severity == "warning" and not is_served
    return finding._replace(severity="note") if is_slow else finding


def needs_owners(facts: Facts, findings: Iterable[Finding]) -> bool:
    """Whether the processes that have the sockets are worth a scan of all fd tables."""
    if sum(pile.last for pile in facts.closing) >= _WORTH_A_SCAN:
        return True
    return any(
        finding.severity != "note" and (finding.entity.kind == "socket" or finding.code in _OF_SOCKETS)
        for finding in findings
    )
