"""A process's memory as a report: the verdict, the suspects, the rows, the limits around it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from opskit.records import NamedTuple
from opskit.render.report import Block, Report
from opskit.render.views.mem import sentences
from opskit.render.views.mem.fields import (
    DETAILS,
    GROWTH,
    LEVEL_TABLE,
    LEVEL_TEXT,
    MEMBER,
    PART,
    PARTS_TABLE,
    ROW,
    SAMPLED_AT,
    TABLE,
    WATCHED,
)
from opskit.render.views.mem.rows import lines_of, sums_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.mem.result import Result
    from opskit.collect.mem.facts import Facts
    from opskit.render.report import About


class Shown(NamedTuple):
    """How to show it. `text`: columns for awk; `verbose`: parts and all cgroups; `watching`: growth; `top`: -n; `asked`: --ask.

    `short`: on a terminal, where the largest rows are to be seen beside the verdict.
    """

    text: bool = False
    verbose: bool = False
    watching: bool = False
    top: int | None = None
    asked: bool = False
    short: bool = False


def target(result: Result) -> dict[str, object]:
    """What was asked about, for the head of the report; the verdict begins with its name."""
    process, owner = result.facts.process, result.facts.owner
    return {"pid": process.pid, "user": process.user, "unit": owner.label if owner else None}


def report(about: About, result: Result, shown: Shown) -> Report:
    """One process."""
    facts = result.facts
    said = [*sentences.cgroups(facts.levels)] if not (shown.verbose or shown.text) else []
    if facts.levels_unknown is not None:
        said.append(f"memory cgroup: {facts.levels_unknown}")
    return Report(
        about,
        list(_blocks(result, shown)),
        verdict=[
            *sentences.verdict(result, more=not (shown.watching or (shown.short and _is_alarming(result)))),
            *sentences.suspects(result, all_=shown.verbose, on_screen=shown.short and shown.watching),
        ],
        summary=[*said, sentences.machine(facts.host)],
        footer=[*_footer(facts, shown)],
        findings=result.findings,
        draw=partial(_draw, about, result),
    )


def _is_alarming(result: Result) -> bool:
    """Whether the heap alone does not fit: what else can grow comes after that."""
    return bool(result.headroom and result.headroom.can_be_killed)


def _footer(facts: Facts, shown: Shown) -> Iterator[str]:
    """What could not be read."""
    of_jvm = facts.jvm.missing if facts.jvm else ()
    yield from dict.fromkeys([*facts.missing, *of_jvm])
    if facts.malloc is not None and facts.malloc.incomplete is not None:
        yield f"more may be free inside of malloc's arenas: {facts.malloc.incomplete}"
    if shown.asked and facts.jvm is None:
        yield f"--ask has no effect: {facts.process.pid} is not a JVM"


def _draw(about: About, result: Result, _format: str) -> str:
    from opskit.render.views.mem import picture

    return picture.draw(about, result)


def _blocks(result: Result, shown: Shown) -> Iterator[Block[Any]]:
    sums, rows = sums_of(result), lines_of(result)
    if not (shown.text or shown.watching):
        sums = sums[:1]  # the details of the rows say the rest
    kept, total = [*sums, *rows[: shown.top or None]], len(sums) + len(rows)
    if shown.text:
        growth = ((SAMPLED_AT,), GROWTH) if shown.watching else ((), ())
        yield Block((*growth[0], *ROW, *growth[1], DETAILS), kept, total)
    elif shown.watching:
        yield Block(WATCHED, kept, total, one_line=True)
    else:
        yield Block(TABLE, kept, total, "memory of the process" if shown.verbose else None)
    levels = result.facts.levels
    if shown.text and levels and not shown.watching:
        yield Block(LEVEL_TEXT, levels, len(levels))
    elif shown.verbose and levels and not shown.text:
        known = [field for field in LEVEL_TABLE if any(field.value(level) is not None for level in levels)]
        yield Block(known, levels, len(levels), "memory cgroups, the process's own first", one_line=True)
    if shown.verbose and not (shown.text and shown.watching):
        yield from _details(result, shown)


def _details(result: Result, shown: Shown) -> Iterator[Block[Any]]:
    members, top = result.facts.members, shown.top or None
    if len(members) > 1:
        yield Block(MEMBER, members[:top], len(members), "processes of the cgroup")
    parts = sorted(result.facts.parts, key=lambda part: -(part.usage.rss_bytes + part.usage.swap_bytes))
    if parts:
        is_swapped = any(part.usage.swap_bytes for part in parts)
        columns = PART if shown.text else [each for each in PARTS_TABLE if is_swapped or each.name != "swap"]
        yield Block(columns, parts[:top], len(parts), "mapped files, libraries, named mappings", one_line=True)
