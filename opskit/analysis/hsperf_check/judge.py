"""Judge the attach and hsperfdata files of JVMs: which client can attach, what deviates, what --fix would do. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding, most_severe_first
from opskit.analysis.hsperf_check import rules
from opskit.analysis.hsperf_check.clients import ClientVerdict, clients
from opskit.analysis.hsperf_check.repairs import (
    OTHERS_MAY_WRITE,
    doubt_of_counters,
    not_a_trigger,
    open_to_others,
    plan,
)
from opskit.analysis.hsperf_check.rules import Subject
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opskit.analysis.finding import Severity
    from opskit.analysis.hsperf_check.repairs import Repair
    from opskit.analysis.hsperf_check.rules import Rule, Text
    from opskit.collect.hsperf_check import Facts
    from opskit.jvm.attach.files import Surroundings
    from opskit.jvm.attach.leftovers import Leftover

_INTENDED = ("disabled", "other-user")  # reasons of a probe that are not a fault


class Checked(NamedTuple):
    """One JVM: which client can attach, and what deviates."""

    around: Surroundings
    clients: Sequence[ClientVerdict]
    findings: Sequence[Finding]


class Result(NamedTuple):
    """The verdict on all of them: findings most severe first, repairs in the order of the JVMs, then of the leftovers."""

    facts: Facts
    checked: Sequence[Checked]
    findings: Sequence[Finding]
    repairs: Sequence[Repair]

    @property
    def exit_code(self) -> int | None:
        """130 after Ctrl-C, 2 where a JVM did not answer a probe in time; None: by the findings."""
        if self.facts.interrupted:
            return 130
        return 2 if any(probe.reason == "timeout" for probe in self.facts.probes.values()) else None


def judge(facts: Facts) -> Result:
    """Apply the rules to each JVM, to the leftovers of ended JVMs, and to the probes."""
    repairs: list[Repair] = []
    checked = [Checked(each, [*clients(facts, each)], [*_of_jvm(facts, each, repairs)]) for each in facts.around]
    found = [finding for each in checked for finding in each.findings]
    for left in facts.leftovers:
        subject = Subject(facts, left.pid, entry=left.entry, doubt=_doubt_of_leftover(left), left=left)
        found += _apply(rules.LEFTOVER, subject, left.kind, repairs)
    found += _of_probes(facts)
    # Two JVMs that share a /tmp have what is wrong with it in common.
    return Result(facts, checked, most_severe_first(dict.fromkeys(found)), repairs)


def _apply(which: Iterable[Rule], subject: Subject, kind: str, repairs: list[Repair]) -> Iterator[Finding]:
    """The findings about a subject; their repairs go to `repairs`. `kind`: of the entity."""
    for rule in which:
        if not rule.when(subject):
            continue
        fix = _text(rule.fix, subject)
        if rule.repair is not None:
            repairs.append(plan(subject, subject.entry, rule.code, *rule.repair))
            fix = repairs[-1].fix
        severity = rule.severity if isinstance(rule.severity, str) else rule.severity(subject)
        summary, evidence = _text(rule.summary, subject) or "", rule.evidence.format(s=subject)
        yield Finding(rule.code, severity, subject.entity(kind), summary, evidence, fix, _text(rule.next, subject))


def _text(text: Text, subject: Subject) -> str | None:
    return text.format(s=subject) if isinstance(text, str) else text(subject)


def _of_jvm(facts: Facts, around: Surroundings, repairs: list[Repair]) -> Iterator[Finding]:
    pid = around.pid
    yield from _apply(rules.JVM, Subject(facts, pid, around), "process", repairs)
    tmp = around.tmp
    if tmp is None:
        return
    yield from _apply(rules.TMP, Subject(facts, pid, around, tmp.entry), "shared", repairs)
    socket = around.socket
    if socket is not None:
        unknown = None if socket.peer == pid or socket.alive is False else "the process that listens on it is unknown"
        yield from _apply(rules.SOCKET, Subject(facts, pid, around, socket.entry, doubt=unknown), "socket", repairs)
    elif around.listener and not around.stopped:
        path = f"{tmp.entry.path}/.java_pid{around.jvm.ns_pid}"
        yield from _apply(rules.DELETED_SOCKET, Subject(facts, pid, around, path=path), "socket", repairs)
    for trigger in around.triggers:
        doubt = not_a_trigger(trigger.entry)
        subject = Subject(facts, pid, around, trigger.entry, doubt=doubt, in_cwd=trigger.in_cwd)
        yield from _apply(rules.TRIGGER, subject, "file", repairs)
    if around.counters is not None and around.named and not around.perf_flag:
        yield from _of_counters(facts, around, repairs)


def _of_counters(facts: Facts, around: Surroundings, repairs: list[Repair]) -> Iterator[Finding]:
    counters, pid = around.counters, around.pid
    if counters is None or around.tmp is None:
        return
    directory, entry, mapping = counters.directory, counters.entry, counters.mapping
    doubt = doubt_of_counters(around)
    if directory is not None:
        refused = doubt or open_to_others(directory.file, around.euid)
        right = directory.mode & ~OTHERS_MAY_WRITE
        subject = Subject(facts, pid, around, directory, doubt=refused, right_mode=right)
        yield from _apply(rules.DIRECTORY, subject, "shared", repairs)
    if entry is not None and counters.is_own:
        links = entry.file.links
        refused = f"it has {links} links" if links != 1 else doubt or open_to_others(entry.file, around.euid)
        subject = Subject(facts, pid, around, entry, doubt=refused)
        yield from _apply(rules.COUNTERS, subject, "file", repairs)
    elif entry is not None:
        yield from _apply(rules.OTHERS_COUNTERS, Subject(facts, pid, around, entry), "file", repairs)
    else:
        place = directory.path if directory else f"{around.tmp.entry.path}/hsperfdata_{around.user or '…'}"
        path = mapping.path if mapping else f"{place}/{around.jvm.ns_pid}"
        yield from _apply(rules.NO_COUNTERS, Subject(facts, pid, around, path=path), "file", repairs)


def _doubt_of_leftover(left: Leftover) -> str | None:
    """Why a leftover is not removed; None where it is proven dead, as far as could be seen."""
    entry = left.entry
    if left.kind == "socket":
        return None if entry.kind == "socket" else f"it is a {entry.kind}"
    if left.kind == "trigger":
        return not_a_trigger(entry)
    if entry.kind != "plain file" or entry.file.links != 1:
        return f"it is a {entry.kind} with {entry.file.links} links"
    return None if left.locked is False and left.mapped is False else "not every process could be looked into"


def _of_probes(facts: Facts) -> Iterator[Finding]:
    starts = {around.pid: around.jvm.start_ticks for around in facts.around}
    for pid, probe in facts.probes.items():
        if probe.reason is not None:
            severity: Severity = "note" if probe.reason in _INTENDED else "error"
            evidence = f"--probe: {probe.reason} after {probe.took_ms:.0f} ms"
            closer = shell.command("opskit", "safepoints", pid) if probe.reason == "timeout" else None
            process = Entity("process", pid, starts[pid])
            yield Finding("attach-probe-failed", severity, process, probe.said, evidence, next=closer)
