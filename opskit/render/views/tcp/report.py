"""Connections as a report: the worst group's sentence, a row for each group, with -v for each connection."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from opskit.analysis.tcp.words import answer, connection_answer, connection_subject, sentence, subject
from opskit.records import NamedTuple
from opskit.render.fields import COUNT, ID, TEXT, Field
from opskit.render.report import Block, Listing, Report
from opskit.render.views.tcp import host, sentences
from opskit.render.views.tcp.fields import (
    CLOSING,
    RATES,
    TABLE_RATES,
    host_name,
    local_text,
    owner_of,
    peer_text,
    state_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.tcp.result import Group, Judged, Result
    from opskit.render.report import About


DEFAULT_TOP = 50  # groups, or connections; json, csv and prometheus have all


class Shown(NamedTuple):
    """How to show it. `text`: columns for awk; `verbose`: each connection; `listen`: the listening sockets alone; `top`: -n; `asked`: --ask; `watching`: -w."""

    text: bool = False
    verbose: bool = False
    listen: bool = False
    top: int | None = None
    asked: bool = False
    watching: bool = False


TABLE: Sequence[Field[Group]] = (
    Field("connections", TEXT, "connections", subject),
    Field("answer", TEXT, "verdict", answer),
    *TABLE_RATES,
)
TEXT_TABLE: Sequence[Field[Group]] = (
    Field("command", TEXT, "process"),
    Field("direction", TEXT, "direction", lambda group: "in" if group.inbound else "out"),
    Field("host", TEXT, "peer", lambda group: host_name(group.host)),
    Field("port", ID, "port"),
    Field("connections", COUNT, "connections"),
    Field("verdict", TEXT, "verdict"),
    *RATES,
    Field("sentence", TEXT, "sentence", sentence),
)
CONNECTIONS: Sequence[Field[Judged]] = (
    Field("connection", TEXT, "connection", connection_subject, shrinks=20),
    Field("fd", ID, "fd", lambda row: (owner := owner_of(row)) and owner.fd, rank=9),
    Field("answer", TEXT, "verdict", connection_answer, shrinks=36),
    *TABLE_RATES,
)
TEXT_CONNECTIONS: Sequence[Field[Judged]] = (
    Field("pid", ID, "pid", lambda row: (owner := owner_of(row)) and owner.pid),
    Field("fd", ID, "fd", lambda row: (owner := owner_of(row)) and owner.fd),
    Field("local", TEXT, "local", local_text),
    Field("peer", TEXT, "peer", peer_text),
    Field("state", TEXT, "state", lambda row: state_name(row.connection.last.state)),
    Field("verdict", TEXT, "verdict"),
    *RATES,
    Field("answer", TEXT, "sentence", connection_answer),
)


def report(about: About, result: Result, shown: Shown) -> Report:
    """Groups, or with --listen listening sockets."""
    if shown.listen:
        from opskit.render.views.tcp import listen

        made = listen.report(about, result, shown.top)
    else:
        made = Report(
            about, [*_blocks(result, shown)], verdict=[*sentences.verdict(result)], summary=[*_summary(result, shown)],
            findings=result.findings,
        )  # fmt: skip
    return made._replace(footer=[*_footer(result, shown)])


def _summary(result: Result, shown: Shown) -> Iterator[str]:
    """What the machine's network namespaces have; the text has no other place to count the rows that it leaves out."""
    hidden = len(result.groups) - DEFAULT_TOP
    if shown.text and shown.top is None and hidden > 0:
        yield f"… {hidden:,} more groups; -n 0 shows all"
    yield from host.summary(result.facts)
    if shown.verbose:
        yield from host.limits(result.facts)


def _footer(result: Result, shown: Shown) -> Iterator[str]:
    """What could not be read, and where else there are connections."""
    facts = result.facts
    yield from dict.fromkeys(facts.missing)
    if not facts.ask.pids:
        yield from host.elsewhere(facts)
    owners = [judged.connection.owner for group in result.groups for judged in group.judged]
    if shown.asked and owners and not any(owner and owner.is_jvm for owner in owners):
        yield "--ask has no effect: no connection is one of a JVM"


def _blocks(result: Result, shown: Shown) -> Iterator[Block[Any]]:
    top, groups = DEFAULT_TOP if shown.top is None else shown.top or None, result.groups
    if groups:
        listing = Listing(partial(sentences.listed_group, result, shown.watching), 1, 1)
        yield Block(TEXT_TABLE if shown.text else TABLE, groups[:top], len(groups), listing=listing)
    if not shown.verbose:
        return
    judged = [each for group in groups for each in group.judged]
    if judged:
        counted = sum(group.connections for group in groups) - len(judged)
        title = f"connections, without {counted:,} idle ones" if counted else "connections"
        yield Block(TEXT_CONNECTIONS if shown.text else CONNECTIONS, judged[:top], len(judged), title, one_line=True)
    if result.closing:
        title = "closed by the peer, not by the process"
        yield Block(CLOSING, result.closing[:top], len(result.closing), title, one_line=True, details=True)
    destinations = [each for space in result.facts.spaces for each in space.host.destinations]
    if destinations:
        title = "local ports used, by destination"
        yield Block(host.DESTINATION, destinations[:top], len(destinations), title, one_line=True, details=True)
