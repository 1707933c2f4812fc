"""Doctor's answer of what its checks saw: findings once each, causes above their symptoms, the most harmful first. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.causes import find_causes, root_of
from opskit.analysis.doctor.flat import sentence
from opskit.analysis.doctor.merge import merge
from opskit.analysis.doctor.order import rank
from opskit.analysis.doctor.places import is_in, pid_of
from opskit.analysis.doctor.result import CLASSES, Collapsed, Effect, Problem, Result
from opskit.analysis.doctor.words import NOTE, TIDY, counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opskit.analysis.doctor.seen import Seen
    from opskit.analysis.finding import Finding

_ROOM = 12  # problems, of three lines each, fit 40 lines
_OF_A_CODE = 3  # problems at the most; one where there is no room for more


def judge(seen: Seen) -> Result:
    """The order does not depend on that of the checks. Nothing is left out but what belongs to other processes than those asked about."""
    merged = merge([each for each in checked.outcome.findings if _is_asked(each, seen)] for checked in seen.checked)
    found = [each._replace(summary=sentence(each, seen.places)) for each in merged]
    harmful = [finding for finding in found if finding.severity != "note"]
    causes = find_causes(harmful, seen.places)
    return Result(seen, _problems(harmful, causes), _collapsed(found), causes)


def _is_asked(finding: Finding, seen: Seen) -> bool:
    """Whether it is about the processes that were asked about, their cgroups, or the host; what is to be tidied there is not."""
    if not seen.pids:
        return True
    entity, pid = finding.entity, pid_of(finding.entity)
    if pid is not None:
        return pid in seen.pids
    places = [seen.places[pid] for pid in seen.pids if pid in seen.places]
    if entity.kind == "cgroup":
        return len(places) < len(seen.pids) or any(is_in(entity, place) for place in places)
    return finding.class_ != "tidy" and entity.kind not in ("process", "thread")


def _problems(findings: Sequence[Finding], causes: Mapping[Finding, Finding]) -> tuple[Problem, ...]:
    """The causes with their effects, ranked by the worst of each."""
    effects: dict[Finding, list[tuple[int, Finding]]] = {each: [] for each in findings if each not in causes}
    for finding in causes:
        root, depth = root_of(finding, causes)
        effects[root].append((depth, finding))
    found = sorted((Problem(root, _grouped(of_root)) for root, of_root in effects.items()), key=_rank)
    return tuple(_listed(found))


def _grouped(effects: Iterable[tuple[int, Finding]]) -> tuple[Effect, ...]:
    """An effect for each code: those next to the cause first, then what these explain."""
    alike: dict[str, list[Finding]] = {}
    for _, finding in sorted(effects, key=lambda each: (each[0], rank(each[1]))):
        alike.setdefault(finding.code, []).append(finding)
    return tuple(Effect(first, len(others), tuple(others)) for first, *others in alike.values())


def _rank(problem: Problem) -> tuple[object, ...]:
    """The worst class in it, then the worst severity; the cause's share and name break ties."""
    return CLASSES.index(problem.class_), problem.severity, rank(problem.finding)[2:]


def _listed(problems: Sequence[Problem]) -> list[Problem]:
    """At most three problems of a code, fewer where the answer gets long: the last of them has the others, and their effects."""
    numbers: dict[str, int] = {}
    for problem in problems:
        numbers[problem.finding.code] = numbers.get(problem.finding.code, 0) + 1
    most = next(
        (each for each in range(_OF_A_CODE, 1, -1) if sum(min(each, of) for of in numbers.values()) <= _ROOM), 1
    )
    listed: dict[str, list[Problem]] = {}
    rest: dict[Finding, list[Problem]] = {}
    for problem in problems:
        alike = listed.setdefault(problem.finding.code, [])
        if len(alike) < most:
            alike.append(problem)
        else:
            rest.setdefault(alike[-1].finding, []).append(problem)
    shown = [each for alike in listed.values() for each in alike]
    return sorted((_with(each, rest.get(each.finding, ())) for each in shown), key=_rank)


def _with(problem: Problem, others: Sequence[Problem]) -> Problem:
    """A problem that stands for others of its code, too."""
    effects: dict[str, list[Finding]] = {}
    for each in (problem, *others):
        for effect in each.effects:
            effects.setdefault(effect.finding.code, []).extend((effect.finding, *effect.others))
    grouped = tuple(Effect(first, len(more), tuple(more)) for first, *more in effects.values())
    return Problem(problem.finding, grouped, tuple(other.finding for other in others))


def _collapsed(findings: Iterable[Finding]) -> tuple[Collapsed, ...]:
    """The notes: those of class tidy by code, the largest number first, and all others as one."""
    alike: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.severity == "note":
            alike.setdefault(finding.code if finding.code in TIDY else NOTE, []).append(finding)
    order = sorted(alike, key=lambda code: (code == NOTE, -len(alike[code]), code))
    return tuple(Collapsed(code, counted(code, len(alike[code])), tuple(alike[code])) for code in order)
