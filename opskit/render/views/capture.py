"""What a capture holds, and what to type next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import is_failure
from opskit.escape import printable
from opskit.quantities import duration, plural, size
from opskit.render.fields import COUNT, SECONDS, SIZE, TEXT, Field, list_of, records
from opskit.render.report import Report

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.capture.result import Captured
    from opskit.render.report import About

_BUG = "a bug in opskit"
_KINDS = {
    "variables": ("environment variable",), "options": ("option",), "properties": ("property", "properties"), "urls": ("URL",),
    "tokens": ("token",), "texts": ("text",), "copies": ("copy of these", "copies of these"),
}  # fmt: skip
_UNREAD = (
    Field[tuple[str, int]]("reason", TEXT, value=lambda pair: pair[0]),
    Field[tuple[str, int]]("processes", COUNT, value=lambda pair: pair[1]),
)
_WITHOUT = (
    Field[tuple[str, str]]("command", TEXT, value=lambda pair: pair[0], help="without `opskit`"),
    Field[tuple[str, str]]("reason", TEXT, value=lambda pair: pair[1]),
)
_HIDDEN = [
    Field[tuple[str, int]]("kind", value=lambda pair: pair[0]),
    Field[tuple[str, int]]("values", COUNT, value=lambda pair: pair[1]),
]
DOCUMENT: Sequence[Field[Captured]] = (
    Field("file", TEXT, value=lambda row: row.path, help="the file that was written, with mode 0600"),
    Field("size_bytes", SIZE),
    Field("processes", COUNT),
    Field("jvms", COUNT),
    Field("samples", COUNT),
    Field("span_s", SECONDS, help="from the first sample to the last one"),
    Field("condition", TEXT, help="of --when"),
    Field("hidden", records(_HIDDEN), value=lambda row: None if row.hidden is None else _hidden(row), help="null: --no-redact"),
    Field("unread", records(_UNREAD), help="processes that could not be read"),
    Field("hanging", list_of(TEXT), value=lambda row: list(row.hanging), help="files that were left out, since reading them hangs"),
    Field("without", records(_WITHOUT), help="commands that cannot be asked of this capture"),
    Field("not_asked", list_of(TEXT), value=lambda row: list(row.notes), help="JVMs that were not asked, and why"),
    Field("problems", list_of(TEXT), value=lambda row: _codes(row), help="codes of what doctor found"),
    Field("removed", list_of(TEXT), value=lambda row: list(row.removed), help="files that --keep no longer keeps"),
)  # fmt: skip


def target(words: Sequence[str]) -> dict[str, object] | None:
    """What the report is about."""
    return {"processes": " ".join(words)} if words else None


def report(about: About, captured: Captured) -> Report:
    """The whole report."""
    return Report(
        about,
        verdict=[_verdict(captured)],
        summary=[*_summary(captured)],
        footer=[f"next: {each}" for each in _next(captured)],
        document=(DOCUMENT, captured),
    )


def _verdict(captured: Captured) -> str:
    span = f" within {duration(captured.span_s)}" if captured.samples > 1 else ""
    what = f"{plural(captured.processes, 'process', 'processes')}, {plural(captured.jvms, 'JVM')}"
    when = f"{captured.condition} holds: " if captured.condition else ""
    samples = f"{plural(captured.samples, 'sample')}{span}"
    return f"{when}wrote {printable(captured.path)} ({size(captured.size_bytes)}): {what}, {samples}"


def _summary(captured: Captured) -> Iterator[str]:
    codes = _codes(captured)
    if codes:
        yield f"doctor found {', '.join(codes)}"
    if captured.hidden is None:
        yield "nothing is hidden (--no-redact): the file holds passwords and tokens of all processes"
    else:
        hidden = ", ".join(plural(number, *_KINDS[kind]) for kind, number in _hidden(captured))
        yield f"hidden: {hidden or 'nothing'}"
    for reason, number in captured.unread:
        advice = "" if captured.is_root else ": run as root to have them"
        yield f"not read: the memory maps of {plural(number, 'process', 'processes')} ({reason}){advice}"
    if captured.hanging:
        files = plural(len(captured.hanging), "file")
        yield f"left out, since reading them hangs: {files}, the first: {printable(captured.hanging[0])}"
    yield from captured.notes
    for line, why in captured.without:
        if why.startswith(_BUG):
            yield f"not captured: {line}: {why}"
    if captured.removed:
        yield f"removed: {', '.join(map(printable, captured.removed))}"


def _next(captured: Captured) -> Iterator[str]:
    yield shell.command("opskit", "--from", captured.path, "doctor")


def _hidden(captured: Captured) -> list[tuple[str, int]]:
    counted = {} if captured.hidden is None else captured.hidden._asdict()
    return [(kind, number) for kind, number in counted.items() if number]


def _codes(captured: Captured) -> list[str]:
    return list(dict.fromkeys(each.code for each in captured.seen if is_failure([each])))
