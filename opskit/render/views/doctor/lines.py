"""Doctor's answer as stable lines (`-f text`), as the changes of a watch, and as a list in Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.analysis.doctor.watched import key_of
from opskit.escape import markdown, printable
from opskit.render.views.doctor import sentences
from opskit.render.views.doctor.answer import clock_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.doctor.result import Problem
    from opskit.analysis.doctor.watched import Watched
    from opskit.analysis.finding import Finding
    from opskit.render.views.doctor.answer import Answer, Shown


def text(answer: Answer, shown: Shown) -> Iterator[str]:
    """The lines of `-f text`; of a later sample of a watch, and of a later run with a state file, the changes alone."""
    if shown.repeats and answer.watched is not None and answer.watched.sample > 1:
        lines = _changes(answer.watched)
    elif (
        answer.changes is not None
        and answer.exit_code == 0
        and not answer.changes.gone
        and not (shown.verbose or shown.all_)
    ):
        lines = iter(()) if answer.changes.since_s is not None else iter([sentences.verdict(answer)])
    else:
        lines = _whole(answer, shown)
    yield from map(printable, lines)


def _whole(answer: Answer, shown: Shown) -> Iterator[str]:
    yield sentences.verdict(answer)
    for number, problem in sentences.reported(answer, shown):
        mark = sentences.changed(answer).get(key_of(problem.finding), "")
        head = f"{number}. {problem.class_} {f'{mark} ' if mark else ''}"
        yield from _in_full(problem, head) if shown.all_ else _in_short(answer, problem, head)
    if answer.changes is not None:
        yield from (f"gone {each.code} ({each.subject}): {each.summary}" for each in answer.changes.gone)
    if shown.all_:
        for collapsed in answer.result.collapsed:
            for finding in collapsed.findings:
                yield f"also {finding.class_} {_line(finding)}{_evidence(finding)}"
                yield from (f"  {name}: {value}" for name, value in _commands(finding))
    elif answer.result.collapsed and answer.changes is None:
        yield f"also (--all): {sentences.collapsed(answer.result)}"
    yield from _coverage(answer, shown)


def _in_short(answer: Answer, problem: Problem, head: str) -> Iterator[str]:
    """At most three lines."""
    finding = problem.finding
    same = sentences.others(problem, answer.result)
    yield f"{head}{_line(finding)}{f'; also {same}' if same else ''}"
    if problem.effects:
        yield f"  so: {'; '.join(sentences.effects(problem, answer.result))}"
    yield from (f"  {name}: {value}" for name, value in [*_commands(finding)][-1:])


def _in_full(problem: Problem, head: str) -> Iterator[str]:
    yield f"{head}{_line(problem.finding)}{_evidence(problem.finding)}"
    for effect in problem.effects:
        yield from (f"  so: {_line(each)}{_evidence(each)}" for each in (effect.finding, *effect.others))
    yield from (f"  same: {_line(each)}{_evidence(each)}" for each in problem.others)
    yield from (f"  {name}: {value}" for name, value in _commands(problem.finding))


def _coverage(answer: Answer, shown: Shown) -> Iterator[str]:
    if said := sentences.coverage(answer):
        yield said
    if shown.verbose:
        for check in sorted(answer.seen.checked, key=lambda each: each.name):
            cpu = "" if check.cpu_s is None else f" cpu_s={check.cpu_s:.3f}"
            looked_at = ", ".join(check.outcome.looked_at)
            yield f"check {check.name} took_s={check.took_s:.3f}{cpu}{f': {looked_at}' if looked_at else ''}"
        yield from (f"not checked {gap.check}: {gap.what}: {gap.reason}" for gap in answer.all_gaps)


def _line(finding: Finding) -> str:
    return f"{finding.severity} {finding.code} ({finding.entity.name}): {finding.summary}"


def _evidence(finding: Finding) -> str:
    return f" ({finding.evidence})" if finding.evidence else ""


def _commands(finding: Finding) -> Iterator[tuple[str, str]]:
    for name, value in (("fix", finding.fix), ("next", finding.next)):
        if value:
            yield name, value


def _changes(watched: Watched) -> Iterator[str]:
    for finding in watched.came:
        since_s = watched.since_s.get(key_of(finding), watched.at_s)
        word = "new" if since_s == watched.at_s else "back"
        yield f"{clock_time(watched.at_s)} {word} {finding.class_} {_line(finding)}"
        yield from (f"  {name}: {value}" for name, value in _commands(finding))
    for past in watched.went:
        since = f"since {clock_time(past.since_s)}"
        yield f"{clock_time(watched.at_s)} gone {past.finding.class_} {_line(past.finding)}, {since}"


def listing(answer: Answer, shown: Shown) -> Iterator[str]:
    """The numbered list of Markdown, what is collapsed, and what was checked."""
    for number, problem in sentences.reported(answer, shown):
        finding = problem.finding
        said = markdown(finding.summary)
        mark = sentences.changed(answer).get(key_of(finding), "")
        yield f"{number}. **{problem.class_}** {f'({mark}) ' if mark else ''}{said} ({_code(finding.code)}{_more_evidence(finding)})"
        yield from (f"    - so: {markdown(each)}" for each in sentences.effects(problem, answer.result, None))
        yield from (f"    - same: {markdown(each.summary)}" for each in problem.others)
        yield from (f"    - {name}: {_code(value)}" for name, value in _commands(finding))
    if answer.changes is not None:
        yield from (f"- gone: {markdown(each.summary)}" for each in answer.changes.gone)
    yield ""
    if shown.all_:
        for collapsed in answer.result.collapsed:
            for finding in collapsed.findings:
                said = markdown(finding.summary)
                yield f"- also: {said} ({_code(finding.code)}{_more_evidence(finding)})"
                yield from (f"    - {name}: {_code(value)}" for name, value in _commands(finding))
        yield ""
    elif answer.result.collapsed and answer.changes is None:
        yield f"also (--all): {markdown(sentences.collapsed(answer.result))}\n"
    yield from (f"{markdown(each)}  " for each in _coverage(answer, shown))


def _more_evidence(finding: Finding) -> str:
    return f": {markdown(finding.evidence)}" if finding.evidence else ""


def _code(value: str) -> str:
    """A code span, which a backtick in the text does not end."""
    value = printable(value)
    ticks = "`" * (1 + max(map(len, re.findall("`+", value)), default=0))
    blank = " " if value.startswith("`") or value.endswith("`") else ""
    return f"{ticks}{blank}{value}{blank}{ticks}"
