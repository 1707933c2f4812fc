"""All findings of an answer, one after the other, with numbers: problems first, as they are listed. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.analysis.doctor.places import chain
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from opskit.analysis.doctor.result import Problem, Result
    from opskit.analysis.doctor.seen import Place
    from opskit.analysis.finding import Entity, Finding

_PROCESS = re.compile(r"(?<![0-9])[0-9]{1,10} \(")  # `25393 (billing)`


class Numbered(NamedTuple):
    """A finding. `cause`: the number of the nearest one that explains it. `like`: of the problem of its code that stands for it."""

    number: int
    finding: Finding
    cause: int | None = None
    like: int | None = None
    effects: tuple[int, ...] = ()  # of a problem: what it explains, step by step


def flat(result: Result) -> list[Numbered]:
    """Problems have the numbers of the list, from 1; the others of their code and their effects follow, then what is collapsed."""
    ordered = [problem.finding for problem in result.problems]
    for problem in result.problems:
        ordered += [*problem.others, *_effects(problem)]
    ordered += [finding for each in result.collapsed for finding in each.findings]
    numbers = {finding: number for number, finding in reversed([*enumerate(ordered, 1)])}
    like = {other: at for at, problem in enumerate(result.problems, 1) for other in problem.others}
    effects = [tuple(numbers[each] for each in _effects(problem)) for problem in result.problems]
    return [
        Numbered(
            number, finding, numbers.get(result.causes.get(finding, finding)) if finding in result.causes else None,
            like.get(finding), effects[number - 1] if number <= len(effects) else (),
        )
        for number, finding in enumerate(ordered, 1)
    ]  # fmt: skip


def _effects(problem: Problem) -> list[Finding]:
    return [finding for effect in problem.effects for finding in (effect.finding, *effect.others)]


def listed(problems: Iterable[Problem]) -> Iterator[Finding]:
    """What stands on its own: each problem's finding, and the others of its code."""
    for problem in problems:
        yield problem.finding
        yield from problem.others


def label(entity: Entity, places: Mapping[int, Place]) -> str:
    """`25393 (billing)`; `thread 25401 of 25393 (billing)`; the path of a cgroup; `host`."""
    if entity.kind == "process":
        place = places.get(entity.id) if isinstance(entity.id, int) else None
        return f"{entity.id} ({place.name})" if place is not None else entity.name
    if entity.inside is not None and entity.inside.kind == "process":
        name = entity.name if entity.name.startswith(entity.kind) else f"{entity.kind} {entity.name}"
        return f"{name} of {label(entity.inside, places)}"
    return entity.name


def sentence(finding: Finding, places: Mapping[int, Place]) -> str:
    """The summary, which names its process; where there is none, what it is about."""
    entity, summary = finding.entity, finding.summary
    named = [each for each in chain(entity) if each.id is not None]
    process = next((each for each in named if each.kind == "process"), None)
    about = any(str(each.id) in summary for each in named if each.kind not in ("process", "thread") and each.id != "/")
    if process is None:
        is_told = about or not named or _PROCESS.search(summary) is not None
    else:
        told = rf"(?<![\w.,-]){process.id} \(|\({process.id}[,)]|\[{process.id}\]"
        is_told = re.search(told, summary) is not None
        entity = process if about else entity
        place = places.get(process.id) if isinstance(process.id, int) else None
        if (
            not is_told
            and place is not None
            and place.name
            and summary.startswith((f"{place.name} ", f"{place.name}: "))
        ):
            return f"{label(process, places)}{summary[len(place.name) :]}"  # `orders -> 10.0.0.7:5432: …`
    return summary if is_told else f"{label(entity, places)}: {summary}"
