"""What is said about connections: the worst group first, how many there are of each verdict, who waits on them, what to type next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.tcp import result as verdicts
from opskit.analysis.tcp.words import VERDICT_WORDS, sentence, subject
from opskit.escape import printable
from opskit.proc.tcp_sockets import CLOSE_WAIT, ESTABLISHED, address_text
from opskit.quantities import agreeing, duration, listed, percent, plural, size
from opskit.render.views.java_stack import where_in_java
from opskit.render.views.tcp.fields import host_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.analysis.finding import Finding
    from opskit.analysis.tcp.result import Group, Result
    from opskit.collect.fd_threads import FdThread

_INDENT = "  "
_MOST_THREADS = 3  # in a verdict; -v and JSON have all
_QUIET = frozenset({verdicts.IDLE, verdicts.UNKNOWN})
# Where the time goes: here, or at the peer. The others are the network's.
_HERE = frozenset({verdicts.READER_HERE, verdicts.WRITER_HERE})
_THERE = frozenset({verdicts.READER_THERE, verdicts.WRITER_THERE})


def verdict(result: Result) -> Iterator[str]:
    """The worst thing known, a finding about the machine or a group's sentence; what the connections are, what to type next; or why there is nothing to judge."""
    groups = result.groups
    if not groups:
        yield _none(result)
        return
    if result.facts.is_still:
        connections = sum(group.connections for group in groups)
        yield f"{plural(connections, 'connection')}, looked at once: no rates, so no verdict on what is slow."
        return
    told, worse = group_told(result), _worse(result)
    if worse is not None:
        yield f"{worse.summary}."
    if told is not None:
        yield f"{sentence(told)}."
    if told is None or len(groups) > 1:
        yield f"{_counted(result)}."
    following = None if any(finding.next for finding in result.findings) else _next(groups[0])
    if following is not None:
        yield following


def group_told(result: Result) -> Group | None:
    """The group whose sentence is the verdict: the worst, unless it is idle, a finding has the sentence, or another one is worse."""
    if not result.groups or result.facts.is_still:
        return None
    worst = result.groups[0]
    is_told = worst.verdict not in _QUIET and not _is_found(result, worst) and _worse(result) is None
    return worst if is_told else None


def _is_found(result: Result, group: Group) -> bool:
    """Whether a finding has the sentence of the group."""
    return any(finding.summary.startswith(subject(group)) for finding in result.findings)


def _worse(result: Result) -> Finding | None:
    """The first warning or error, where it is about something else: it counts more than what connections do in normal work."""
    finding = next((each for each in result.findings if each.severity != "note"), None)
    return None if _is_found(result, result.groups[0]) else finding


def _counted(result: Result) -> str:
    """`26 connections in 3 groups over 2.0 s: 20 request/response, 6 idle`."""
    numbers: dict[str, int] = {}
    for group in result.groups:
        for name, number in group.verdicts:
            numbers[name] = numbers.get(name, 0) + number
    total = plural(sum(numbers.values()), "connection")
    groups = f" in {plural(len(result.groups), 'group')}" if len(result.groups) > 1 else ""
    return f"{total}{groups} over {duration(result.facts.window_s)}: {_by_verdict(numbers)}"


def _none(result: Result) -> str:
    """Why there is no connection to show."""
    facts, ask = result.facts, result.facts.ask
    whose = f" of {', '.join(map(str, ask.pids))}" if ask.pids else " of these users" if ask.uids else ""
    if ask.peer is not None:
        whose += f" to or from {_network(*ask.peer)}"
    seen = sum(space.states.get(ESTABLISHED, 0) + space.states.get(CLOSE_WAIT, 0) for space in facts.spaces)
    there = f"; {plural(seen, 'connection')} of others" if seen and whose else ""
    listening = f"; {plural(len(result.listeners), 'listening socket')} (--listen)" if result.listeners else ""
    return f"No TCP connection{whose}{there}{listening}."


def _network(packed: bytes, prefix: int, port: int | None) -> str:
    """`10.0.0.7:5432`, `10.0.0.0/8 port 443`, `2001:db8::7`."""
    if prefix == 8 * len(packed):
        return address_text(packed, port) if port else host_name(packed)
    return f"{host_name(packed)}/{prefix}{f' port {port}' if port else ''}"


def listed_group(result: Result, cut: bool, group: Group, detail: int, width: int | None) -> list[str]:
    """The group's sentence, unless the verdict or a finding has it; with `detail` its numbers and threads. Each takes as many lines as it needs.

    `cut`: findings are cut to a line, without their sentences.
    """
    is_said = group is group_told(result) or (not cut and _is_found(result, group))
    head = subject(group) if is_said else sentence(group)
    said = [head, *((", ".join(_numbers(group)), *threads(group)) if detail else ())]
    texts = [_INDENT * bool(place) + printable(text) for place, text in enumerate(said) if text]
    if width is None:
        return texts
    return [line for place, text in enumerate(texts) for line in _wrapped(text, width, _INDENT * (1 + bool(place)))]


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    """The lines of a text; an amount stays with its unit."""
    import re
    from textwrap import wrap

    joined = re.sub(r"(?<=[0-9]) (?=[^0-9 ])", "\xa0", text)
    return [
        line.replace("\xa0", " ")
        for line in wrap(joined, max(width, 20), subsequent_indent=indent, break_on_hyphens=False)
    ]


def _numbers(group: Group) -> Iterator[str]:
    """What was measured; a zero of what is usually zero is left out."""
    rates = group.rates
    if rates.sent_bytes_s is not None:
        yield f"sent {size(rates.sent_bytes_s)}/s"
    if rates.received_bytes_s is not None:
        yield f"received {size(rates.received_bytes_s)}/s"
    if rates.rtt_ms is not None:
        least = "" if rates.min_rtt_ms is None else f" (least {duration(rates.min_rtt_ms / 1000)})"
        yield f"RTT {duration(rates.rtt_ms / 1000)}{least}"
    if rates.loss:
        yield f"lost {percent(rates.loss)}"
    if rates.out_of_order:
        yield f"out of order {percent(rates.out_of_order)}"
    if rates.busy:
        yield f"busy {percent(rates.busy)}"
    if rates.recv_queue_bytes:
        yield f"not read {size(rates.recv_queue_bytes)}"
    if rates.send_queue_bytes:
        yield f"not acknowledged {size(rates.send_queue_bytes)}"
    if len(group.verdicts) > 1:
        yield _by_verdict(dict(group.verdicts))


def _by_verdict(numbers: Mapping[str, int]) -> str:
    """`20 request/response, 6 idle`, the worst first; `idle` where all are."""
    if len(numbers) == 1:
        return VERDICT_WORDS[next(iter(numbers))]
    return ", ".join(f"{numbers[name]:,} {VERDICT_WORDS[name]}" for name in verdicts.VERDICTS if name in numbers)


def threads(group: Group) -> Iterator[str]:
    """Which threads wait on the group's connections, those with the same stack together."""
    alike: dict[tuple[str, int, tuple[str, ...]], dict[int, list[FdThread]]] = {}
    for judged in group.judged:
        for thread in judged.connection.threads:
            alike.setdefault((thread.call, thread.among, thread.frames), {}).setdefault(thread.tid, []).append(thread)
    for (call, among, frames), found in sorted(alike.items(), key=lambda item: -len(item[1]))[:_MOST_THREADS]:
        names = [_waiting(waits) for waits in found.values()]
        rest = among - max(map(len, found.values()))
        others = f" with {plural(rest, 'other fd')}" if rest > 0 else ""
        where = f": {where_in_java(frames)}" if frames else ""
        yield f"{listed(names, 2)} {agreeing(len(names), 'waits', 'wait')} in {call}{others}{where}"


def _waiting(waits: Sequence[FdThread]) -> str:
    """`asker-16 (fd 21)`; of a thread that waits for several of the connections `poller (fd 17, fd 18, … 8 more)`."""
    return f"{waits[0].name} ({listed([f'fd {thread.fd}' for thread in waits], 2)})"


def _next(group: Group) -> str | None:
    """What shows more about the worst group: the process here, or the other end of the connection."""
    if group.verdict in _QUIET or not group.judged:
        return None
    owner = next((judged.connection.owner for judged in group.judged if judged.connection.owner), None)
    most = max(group.shares) if group.shares else None
    if group.verdict in _THERE or (group.shares and group.shares.peer == most):
        return (
            _at_peer(group) if group.verdict == verdicts.READER_THERE or not group.inbound else None
        )  # clients take their time
    if owner is None:
        return None
    if group.verdict in _HERE or (group.shares and group.shares.here == most):
        return f"next: {shell.command('opskit', 'jpmp' if owner.is_jvm else 'profile', owner.pid)}"
    return f"next: {shell.command('opskit', 'tcp', owner.pid, '-v')}" if group.connections > 1 else None


def _at_peer(group: Group) -> str:
    """The same question at the other end of the connections, which may be on this machine too."""
    local = group.judged[0].connection.last.local
    if group.host != local:
        return f"next, on {host_name(group.host)}: {shell.command('opskit', 'tcp', '--peer', host_name(local))}"
    peer = host_name(group.host) if group.inbound else address_text(group.host, group.port)
    return f"next: {shell.command('opskit', 'tcp', '--peer', peer)}"
