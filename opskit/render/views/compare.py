"""How `opskit compare` is shown: the verdict, then what differs, measured first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from opskit import shell
from opskit.collect.compare.facts import (
    BYTES,
    BYTES_PER_S,
    CLASSES,
    CONFIGURED,
    COUNT,
    CPUS,
    HOST,
    MEASURED,
    PER_S,
    SECONDS,
    SHARE,
)
from opskit.jvm.dumps.class_names import to_readable
from opskit.quantities import agreeing, duration, listed, percent, plural, signed_size, size, whole
from opskit.records import NamedTuple
from opskit.render.fields import COUNT as COUNTED
from opskit.render.fields import FLAG, ID, NUMBER, SIZE, TEXT, Field, list_of, record, records, sheet
from opskit.render.report import Block, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.analysis.compare.result import Difference, Echo, Result
    from opskit.analysis.jmap_diff.compare import Growth
    from opskit.collect.compare.facts import JvmFacts, Machine, Value
    from opskit.render.report import About

_MOST_IN_VERDICT, _MOST_ECHOES, _MOST_GAPS, _MOST_CLASSES, _LONGEST = 3, 4, 6, 5, 90
NOT_SET = "not set"
_SHOWN: dict[str, Callable[[float], str]] = {
    SHARE: percent, BYTES: size, BYTES_PER_S: lambda value: f"{size(value)}/s", SECONDS: duration, COUNT: whole,
    PER_S: lambda value: f"{value:,.0f}/s" if value >= 10 else f"{value:.1f}/s",
    CPUS: lambda value: f"{value:.2f}".rstrip("0").rstrip(".") + (" CPU" if value == 1 else " CPUs"),
}  # fmt: skip


def value_text(value: Value | None, unit: str) -> str:
    """`256 MiB`, `78 %`, `Serial`, `not set`."""
    if value is None:
        return NOT_SET
    if isinstance(value, str):
        return value if value else "(empty)"
    show = _SHOWN.get(unit)
    return f"{float(value):g}" if show is None else show(float(value))


class Row(NamedTuple):
    """A difference as it is shown. `jvm`: which JVM, where several are compared."""

    difference: Difference
    jvm: Optional[str]  # noqa: UP045
    explained_by: tuple[str, ...]

    @property
    def bad(self) -> str:
        """The value of BAD."""
        return value_text(self.difference.bad, self.difference.unit)

    @property
    def good(self) -> str:
        """The value of GOOD."""
        return value_text(self.difference.good, self.difference.unit)

    @property
    def name(self) -> str:
        """What differs."""
        return f"{self.difference.name} of {self.jvm}" if self.jvm else self.difference.name

    @property
    def with_it(self) -> str:
        """What follows from it, or may explain it."""
        if self.explained_by:
            return "may be explained by: " + ", ".join(self.explained_by)
        echoes = self.difference.echoes
        if not echoes:
            return ""
        return "with it: " + listed(list(dict.fromkeys(map(_echo, echoes))), _MOST_ECHOES)


def _echo(echo: Echo) -> str:
    bad, good = value_text(echo.bad, echo.unit), value_text(echo.good, echo.unit)
    return f"{echo.name} {_cut(bad, 24)} / {_cut(good, 24)}"


def _cut(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


_ECHO: Sequence[Field[Echo]] = (
    Field("key", help="the echo's key"), Field("name"),
    Field("bad", value=lambda echo: value_text(echo.bad, echo.unit)), Field("good", value=lambda echo: value_text(echo.good, echo.unit)),
)  # fmt: skip
DIFFERENCE: Sequence[Field[Row]] = (
    Field("class", value=lambda row: row.difference.class_, help="measured, configured or host"),
    Field("area", value=lambda row: row.difference.area),
    Field("key", value=lambda row: row.difference.key, help="the same on every machine: jvm.collector, sysctl.vm.swappiness"),
    Field("name", value=lambda row: row.difference.name),
    Field("jvm", value=lambda row: row.difference.jvm, kind=ID, help="its index in jvms; null: of the machine"),
    Field("bad", help="the value of BAD, as it is shown"), Field("good", help="the value of GOOD, as it is shown"),
    Field("bad_number", NUMBER, value=lambda row: _number(row.difference.bad), help="in the unit; null: not a number"),
    Field("good_number", NUMBER, value=lambda row: _number(row.difference.good)),
    Field("unit", value=lambda row: row.difference.unit or None, help="share (0 to 1), per_s, bytes, bytes_per_s, cpus, s, count"),
    Field("worse", FLAG, value=lambda row: row.difference.is_worse, help="of measured ones: whether BAD has more of what slows down"),
    Field("echoes", records(_ECHO), value=lambda row: row.difference.echoes, help="differences that follow from this one"),
    Field("explained_by", list_of(TEXT), value=lambda row: [*row.difference.explained_by], help="keys of differences that may explain this one"),
)  # fmt: skip
_COLUMNS: Sequence[Field[Row]] = (
    Field("name", title="what"), Field("bad", title="bad", value=lambda row: _cut(row.bad)), Field("good", title="good", value=lambda row: _cut(row.good)),
    Field("with_it", title="more", below=lambda row: row.name),
)  # fmt: skip
_SIDE: Sequence[Field[Machine]] = (
    Field("file", value=lambda side: side.label, help="as it was given"), Field("kind", help="capture, sos report, live or copy"),
    Field("host", value=lambda side: side.name), Field("time_utc"), Field("samples", COUNTED),
    Field("window_s", NUMBER, value=lambda side: side.window_s or None, help="the time between the first and the last sample; null: one sample"),
)  # fmt: skip
_JVM: Sequence[Field[JvmFacts]] = (Field("pid", ID), Field("main"))
_PAIR: Sequence[Field[Any]] = (Field("bad", record(_JVM)), Field("good", record(_JVM)))
_UNPAIRED: Sequence[Field[Any]] = (
    Field("side", value=lambda each: each[0]), Field("pid", ID, value=lambda each: each[1].pid), Field("main", value=lambda each: each[1].main),
)  # fmt: skip
_GAP: Sequence[Field[Any]] = (Field("what", value=lambda gap: gap[0]), Field("why", value=lambda gap: gap[1]))


class Answer(NamedTuple):
    """The result, its rows, and the commands to type next."""

    result: Result
    rows: Sequence[Row]
    next: Sequence[str]
    grown: Sequence[Growth] = ()  # of the histograms


_CLASS: Sequence[Field[Growth]] = (
    Field("name", title="class", show=to_readable, help="as the JVM writes it"),
    Field("bytes", SIZE, title="bytes more", value=lambda row: row.bytes_diff, show=signed_size),
    Field("instances", COUNTED, title="instances more", value=lambda row: row.instances_diff),
)  # fmt: skip
DOCUMENT: Sequence[Field[Answer]] = (
    Field("bad", record(_SIDE), value=lambda answer: answer.result.facts.bad),
    Field("good", record(_SIDE), value=lambda answer: answer.result.facts.good),
    Field("jvms", records(_PAIR), value=lambda answer: answer.result.pairs, help="the JVMs that were compared"),
    Field("not_paired", records(_UNPAIRED), value=lambda answer: answer.result.unpaired, help="JVMs without one to compare with"),
    Field("measured", value=lambda answer: "different" if answer.grown else _measured(answer.result), help="different, alike, or unknown: one side has no rates"),
    Field("differences", records(DIFFERENCE), value=lambda answer: answer.rows),
    Field("equal", COUNTED, value=lambda answer: answer.result.equal, help="facts that are the same"),
    Field("within_noise", COUNTED, value=lambda answer: answer.result.noise, help="measured values that differ by less than 5 points or 30 %"),
    Field("identity", COUNTED, value=lambda answer: answer.result.own, help="facts that name a machine or process, and were left out"),
    Field("not_compared", records(_GAP), value=lambda answer: answer.result.unknown),
    Field("histogram", records(_CLASS), value=lambda answer: answer.grown, help="classes of which BAD's heap holds at least 30 % more or less, and 5 points of the heap, where both captures have a histogram"),
    Field("next", list_of(TEXT), value=lambda answer: [*answer.next]),
)  # fmt: skip


def _number(value: Value | None) -> float | None:
    return None if value is None or isinstance(value, str) else float(value)


def _measured(result: Result) -> str:
    return "different" if result.of_class(MEASURED) else "alike" if result.has_rates else "unknown"


def rows_of(result: Result) -> list[Row]:
    """The rows, in the order of the result."""
    keys = {each.key for each in result.differences}
    several = len(result.pairs) > 1
    rows = []
    for each in result.differences:
        jvm = result.pairs[each.jvm].bad if several and each.jvm is not None else None
        known = [_explanation(result, key, each.jvm) for key in each.explained_by if key in keys]
        rows.append(Row(each, f"{jvm.main} ({jvm.pid})" if jvm is not None else None, tuple(known)))
    return rows


def _explanation(result: Result, key: str, jvm: int | None) -> str:
    causes = [each for each in result.differences if each.key == key]
    cause = next((each for each in causes if each.jvm in (jvm, None)), causes[0])
    return (
        f"{cause.name} {_cut(value_text(cause.bad, cause.unit), 40)} / {_cut(value_text(cause.good, cause.unit), 40)}"
    )


def _verdict(result: Result, rows: Sequence[Row], grown: Sequence[Growth]) -> Iterator[str]:
    bad, good = result.facts.bad, result.facts.good
    if not rows and not grown:
        yield f"{bad.label} and {good.label} are alike: {plural(result.equal, 'value')} {agreeing(result.equal, 'is', 'are')} equal, {result.noise:,} within noise"
        if result.unpaired:
            yield f"not all is known: {plural(len(result.unpaired), 'JVM')} without a counterpart {agreeing(len(result.unpaired), 'was', 'were')} not compared"
        if not result.has_rates:
            yield "what is measured is unknown: rates need two samples on both sides"
        return
    measured = [row for row in rows if row.difference.class_ == MEASURED]
    settings = [row for row in rows if row.difference.class_ == CONFIGURED]
    machine = [row for row in rows if row.difference.class_ == HOST]
    if measured:
        yield "measured: " + "; ".join(_sentence(row) for row in measured[:_MOST_IN_VERDICT])
    elif not result.has_rates:
        yield "what is measured is unknown: rates need two samples on both sides"
    elif not grown:
        yield "no measured symptom differs"
    if grown:
        shown = [f"{each.name} {signed_size(each.bytes_diff)}" for each in grown]
        yield f"objects in the heap, bad - good: {listed(shown, _MOST_IN_VERDICT)}"
    causes = list(dict.fromkeys(cause for row in measured for cause in row.explained_by))
    if causes:
        yield "may be explained by: " + listed(causes, _MOST_IN_VERDICT, "; ")
    elif settings or machine:
        yield "differs: " + listed([_sentence(row) for row in (*settings, *machine)], _MOST_IN_VERDICT, "; ")


def _sentence(row: Row) -> str:
    return f"{row.name} {_cut(row.bad, 40)}, good {_cut(row.good, 40)}"


def next_commands(result: Result) -> list[str]:
    """The commands that look closer, on BAD."""
    side = result.facts.bad
    words: list[object] = ["opskit", *(side.options or ())]
    pairs = {each.jvm for each in result.differences if each.jvm is not None}
    pid = result.pairs[min(pairs)].bad.pid if pairs else None
    areas = {(each.class_, each.area, each.key) for each in result.differences}
    keys = {key for _, _, key in areas}
    chosen: list[tuple[object, ...]] = []
    if pid is not None and keys & {"jvm.gc", "jvm.stopped"}:
        chosen.append(("safepoints", pid))
    if pid is not None and (keys & {"jvm.throttled", "jvm.waits"}):
        chosen.append(("cswitch", pid))
    if pid is not None and any(area in ("limits", "cgroup") for _, area, _ in areas):
        chosen.append(("limits", pid))
    if any(key.startswith(("host.psw", "host.pressure.memory", "jvm.swapped", "host.memory_used")) for key in keys):
        chosen.append(("mem",))
    if any(class_ == MEASURED and area == "disk" for class_, area, _ in areas):
        chosen.append(("io",))
    if any(class_ == MEASURED and area == "network" for class_, area, _ in areas):
        chosen.append(("tcp",))
    if not chosen and result.differences:
        chosen.append(("jvms", pid) if pid is not None else ("doctor",))
    dumped = [pair for pair in result.pairs if pair.bad.dumps and pair.good.dumps]
    drawn = []
    if dumped and None not in (side.options, result.facts.good.options):
        live = next((each.options or () for each in result.facts if each.label == "live"), ())
        labels = shell.operands(side.label, result.facts.good.label)
        pids = ("--jvm", dumped[0].bad.pid, "--jvm", dumped[0].good.pid)
        drawn = [shell.command("opskit", *live, "compare", *pids, "-o", "diff.svg", *labels)]
    return drawn if side.options is None else [shell.command(*words, *each) for each in chosen[:3]] + drawn


def _lines_about(result: Result) -> Iterator[str]:
    for pair in result.pairs:
        yield f"compared: {pair.bad.main} ({pair.bad.pid}) with {pair.good.main} ({pair.good.pid})"
    if result.unpaired:
        shown = [f"{jvm.main} ({jvm.pid}, {side})" for side, jvm in result.unpaired]
        yield f"not compared, --jvm WORD chooses one: {listed(shown, _MOST_GAPS)}"
    gaps = [f"{what}: {why}" for what, why in result.unknown]
    if gaps:
        yield f"not compared: {listed(list(dict.fromkeys(gaps)), _MOST_GAPS, '; ')}"
    rest = f"{plural(result.equal, 'value')} equal, {result.noise:,} within noise, {result.own:,} {agreeing(result.own, 'name', 'names')} and addresses left out"
    yield rest


def exit_code(result: Result, grown: Sequence[Growth]) -> int:
    """1 where something differs."""
    return int(bool(result.differences or grown))


def report(about: About, result: Result, top: int | None = None, grown: Sequence[Growth] = ()) -> Report:
    """The report; exit code 1 where something differs."""
    rows = rows_of(result)
    answer = Answer(result, rows, next_commands(result), grown)
    blocks: list[Block[Any]] = []
    for class_ in CLASSES:
        found = [row for row in rows if row.difference.class_ == class_]
        shown = found[: top or None]
        if found:
            blocks.append(Block(_COLUMNS, shown, len(found), class_))
    if grown:
        blocks.append(Block(_CLASS, grown[: top or _MOST_CLASSES], len(grown), "histogram (bad - good)", details=True))
    return Report(
        about, blocks, [*_verdict(result, rows, grown)], [*_lines_about(result)], summary=[f"next: {line}" for line in answer.next],
        text=lambda: _text(answer, top), sheet=lambda: sheet(DIFFERENCE[:11], rows), document=(DOCUMENT, answer), exit_code=exit_code(result, grown),
    )  # fmt: skip


def _text(answer: Answer, top: int | None) -> Iterator[str]:
    """Lines for grep: verdict, then `class  name: bad / good  (more)`, and the next commands."""
    from opskit.escape import printable

    yield from (printable(line) for line in _verdict(answer.result, answer.rows, answer.grown))
    for class_ in CLASSES:
        found = [row for row in answer.rows if row.difference.class_ == class_]
        for row in found[: top or None]:
            more = f"  ({row.with_it})" if row.with_it else ""
            yield printable(f"{class_:<10}  {row.name}: {row.bad} / {row.good}{more}")
        if top and len(found) > top:
            yield f"{class_:<10}  … {len(found) - top:,} more (-n 0)"
    for each in answer.grown[: top or _MOST_CLASSES]:
        yield printable(
            f"histogram   {to_readable(each.name)}: {signed_size(each.bytes_diff)}, {each.instances_diff:+,} instances"
        )
    yield from (printable(f"next: {line}") for line in answer.next)
