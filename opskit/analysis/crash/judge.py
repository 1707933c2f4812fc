"""Why each JVM died: the first pattern that its report proves, and reports with the same cause together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.crash import addresses, memory, native, sent, vm
from opskit.analysis.crash.case import Case
from opskit.analysis.crash.meanings import meaning_of
from opskit.analysis.crash.releases import old_release
from opskit.analysis.crash.result import Group, Result, Verdict
from opskit.analysis.finding import Entity, Finding, most_severe_first
from opskit.jvm.logs.crashes.redaction import redact_report
from opskit.quantities import plural
from opskit.redact import redact_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.analysis.crash.case import Cause
    from opskit.collect.crash.facts import Facts, Read

# In this order: what the kernel or the JVM states before what a stack suggests.
_PATTERNS: Sequence[Callable[[Case], Cause | None]] = (
    memory.java_heap,
    memory.refused,
    sent.timed_out,
    sent.sent,
    sent.aborted,
    addresses.stack_overflow,
    addresses.mapped_file,
    addresses.illegal_instruction,
    sent.damaged_heap,
    native.agent,
    native.wrong_libc,
    native.library_missing,
    native.library,
    native.in_native_method,
    vm.compiler,
    vm.collector,
    vm.internal,
    addresses.unmapped,
    vm.unsafe,
    native.foreign_function,
    native.jdk_library,
    vm.in_vm,
    vm.compiled,
)
# In the names of unpacked libraries, lambdas and temporary files: they differ from run to run.
_COUNTERS = re.compile(r"(?<!0x)(?<![0-9a-f])[0-9]{6,}|(?<=Lambda)[$/0-9a-fx]+")
_ANYWHERE = (
    "crash-gc",
    "crash-compiler",
    "crash-compiled-code",
    "crash-jvm-internal",
    "crash-native-heap",
    "crash-unexplained",
)
_MANY_PLACES = 3
_OF_JDK = (*_ANYWHERE, "crash-jdk-library", "crash-illegal-instruction")
FINDINGS_OF_CAUSES = 3  # of several crashes: the table has all


def judge(facts: Facts, *, redact: bool = True) -> Result:
    """Judge every report, the newest first. `redact`: without secrets, from here on."""
    reads = [_without_secrets(each) for each in facts.read] if redact else [*facts.read]
    facts = facts._replace(read=reads)
    verdicts = sorted((_verdict(read) for read in reads), key=_newest_first)
    groups = _grouped(verdicts)
    return Result(facts, verdicts, most_severe_first(_findings(groups, is_search=bool(facts.places))), groups)


def _without_secrets(read: Read) -> Read:
    core = read.core and read.core._replace(said=read.core.said and redact_text(read.core.said))
    return read._replace(report=redact_report(read.report), core=core)


def _verdict(read: Read) -> Verdict:
    case = Case.of(read)
    cause = next(found for found in _found(case) if found is not None)
    return Verdict(
        read, cause.blamed, cause.sentence, meaning_of(read.report.event), case.application, cause.code,
        alike=_COUNTERS.sub("*", f"{cause.code} {cause.alike or cause.blamed}"), evidence=[each for each in cause.evidence if each], fix=cause.fix, next=cause.next,
    )  # fmt: skip


def _found(case: Case) -> Iterator[Cause | None]:
    for pattern in _PATTERNS:
        yield pattern(case)
    yield vm.unexplained(case)


def _grouped(verdicts: Sequence[Verdict]) -> list[Group]:
    """Reports of the same cause, the most frequent first; each group's newest first."""
    by_cause: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_cause.setdefault(verdict.alike, []).append(verdict)
    return sorted((Group(alike[0], alike) for alike in by_cause.values()), key=lambda group: -len(group.verdicts))


def crashed_s(verdict: Verdict) -> float | None:
    """When it crashed, since the epoch: as the report says; where its time zone is unknown, when the file was written."""
    return verdict.read.modified_s if verdict.read.report.at_s is None else verdict.read.report.at_s


def _newest_first(verdict: Verdict) -> float:
    """The key that sorts the newest crash first."""
    return -(crashed_s(verdict) or 0.0)


def _findings(groups: Sequence[Group], *, is_search: bool) -> Iterator[Finding]:
    """Of each cause. `is_search`: no file was named; then each report is the closer look."""
    is_list = is_search or sum(len(group.verdicts) for group in groups) > 1
    for group in groups[: FINDINGS_OF_CAUSES if is_list else 1]:
        first = group.first
        evidence = "" if is_list else "; ".join(first.evidence)
        yield Finding(
            first.pattern or "crash-unexplained", "error", Entity("file", first.read.name), f"{_alike(group)}{first.cause}", evidence, first.fix,
            next=_look_at(first) if is_search else first.next,
        )  # fmt: skip
    yield from _old(groups)


def _alike(group: Group) -> str:
    """How many crashes share the cause; whose numbers the sentence has, where they differ."""
    if len(group.verdicts) == 1:
        return ""
    newest = "" if len({verdict.cause for verdict in group.verdicts}) == 1 else ", the newest"
    return f"{plural(len(group.verdicts), 'crash', 'crashes')} alike{newest}: "


def _look_at(verdict: Verdict) -> str:
    return shell.command("opskit", "crash", *shell.operands(verdict.read.name))


def _old(groups: Sequence[Group]) -> Iterator[Finding]:
    """One note about a JDK that was old when it crashed, where the JDK may be to blame."""
    for group in groups:
        old = old_release(group.first.read.report) if group.first.pattern in _OF_JDK else None
        if old is not None:
            yield Finding("crash-jdk-old", "note", Entity("file", group.first.read.name), old, "")
            return


def scattered(groups: Sequence[Group]) -> str | None:
    """What crashes in ever other places of one JVM suggest; None where they do not differ so."""
    places: dict[str | None, set[str]] = {}
    for group in groups:
        if group.first.pattern in _ANYWHERE:
            for verdict in group.verdicts:
                places.setdefault(verdict.read.report.java_command, set()).add(verdict.alike)
    most = max(map(len, places.values()), default=0)
    if most < _MANY_PLACES:
        return None
    return f"{most} crashes of one application in other places each: bad memory (memtest), or native code that damages it (-Xcheck:jni), is likelier than as many bugs of the JVM"
