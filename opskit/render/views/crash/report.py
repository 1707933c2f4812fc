"""The report of `opskit crash`: one crash in detail, several by their cause, or the places that were looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit import shell
from opskit.analysis.crash.case import SOON_S, age_words, name_of, place_of, shortened
from opskit.analysis.crash.judge import FINDINGS_OF_CAUSES, crashed_s, scattered
from opskit.analysis.crash.stacks import innermost, is_runtime
from opskit.jvm.launch import main_of_command
from opskit.quantities import listed, plural, short_duration
from opskit.records import NamedTuple
from opskit.render.cells import row_limit
from opskit.render.fields import COUNT, ID, TEXT, Field
from opskit.render.report import Block, Report
from opskit.render.views.crash.rows import Row, frame_rows, main_rows, more_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.crash.result import Group, Result, Verdict
    from opskit.collect.crash.facts import Place
    from opskit.render.report import About

_ROWS, _PLACES, _NAMES = 10, 6, 3
_WHERE = (
    "a JVM writes hs_err_pidN.log to -XX:ErrorFile, else to its working directory, else to /tmp, inside its container"
)
_STATUS = "exit status 134: the JVM called abort(), as a rule after it wrote a report; 139: SIGSEGV without a report (native stack overflow, core file); 137: SIGKILL"


_IN_LIBRARY = ("crash-native-library", "crash-agent", "crash-jdk-library", "crash-jvm-internal")
_AT_START = ("crash-native-library", "crash-agent", "crash-jvm-internal", "crash-jdk-library", "crash-unexplained")


class Shown(NamedTuple):
    """`top`: rows of a table (None: ten, 0: all); `verbose`: frames, command line, environment, events, each file, places."""

    top: int | None = None
    verbose: bool = False
    now_s: float | None = None
    named: bool = False  # what was looked at was named


_ROW: Sequence[Field[Row]] = (Field("name", TEXT, "what", json=False), Field("value", TEXT, "value", json=False))
_FRAME: Sequence[Field[Row]] = (Field("name", TEXT, "kind", json=False), Field("value", TEXT, "frame", json=False))
_PLACE: Sequence[Field[Place]] = (
    Field("path", TEXT, "place", lambda place: place.path or "/"),
    Field("what", TEXT, "what"),
    Field("found", COUNT, "reports", lambda place: len(place.found)),
    Field("why_not", TEXT, "not read"),
)


def _when(verdict: Verdict, shown: Shown) -> str | None:
    """How long ago it crashed, or the date as written."""
    written_s = crashed_s(verdict)
    if shown.now_s is None or written_s is None or written_s > shown.now_s:
        return verdict.read.report.at
    return f"{short_duration(shown.now_s - written_s)} ago"


def _died_of(verdict: Verdict) -> str:
    event = verdict.read.report.event
    return {"memory": "no memory", "java-heap": "Java heap", "internal": "internal error"}.get(event.kind, event.name)


def _group_fields(shown: Shown) -> Sequence[Field[Group]]:
    return (
        Field("crashes", COUNT, "crashes", lambda group: len(group.verdicts)),
        Field("last", TEXT, "last", lambda group: _when(group.first, shown)),
        Field("signal", TEXT, "signal", lambda group: _died_of(group.first)),
        Field("blamed", TEXT, "blamed", lambda group: group.first.blamed),
        Field("file", TEXT, "newest report", lambda group: group.first.read.name),
    )


def _crash_fields(shown: Shown) -> Sequence[Field[Verdict]]:
    return (
        Field("when", TEXT, "crashed", lambda verdict: _when(verdict, shown)),
        Field("pid", ID, "pid", lambda verdict: verdict.read.report.pid),
        Field("jvm", TEXT, "jvm", lambda verdict: _main(verdict)),
        Field("signal", TEXT, "signal", _died_of),
        Field("blamed", TEXT, "blamed"),
        Field("file", TEXT, "report", lambda verdict: verdict.read.name),
    )


def report(about: About, result: Result, shown: Shown) -> Report:
    """The verdict and its blocks."""
    verdicts = result.verdicts
    if not verdicts:
        verdict, blocks = [_nothing(result, shown)], _place_blocks(result, shown)
    elif len(verdicts) == 1 and not result.facts.places:
        verdict, blocks = [_sentence(verdicts[0])], _detailed(verdicts[0], shown)
    else:
        verdict, blocks = [_together(result)], _several(result, shown)
    return Report(
        about,
        blocks=blocks,
        verdict=verdict,
        findings=result.findings,
        footer=list(_notes(result, shown)),
        exit_code=None if verdicts or result.facts.places else 2,
    )


def _main(verdict: Verdict) -> str | None:
    command = verdict.read.report.java_command
    main = main_of_command(command) if command else None
    return None if main is None else main.rpartition("/")[2]


def who(verdict: Verdict) -> str:
    """`JVM 4242 (com.acme.Main)`."""
    report, main = verdict.read.report, _main(verdict)
    pid = "" if report.pid is None else f" {report.pid}"
    return f"JVM{pid}" + (f" ({shortened(main)})" if main else "")


def died(verdict: Verdict) -> str:
    """`died of SIGSEGV 2.1 s after its start`."""
    event, age = verdict.read.report.event, age_words(verdict.read.report)
    how = f"died of {event.name}" if event.kind == "signal" else "ended itself"
    return f"{how} {age}".rstrip()


def _sentence(verdict: Verdict) -> str:
    at = verdict.read.report.at
    frame = verdict.application if verdict.pattern != "crash-gc" else None  # it only asked for the collection
    nearest = (
        f"; nearest application frame {name_of(frame)}"
        if frame is not None and name_of(frame) not in verdict.blamed
        else ""
    )
    return f"{who(verdict)} {died(verdict)}{f' ({at})' if at else ''}; to blame: {verdict.blamed}{nearest}"


def _together(result: Result) -> str:
    number, groups = len(result.verdicts), result.groups
    crashes = plural(
        number,
        "crash report" if result.facts.places else "crash",
        "crash reports" if result.facts.places else "crashes",
    )
    first = groups[0]
    if result.facts.places:
        newest = result.verdicts[0]
        command = shell.command("opskit", "crash", *shell.operands(newest.read.name))
        return f"{crashes} found; the newest: {who(newest)} {died(newest)}; to blame: {newest.blamed}; next: {command}"
    alike = len(first.verdicts)
    frame = innermost(first.first.read.report)
    in_library = frame is not None and first.first.pattern in _IN_LIBRARY and not is_runtime(frame)
    place = place_of(frame) if frame is not None and in_library else None
    blamed = f" in {place}" if place else f", to blame: {first.first.blamed}"
    if len(groups) == 1:
        return f"{crashes}, all alike{blamed}"
    return f"{crashes} of {plural(len(groups), 'cause')}; {f'{alike} alike{blamed}' if alike > 1 else 'no two alike'}"


def _nothing(result: Result, shown: Shown) -> str:
    read = [place for place in result.facts.places if place.why_not is None]
    if shown.named:
        looked = [place.path if place.what == "directory" else f"{place.path}, a {place.what}" for place in read]
        return f"no crash report in {listed(looked, _NAMES)}" if looked else "no crash report was read"
    names = listed(list(dict.fromkeys(place.path or "/" for place in read)), _NAMES, see="-v")
    where = (
        f"in {plural(len(read), 'place')} where JVMs write them: {names}" if read else "found: no place could be read"
    )
    return f"no crash report {where}"


def _place_blocks(result: Result, shown: Shown) -> list[Block[Any]]:
    places = result.facts.places
    if not shown.verbose or not places:
        return []
    kept = places[: row_limit(shown.top, None)]
    return [Block(_PLACE, kept, len(places), "places")]


def _detailed(verdict: Verdict, shown: Shown) -> list[Block[Any]]:
    def block(fields: Sequence[Field[Row]], rows: Sequence[Row], title: str | None) -> Block[Any]:
        return Block(fields, rows, len(rows), title)

    rows = list(main_rows(verdict))
    if not shown.verbose:
        return [Block(_ROW, rows[: row_limit(shown.top, None)], len(rows))]
    found = [block(_ROW, rows, "report")]
    frames, more = frame_rows(verdict.read.report), list(more_rows(verdict))
    found += [block(_FRAME, frames, "stack")] if frames else []
    found += [block(_ROW, more, "details")] if more else []
    return found


def _several(result: Result, shown: Shown) -> list[Block[Any]]:
    """Found reports a row each, the newest first; named ones by cause, with -v each too."""
    blocks: list[Block[Any]] = []
    most = row_limit(shown.top, None if shown.verbose else _ROWS)
    newest = result.verdicts
    if not result.facts.places:
        title = "causes" if shown.verbose else None
        blocks.append(Block(_group_fields(shown), result.groups[:most], len(result.groups), title))
    if result.facts.places or shown.verbose:
        title = "crashes" if blocks or shown.verbose else None
        blocks.append(Block(_crash_fields(shown), newest[:most], len(newest), title, one_line=False))
    return [*blocks, *_place_blocks(result, shown)]


def _notes(result: Result, shown: Shown) -> Iterator[str]:
    facts = result.facts
    for each in facts.unread[:_NAMES]:
        yield f"{each.name}: {each.why}"
    if len(facts.unread) > _NAMES:
        yield f"{plural(len(facts.unread) - _NAMES, 'more file')} could not be read as crash reports"
    others = result.groups[FINDINGS_OF_CAUSES:]
    if others:
        number = sum(len(group.verdicts) for group in others)
        yield f"{plural(number, 'more crash', 'more crashes')} of {plural(len(others), 'other cause')}: in the table (-n 0)"
    if damage := scattered(result.groups):
        yield damage
    unread = [place for place in facts.places if place.why_not is not None]
    if unread and not shown.verbose:
        yield f"{plural(len(unread), 'place')} could not be read: {unread[0].path}: {unread[0].why_not}"
    for verdict in result.verdicts[:1]:
        yield from _of_report(verdict, result)
    if facts.places and not result.verdicts:
        if not shown.named:
            yield _WHERE
        listing = f"`{shell.command('coredumpctl', 'list', 'java')}`, " if facts.has_coredumpctl else ""
        yield f"{_STATUS}: {listing}`{shell.command('opskit', 'oom')}`"


def _of_report(verdict: Verdict, result: Result) -> Iterator[str]:
    report, core = verdict.read.report, verdict.read.core
    if len(result.verdicts) > 1 or result.facts.places:
        return
    if not report.complete and report.report_file:
        command = shell.command("opskit", "crash", *shell.operands(report.report_file))
        yield f"this is only its beginning, from the JVM's output; the whole report: {command}"
    elif not report.complete:
        yield "the report is cut off: what comes later in it is unknown"
    if report.is_error_in_error_handler:
        yield "the JVM crashed again while it wrote the report: parts of it are missing"
    if report.uptime_s is not None and report.uptime_s < SOON_S and verdict.pattern in _AT_START:
        yield "it crashed at its start: compare its options, agents and libraries with those of the last start that worked"
    if core is not None and core.path:
        java = f"{report.java_home}/bin/java" if report.java_home else "java"
        yield f"Java stacks of the core file: {shell.command('jhsdb', 'jstack', '--exe', java, '--core', core.path)}"
    elif report.event.kind == "signal" and verdict.pattern != "crash-signal-sent":
        if facts_pipe(result):
            yield f"the kernel gives core files to a program: {shell.command('coredumpctl', 'gdb', report.pid or 'java')}"
        yield "for a core file at the next crash: ulimit -c unlimited (systemd: LimitCORE=infinity; docker run --ulimit core=-1)"


def facts_pipe(result: Result) -> bool:
    """Whether core files go to systemd-coredump, and its tool is here."""
    return result.facts.has_coredumpctl and (result.facts.core_pattern or "").startswith("|")
