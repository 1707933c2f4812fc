"""How JVMs are shown: tables of who they are and what they use, a line each for awk, the JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import NotPermitted
from opskit.jvm.launch import vm_words, without_secrets
from opskit.quantities import plural
from opskit.records import NamedTuple
from opskit.render.cells import at
from opskit.render.fields import COUNT, TEXT, Field, records
from opskit.render.formats.text import block_lines
from opskit.render.report import Block, Report
from opskit.render.views.jvms.fields import (
    IDENTITY,
    IDENTITY_LINE,
    LIVE,
    LOOK,
    RATE_NAMES,
    ROW,
    USE,
    USE_LINE,
    attach,
    column,
    memory_limit,
    perf_text,
    rounded,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.jvms import Result, Row, Sample
    from opskit.render.report import About

_SAID_ELSEWHERE = frozenset({"other-user", "openj9", "native-image"})


class Shown(NamedTuple):
    """What to show: `vm_args`, with the values of -D and of agents where `properties`; `top` None or 0: every row.

    `terminal`: one line per JVM in each table; `live`: one table, which is redrawn.
    """

    vm_args: bool
    properties: bool
    top: int | None = None
    terminal: bool = False
    live: bool = False


def report(about: About, result: Result, shown: Shown, *, is_text: bool) -> Report:
    """The verdict, the tables, and why values are unknown."""
    rows, facts = result.rows, result.facts
    first = rows[: shown.top or None]
    columns: list[Sequence[Field[Row]]] = (
        [LIVE] if shown.live else [IDENTITY_LINE, USE_LINE] if shown.terminal else [IDENTITY, USE]
    )
    if not any(row.rates for row in rows):
        columns = [[field for field in fields if field.name not in RATE_NAMES] for fields in columns]
    blocks = [Block(fields, first, len(rows), one_line=shown.terminal) for fields in columns] if rows else []
    if shown.vm_args and rows:
        blocks.append(Block([USE[0], _vm_args(shown)], first, len(rows)))
    counted = plural(len(rows), "JVM") + (f", {plural(len(result.findings), 'finding')}" if result.findings else "")
    return Report(
        about,
        blocks,
        verdict=[counted if rows else none_found(result)],
        footer=[*facts.coverage, *notes(result), *([none_found(result)] if is_text and not rows else ())],
        text=(lambda: block_lines(Block(text_fields(shown), first, len(rows)))) if is_text else None,
        findings=result.findings,
        document=(document(shown), result),
    )


def none_found(result: Result) -> str:
    """`no JVM of app is running here`."""
    whose = f" of {', '.join(result.facts.users)}" if result.facts.users else ""
    return f"no JVM{whose} is running here" + ("" if result.facts.complete else ", as far as this copy shows")


def notes(result: Result) -> list[str]:
    """Why values are unknown, and why attaching would fail; missing rights once for all JVMs."""
    jvms = [row.seen.jvm for row in result.rows]
    foreign = [jvm for jvm in jvms if isinstance(jvm.no_perf, NotPermitted)]
    lines = [str(jvm.no_perf) for jvm in jvms if jvm.no_perf is not None and jvm not in foreign]
    attaches = [(row.seen.jvm.pid, row.seen.attach) for row in result.rows if row.seen.attach]
    lines += [f"{pid}: {attach.why}" for pid, attach in attaches if attach.why and attach.code not in _SAID_ELSEWHERE]
    if foreign:
        count = plural(len(foreign), "JVM of another user", "JVMs of other users")
        lines.append(f"{count}: only that user and root may read the counters and attach; {result.facts.advice}")
    return lines


def _vm_args(shown: Shown) -> Field[Row]:
    def value(row: Row) -> str | None:
        words = row.seen.words
        args = perf_text("java.rt.vmArgs")(row) or " ".join(vm_words(list(words))) or None
        return args if args is None or shown.properties else without_secrets(args, words)

    return Field("vm_args", TEXT, "VM args", value, show=lambda args: args or "unknown")


def text_fields(shown: Shown) -> list[Field[Row]]:
    """One line a JVM; only the last column may have blanks. Sizes in bytes, times in seconds, shares in percent."""
    by_name = {field.name: field for field in (*ROW, _vm_args(shown))}
    columns: Sequence[str | Field[Row]] = (
        "pid", "ns_pid", "user", "jdk_version", "collector",
        column("uptime", lambda row: row.seen.reading.age_s and int(row.seen.reading.age_s), right=True),
        column("cpu%", rounded("shares.cpu_percent", 1), right=True),
        "heap_used_bytes", "heap_committed_bytes", "heap_max_bytes", "rss_bytes",
        column("memory limit", memory_limit, right=True),
        column("throttled%", rounded("shares.throttled_percent", 1), right=True),
        column("gc%", rounded("shares.gc_percent", 2), right=True),
        "gc_collections",
        column("stopped%", rounded("shares.stopped_percent", 2), right=True),
        "threads",
        column("attach", attach),
        "allocation_bytes_per_s", "promotion_bytes_per_s",
        column("where", at("seen.place.label")),
        "main", *(["vm_args"] if shown.vm_args else []),
    )  # fmt: skip
    return [by_name[column] if isinstance(column, str) else column for column in columns]


def _samples(result: Result) -> list[tuple[float, list[Sample]]] | None:
    return list(result.samples) if len(result.facts.history) > 1 else None


def document(shown: Shown) -> Sequence[Field[Result]]:
    """The JSON object."""
    return (
        Field("jvms", records((*ROW, _vm_args(shown))), value=lambda result: result.rows),
        Field("jvm_count", COUNT, value=lambda result: len(result.rows)),
        Field("processes_scanned", COUNT, value=lambda result: result.facts.scanned),
        Field("processes_denied", COUNT, value=lambda result: result.facts.denied),
        Field("processes_vanished", COUNT, value=lambda result: result.facts.vanished),
        Field("samples", records(LOOK), value=_samples, help="with -w"),
    )


DOCUMENT = document(Shown(vm_args=True, properties=True))
