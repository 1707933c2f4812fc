"""All findings of an answer, one after the other, with numbers: problems first, as they are listed. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opskit.analysis.doctor.result import Problem, Result
    from opskit.analysis.doctor.seen import Place
    from opskit.analysis.finding import Entity, Finding


class Numbered(NamedTuple):
    """A finding. `cause`: the number of the problem that explains it. `like`: of the listed one of its code. `more`: as in Effect."""

    number: int
    finding: Finding
    cause: int | None = None
    like: int | None = None
    effects: tuple[int, ...] = ()
    more: int = 0


def flat(result: Result) -> list[Numbered]:
    """Problems have the numbers of the list, from 1; their effects and the others follow, then what is collapsed."""
    number = len(result.problems)
    heads: list[Numbered] = []
    rest: list[Numbered] = []
    for at, problem in enumerate(result.problems, 1):
        first = number + 1
        for effect in problem.effects:
            number += 1
            rest.append(Numbered(number, effect.finding, cause=at, more=effect.more))
        heads.append(Numbered(at, problem.finding, effects=tuple(range(first, number + 1))))
        for other in problem.others:
            number += 1
            rest.append(Numbered(number, other, like=at))
    for collapsed in result.collapsed:
        for finding in collapsed.findings:
            number += 1
            rest.append(Numbered(number, finding))
    return [*heads, *rest]


def listed(problems: Iterable[Problem]) -> Iterator[Finding]:
    """What stands on its own: each problem's finding, and the others of its code."""
    for problem in problems:
        yield problem.finding
        yield from problem.others


def chain(entity: Entity | None) -> Iterator[Entity]:
    """The entity, and those around it."""
    while entity is not None:
        yield entity
        entity = entity.inside


def label(entity: Entity, places: dict[int, Place] | object) -> str:
    """`25393 (billing)`; `thread 25401 of 25393 (billing)`; the path of a cgroup; `host`."""
    known = places if isinstance(places, dict) else {}
    if entity.kind == "process":
        place = known.get(entity.id)
        return f"{entity.id} ({place.name})" if place is not None else entity.name
    if entity.inside is not None and entity.inside.kind == "process":
        name = entity.name if entity.name.startswith(entity.kind) else f"{entity.kind} {entity.name}"
        return f"{name} of {label(entity.inside, places)}"
    return entity.name
