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
    from opskit.render.report import About, Metrics


class Shown(NamedTuple):
    """How to show it. `text`: columns for awk; `verbose`: parts and all cgroups; `watching`: growth; `top`: -n."""

    text: bool = False
    verbose: bool = False
    watching: bool = False
    top: int | None = None


def target(result: Result) -> dict[str, object]:
    """What was asked about, for the head of the report."""
    facts = result.facts
    name = {"main": facts.jvm.main} if facts.jvm else {"command": facts.process.command}
    unit = facts.owner.label if facts.owner else None
    return {"pid": facts.process.pid, **name, "user": facts.process.user, "unit": unit}


def report(about: About, result: Result, shown: Shown) -> Report:
    """One process."""
    facts = result.facts
    most = None if shown.verbose else sentences.MOST_SUSPECTS
    said = [*sentences.cgroups(facts.levels)] if not (shown.verbose or shown.text) else []
    if facts.levels_unknown is not None:
        said.append(f"memory cgroup: {facts.levels_unknown}")
    return Report(
        about,
        list(_blocks(result, shown)),
        verdict=[
            *sentences.verdict(result, more=not shown.watching),
            *sentences.suspects(result, most, evidence=shown.verbose),
        ],
        summary=[*said, sentences.machine(facts.host)],
        footer=list(dict.fromkeys([*facts.missing, *(facts.jvm.missing if facts.jvm and shown.verbose else ())])),
        findings=result.findings,
        document=_document(result),
        draw=partial(_draw, about, result),
        metrics=partial(_metrics, result),
    )


def _document(result: Result) -> tuple[Any, Any]:
    from opskit.render.views.mem.document import DOCUMENT, Answer

    return DOCUMENT, Answer(process=result)


def _metrics(result: Result) -> Iterator[Metrics]:
    from opskit.render.views.mem.document import metrics

    return metrics(result)


def _draw(about: About, result: Result, _format: str) -> str:
    from opskit.render.views.mem import picture

    return picture.draw(about, result)


def _blocks(result: Result, shown: Shown) -> Iterator[Block[Any]]:
    facts, top = result.facts, shown.top or None
    parts = sorted(facts.parts, key=lambda part: -(part.usage.rss_bytes + part.usage.swap_bytes))
    lines = [*sums_of(result), *lines_of(result)]
    kept = lines if shown.top in (None, 0) else lines[: shown.top + len(lines) - len(lines_of(result))]
    if shown.text:
        yield Block(
            (*((SAMPLED_AT,) if shown.watching else ()), *ROW, *(GROWTH if shown.watching else ()), DETAILS),
            kept,
            len(lines),
        )
        if not shown.watching:
            if facts.levels:
                yield Block(LEVEL_TEXT, facts.levels, len(facts.levels))
            if shown.verbose:
                yield Block(PART, parts[:top], len(parts))
        return
    if shown.watching:
        yield Block(WATCHED, kept, len(lines), one_line=True)
    else:
        yield Block(TABLE, kept, len(lines), "memory of the process" if shown.verbose else None)
    if shown.verbose:
        if facts.levels:
            yield Block(LEVEL_TABLE, facts.levels, len(facts.levels), "memory cgroups, the process's own first")
        if parts:
            yield Block(PARTS_TABLE, parts[:top], len(parts), "mapped files, libraries, named mappings")
