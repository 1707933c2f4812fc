"""Doctor's answer on a terminal: the verdict, as many problems as fit in full, a line for each other one, what was checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.watched import key_of
from opskit.quantities import duration, listed
from opskit.render.paragraphs import Paragraph, rows
from opskit.render.views.doctor import sentences
from opskit.render.views.doctor.answer import clock_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.doctor.result import Problem
    from opskit.analysis.doctor.seen import Checked
    from opskit.analysis.finding import Finding
    from opskit.render.views.doctor.answer import Answer, Shown

_MOST_ROWS = 40  # without --all
_MOST_GONE = 5
# A closer look at these shows no more than doctor has measured.
_MEASURED = frozenset({"cpu-throttled", "process-stopped", "threads-none-left", "threads-nearly-none-left"})
_MARK = len("since 14:02:50")
_STYLES = {"stuck": "red", "slow": "yellow", "soon": "yellow", "tools": "cyan"}
_FOLD = 12  # characters that folding leaves free at the end of a line
_ROOM = 200  # characters for what was not checked, off a terminal


def page(answer: Answer, shown: Shown, width: int | None, height: int | None) -> list[Paragraph]:
    """The whole answer. `width` and `height`: of the terminal; None: no terminal, or no more than it holds is asked for."""
    problems = sentences.reported(answer, shown)
    head = [Paragraph(_verdict(answer), style="bold")]
    below = [*_gone(answer), *_below(answer, shown, width)]
    room = _MOST_ROWS if height is None else min(height - 1, _MOST_ROWS)
    room -= sum(rows(each, width) for each in (*head, *below))
    shown_problems = _all(answer, problems) if shown.all_ else _fitting(answer, problems, room, width)
    return [*head, *shown_problems, *below, *(_details(answer) if shown.verbose else ())]


def _verdict(answer: Answer) -> str:
    said = sentences.verdict(answer)
    return said if answer.watched is None else f"{said}  {clock_time(answer.seen.at_s)} UTC"


def _below(answer: Answer, shown: Shown, width: int | None) -> Iterator[Paragraph]:
    """What is collapsed, and what was not checked: a line each where nothing was found, two where something was."""
    collapsed = sentences.collapsed(answer.result)
    if collapsed and shown.all_:
        yield from _collapsed(answer)
    elif collapsed and answer.changes is None:
        yield Paragraph(f"also (--all): {collapsed}", is_cut=True)
    is_healthy = sentences.is_healthy(answer)
    said = [] if is_healthy or not answer.seen.checked else [sentences.checked(answer)]
    said += sentences.asked(answer)
    room = (width or _ROOM) if is_healthy else 2 * (width or _ROOM) - _FOLD
    room -= sum(len(each) + len("; ") for each in said)
    parts = [*said, *sentences.unchecked(answer, None if shown.all_ or not answer.seen.checked else room)]
    if parts:
        yield Paragraph("; ".join(parts), style="dim", is_cut=is_healthy and not shown.all_)


def _fitting(
    answer: Answer, problems: Sequence[tuple[int, Problem]], room: int, width: int | None
) -> Iterator[Paragraph]:
    """The first problems in as much detail as leaves a line for each other one."""
    most = max(1, room - 1) if len(problems) > max(1, room) else len(problems)
    left = len(problems) - most
    spare = room - most - bool(left)
    for number, problem in problems[:most]:
        forms = _forms(answer, number, problem)
        needs = [sum(rows(each, width) for each in form) - 1 for form in forms]
        form, need = next(((form, need) for form, need in zip(forms, needs) if need <= spare), (forms[-1], 0))
        spare -= need
        yield from form
    if left:
        yield Paragraph(f"… {left:,} more: --all")


def _forms(answer: Answer, number: int, problem: Problem) -> list[list[Paragraph]]:
    """With effects, with the next command, and as one line."""
    first = _first(answer, number, problem, sentences.heading(problem, answer.result))
    lead = " " * len(first.lead)
    so = "; ".join(sentences.effects(problem, answer.result))
    then = [*_commands(problem.finding, lead)]
    return [
        [first, *([Paragraph(f"so: {so}", lead)] if so else []), *then],
        [first, *then],
        [first._replace(is_cut=True)],
    ]


def _first(answer: Answer, number: int, problem: Problem, said: str) -> Paragraph:
    mark = _mark(answer, problem.finding)
    lead = f"{number:>2}. {problem.class_:<5}  {mark}{'  ' if mark else ''}"
    style = "bold" if problem.severity == "error" else ""
    return Paragraph(said, lead, style, _STYLES.get(problem.class_, ""))


def _mark(answer: Answer, finding: Finding) -> str:
    """With -w `new 14:03:10` or `since 14:02:50`; with --since-file `new` or `worse`."""
    if answer.watched is not None:
        since_s = answer.watched.since_s.get(key_of(finding))
        word = "new" if key_of(finding) in answer.watched.new else "since"
        return "" if since_s is None else f"{f'{word} {clock_time(since_s)}':<{_MARK}}"
    return "" if answer.changes is None else f"{sentences.changed(answer).get(key_of(finding), 'as before'):<5}"


def _commands(finding: Finding, lead: str, *, both: bool = False) -> Iterator[Paragraph]:
    """The closer look; the repair where that shows no more; with --all both."""
    repairs = finding.fix is not None and (finding.next is None or finding.code in _MEASURED)
    if finding.fix and (both or repairs):
        yield Paragraph(f"fix: {finding.fix}", lead, is_command=True)
    if finding.next and (both or not repairs):
        yield Paragraph(f"next: {finding.next}", lead, is_command=True)


def _all(answer: Answer, problems: Sequence[tuple[int, Problem]]) -> Iterator[Paragraph]:
    """Each problem with its evidence, every effect, and everything that has it too."""
    result = answer.result
    for number, problem in problems:
        first = _first(answer, number, problem, problem.finding.summary)
        lead = " " * len(first.lead)
        yield first
        if problem.finding.evidence:
            yield Paragraph(f"({problem.finding.code}: {problem.finding.evidence})", lead, "dim")
        yield from (Paragraph(each, f"{lead}so: ") for each in sentences.effects(problem, result, None))
        yield from (Paragraph(each.summary, f"{lead}same: ") for each in problem.others)
        yield from _commands(problem.finding, lead, both=True)


def _collapsed(answer: Answer) -> Iterator[Paragraph]:
    for collapsed in answer.result.collapsed:
        yield Paragraph(f"{collapsed.words}:", style="bold")
        for finding in collapsed.findings:
            evidence = f" ({finding.evidence})" if finding.evidence else ""
            yield Paragraph(f"{finding.summary}{evidence}", "  ")
            yield from _commands(finding, "    ", both=True)


def _gone(answer: Answer) -> list[Paragraph]:
    """With -w `gone 14:03:20` and since when it stood; with --since-file `gone`."""
    lines: list[tuple[str, str, str]] = []
    if answer.watched is not None:
        for past in answer.watched.gone:
            when = f"{f'gone {clock_time(past.gone_s or 0)}':<{_MARK}}"
            lines.append((past.finding.class_, when, f"{past.finding.summary} (since {clock_time(past.since_s)})"))
    elif answer.changes is not None:
        lines = [(each.class_, "gone ", each.summary) for each in answer.changes.gone]
    kept = [
        Paragraph(text, f"    {class_:<5}  {when}  ", "dim", is_cut=answer.watched is not None)
        for class_, when, text in lines[:_MOST_GONE]
    ]
    left = len(lines) - len(kept)
    return [*kept, *([Paragraph(f"… {left:,} more are gone", "    ", "dim")] if left else [])]


def _details(answer: Answer) -> Iterator[Paragraph]:
    """With -v: what each check looked at, its time and CPU time, and all that was not checked."""
    yield Paragraph("checked", style="bold")
    width = max(
        len(name)
        for name in (*(each.name for each in answer.seen.checked), *(gap.check for gap in answer.all_gaps), "")
    )
    for check in sorted(answer.seen.checked, key=lambda each: each.name):
        yield Paragraph(_looked_at(check), f"  {check.name:<{width}}  ")
    if answer.all_gaps:
        yield Paragraph("not checked", style="bold")
        for gap in answer.all_gaps:
            yield Paragraph(f"{gap.what}: {gap.reason}", f"  {gap.check:<{width}}  ")


def _looked_at(check: Checked) -> str:
    cpu = "" if check.cpu_s is None else f", CPU {duration(check.cpu_s)}"
    looked_at = listed(check.outcome.looked_at, 8) or "done"
    found = len(check.outcome.findings)
    return f"{looked_at}; {f'{found:,} found; ' if found else ''}{duration(check.took_s)}{cpu}"
