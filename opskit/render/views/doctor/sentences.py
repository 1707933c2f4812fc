"""The sentences of doctor's answer, the same in table, text and Markdown: verdict, effects, what was and was not checked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.analysis.doctor.flat import label, listed
from opskit.analysis.doctor.places import chain
from opskit.analysis.doctor.result import CLASSES
from opskit.analysis.doctor.watched import key_of
from opskit.quantities import duration, plural
from opskit.quantities import listed as shortened
from opskit.render.views.doctor.answer import utc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.doctor.result import Problem, Result
    from opskit.analysis.doctor.state import Changes
    from opskit.analysis.doctor.watched import Key
    from opskit.analysis.finding import Finding
    from opskit.render.views.doctor.answer import Answer, Shown

_EFFECTS, _OTHERS, _WHATS = 3, 3, 4
_LONGEST_REASON = 60
_MORE = "… 99 more (-v)"
_BUG = "a bug in opskit"


def verdict(answer: Answer) -> str:
    """The first line."""
    problems = answer.result.problems
    if not answer.seen.checked:
        return f"nothing was checked {answer.place}"
    if answer.changes is not None:
        return _verdict_of_changes(answer, answer.changes)
    if not problems:
        said = f"no problem found {answer.place}"
        if len(answer.failed) > len(answer.seen.checked):
            return f"{said}, but {checked(answer).replace('checked', 'checked only', 1)}"
        return f"{said}; {checked(answer)}" if is_healthy(answer) else said
    return f"{plural(len(problems), 'problem')} {answer.place}: {_by_class([each.class_ for each in problems])}"


def _verdict_of_changes(answer: Answer, changes: Changes) -> str:
    counted = {"new": len(changes.new), "worse": len(changes.worse), "gone": len(changes.gone)}
    said = ", ".join(f"{number} {what}" for what, number in counted.items() if number)
    stand = f"; {plural(changes.stand, 'problem')} as before" if changes.stand else ""
    if changes.since_s is None:
        found = plural(len(changes.new), "problem") if changes.new else "no problem found"
        classes = f": {_by_class([each.class_ for each in changes.new])}" if changes.new else ""
        return f"{found} {answer.place}{classes} (first run with this state file)"
    return f"{said or 'nothing has changed'} {answer.place} since {utc(changes.since_s)}{stand}"


def _by_class(classes: Sequence[str]) -> str:
    return ", ".join(f"{classes.count(each)} {each}" for each in CLASSES if each in classes)


def heading(problem: Problem, result: Result) -> str:
    """The summary, and what has the same problem."""
    same = others(problem, result)
    return f"{problem.finding.summary}{f'; also {same}' if same else ''}"


def effects(problem: Problem, result: Result, most: int | None = _EFFECTS) -> Iterator[str]:
    """What the problem causes: a sentence each."""
    shown = problem.effects if most is None else problem.effects[:most]
    for effect in shown:
        said = _below(effect.finding, problem.finding, result)
        yield f"{said} (and {effect.more:,} more)" if effect.more else said
    left = problem.effects[len(shown) :]
    if left:
        yield f"{len(left) + sum(each.more for each in left):,} more (--all)"


def _below(effect: Finding, cause: Finding, result: Result) -> str:
    """The summary of an effect without what the line of its cause says already: `it cannot answer a client`."""
    head, said = f"{cause.summary.partition(': ')[0]}: ", effect.summary
    subject = _subject(effect, result)
    if said.startswith(head):
        return said[len(head) :]
    if subject not in cause.summary or cause.entity.kind == "host":
        return said
    if said.startswith(f"{subject} "):
        return f"it{said[len(subject) :]}"
    return said.removeprefix(f"{subject}: ").replace(f" of {subject}", "", 1)


def _subject(finding: Finding, result: Result) -> str:
    """Its process as the summary calls it, `4242 (orders)`, or else by its program; the entity where there is no process."""
    process = next((each for each in chain(finding.entity) if each.kind == "process"), None)
    if process is None:
        return label(finding.entity, result.seen.places)
    pid = process.name
    found = re.search(rf"(?<![0-9]){pid} \([^()]*\)|\S+ \({pid}\)", finding.summary)
    return found[0] if found else label(process, result.seen.places)


def others(problem: Problem, result: Result) -> str:
    """`25396 (billing), 25397 (web), … 3 more (--all)`: what has the same problem; empty: nothing else has."""
    subjects = [_subject(each, result) for each in problem.others]
    return shortened(list(dict.fromkeys(subjects)), _OTHERS, see="--all")


def collapsed(result: Result) -> str:
    """`34 stale attach sockets, 1 note`; empty: nothing is."""
    return ", ".join(each.words for each in result.collapsed)


def checked(answer: Answer) -> str:
    """`checked 17 things in 1.4 s`; `checked 12 of 17 things` where a check gave no answer."""
    number = len(answer.seen.checked)
    of = f"{number:,} of " if answer.failed else ""
    return f"checked {of}{plural(number + len(answer.failed), 'thing')} in {duration(answer.seen.took_s)}"


def unchecked(answer: Answer, room: int | None = None) -> Iterator[str]:
    """`not checked: …` and `with --ask: …`. `room`: characters for both; what has none is counted."""
    asks = f"with --ask: {', '.join(answer.needs_ask)}" if answer.needs_ask else ""
    head = "not checked: "
    groups = [*grouped(answer)]
    if groups and room is None:
        yield head + "; ".join(f"{', '.join(whats)} ({short_reason(reason)})" for reason, whats in groups)
    elif groups and room is not None:
        kept = _fitting(groups, room - len(head) - len(asks) - 2 * bool(asks))
        hidden = len(groups) - len(kept)
        yield head + "; ".join([*kept, *([f"… {hidden} more (-v)"] if hidden else [])])
    if asks:
        yield asks


def _fitting(groups: Sequence[tuple[str, list[str]]], room: int) -> list[str]:
    """The largest groups first, each with what it has, or with their number where that leaves room for the others; at least one."""
    ordered = sorted(groups, key=lambda group: -len(group[1]))
    named = [f"{shortened(whats, _WHATS)} ({short_reason(reason)})" for reason, whats in ordered]
    counted = [f"{_counted(whats)} ({short_reason(reason)})" for reason, whats in ordered]
    kept: list[str] = []
    for at in range(len(ordered)):
        is_whole = len(kept) == at
        end = () if is_whole and at == len(ordered) - 1 else (_MORE,)
        if is_whole and len("; ".join([*kept, named[at], *counted[at + 1 :]])) <= room:
            kept.append(named[at])
        elif not kept or len("; ".join([*kept, counted[at], *end])) <= room:
            kept.append(counted[at])
    return kept


def _counted(whats: Sequence[str]) -> str:
    return whats[0] if len(whats) == 1 else f"{len(whats):,} things"


def grouped(answer: Answer) -> Iterator[tuple[str, list[str]]]:
    """A reason, and all that was not checked for it."""
    gaps = answer.gaps if answer.seen.checked else answer.all_gaps
    by_reason: dict[str, list[str]] = {}
    for gap in gaps:
        by_reason.setdefault(gap.reason, []).append(gap.what)
    for reason, whats in by_reason.items():
        yield reason, list(dict.fromkeys(whats))


def short_reason(reason: str) -> str:
    """For one line; -v has all of it."""
    if reason.startswith(_BUG):
        return f"{_BUG}: -v"
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[: _LONGEST_REASON - 1].rstrip()}…"


def coverage(answer: Answer) -> str:
    """What was and was not checked, as one line."""
    said = [checked(answer)] if answer.seen.checked and not is_healthy(answer) else []
    return "; ".join([*said, *asked(answer), *unchecked(answer)])


def is_healthy(answer: Answer) -> bool:
    """Whether one line says it all: no problem, and none went."""
    return not (answer.result.problems or answer.changes or answer.watched) and bool(answer.seen.checked)


def asked(answer: Answer) -> Iterator[str]:
    """What was sent to JVMs, and how long it paused them: one part of a sentence."""
    pauses = {pid: pause_s for check in answer.seen.checked for pid, pause_s in check.outcome.asked.items()}
    if pauses:
        times = {pid: "an unknown time" if each is None else duration(each) for pid, each in pauses.items()}
        said = (f"{answer.named(pid)}, which paused it for {time}" for pid, time in times.items())
        yield f"took a thread dump of {', and of '.join(said)}"


def changed(answer: Answer) -> dict[Key, str]:
    """`new` or `worse`, by the finding."""
    changes = answer.changes
    if changes is None:
        return {}
    return {key_of(each): word for word, found in (("new", changes.new), ("worse", changes.worse)) for each in found}


def reported(answer: Answer, shown: Shown) -> list[tuple[int, Problem]]:
    """The problems to show with their numbers: all, or those that are new or worse since the last run."""
    numbered = [*enumerate(answer.result.problems, 1)]
    marks = changed(answer)
    if answer.changes is None or shown.all_:
        return numbered
    return [
        (number, problem) for number, problem in numbered if any(key_of(each) in marks for each in listed([problem]))
    ]
