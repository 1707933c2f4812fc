"""How the file descriptors of one process are shown: by kind and place, what grows, who waits on them."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opskit.analysis.fds.judge import name_of
from opskit.proc.files.limits import UNLIMITED
from opskit.quantities import duration, percent, plural, short_duration
from opskit.records import NamedTuple
from opskit.render.cells import TARGET
from opskit.render.fields import COUNT, FLAG, ID, NUMBER, SHARE, TEXT, Field, list_of, record, records, sheet
from opskit.render.report import Block, Report
from opskit.render.views.java_stack import where_in_java

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.fds.result import Growth, Result
    from opskit.collect.fd_threads import FdThread
    from opskit.collect.fds.facts import Facts, Group
    from opskit.proc.open_files import OpenFiles
    from opskit.render.report import About
    from opskit.render.shown import Shown

DEFAULT_TOP = 20
_MOST_GROUPS = 3  # in the sentence about all of them
_STACKS = 5  # rows of threads without -v


class Row(NamedTuple):
    """A group with its share of all descriptors and its growth."""

    group: Group
    share: float
    growth: Growth | None
    facts: Facts


class Waiting(NamedTuple):
    """A thread that waits on a descriptor of a group."""

    group: Group
    thread: FdThread


def who(facts: Facts) -> str:
    """`4242 (java)`."""
    return f"{facts.process.pid} ({facts.process.command})"


def rows_of(result: Result) -> list[Row]:
    """The groups: those that grow in the order of the result, then the largest first."""
    grown = {(each.group.kind, each.group.detail): each for each in result.growth if each.group is not None}
    order = {key: place for place, key in enumerate(grown)}
    groups = sorted(
        result.facts.groups,
        key=lambda group: (order.get((group.kind, group.detail), len(order)), -group.fds, group.kind, group.detail),
    )
    all_fds = max(result.facts.fds, 1)
    return [Row(each, each.fds / all_fds, grown.get((each.kind, each.detail)), result.facts) for each in groups]


def waiting_of(result: Result) -> list[Waiting]:
    """The threads that wait, by group."""
    return [Waiting(row.group, thread) for row in rows_of(result) for thread in row.group.threads]


def _since(name: str) -> Any:
    """The age of a group's oldest or newest object in whole seconds; None where the kernel does not tell."""

    def age(row: Row) -> int | None:
        made_s = getattr(row.group, name)
        return None if made_s is None else max(0, round(row.facts.now_s - made_s))

    return age


def _rate(per_min: float | None) -> str:
    return "" if per_min is None else f"{per_min:+,.0f}" if abs(per_min) >= 10 else f"{per_min:+,.1f}"


def _limit_in(growth: Growth | None) -> int | None:
    """Whole seconds: -f text would round a large number to six digits."""
    return None if growth is None or growth.full_s is None else round(growth.full_s)


def limit_of(value: float) -> int | None:
    """An rlimit; None: no limit."""
    return None if value == UNLIMITED else round(value)


OPEN: Sequence[Field[OpenFiles]] = (
    Field("taken", COUNT, help="descriptors below the soft limit"),
    Field("soft_limit", COUNT, value=lambda it: limit_of(it.limit.soft), help="null: no limit"),
    Field("hard_limit", COUNT, value=lambda it: limit_of(it.limit.hard), help="null: no limit"),
    Field("left", COUNT, value=lambda it: limit_of(it.free), help="how many more the process can open"),
)
THREAD: Sequence[Field[FdThread]] = (
    Field("fd", ID),
    Field("tid", ID),
    Field("name"),
    Field("call", help="the system call that it sleeps in"),
    Field("frames", list_of(TEXT), value=lambda it: [*it.frames], help="its Java stack, innermost first; with --ask"),
)
_KIND: Field[Row] = Field("kind", TEXT, "kind", attrgetter("group.kind"), help="tcp, unix, file, deleted, pipe, …")
_DETAIL: Field[Row] = Field(
    "detail", TEXT, "what", attrgetter("group.detail"), help="state and peer, directory or device", shrinks=24
)
_FDS: Field[Row] = Field("fds", COUNT, "fds", attrgetter("group.fds"))
_SHARE: Field[Row] = Field("share", SHARE, "share", help="0 to 1, of the descriptors")
_LOWEST: Field[Row] = Field("lowest", ID, "lowest", attrgetter("group.lowest"), help="the lowest number", rank=3)
_HIGHEST: Field[Row] = Field("highest", ID, "highest", attrgetter("group.highest"), help="the highest number", rank=3)
_OLDEST: Field[Row] = Field(
    "oldest_age_s", COUNT, "oldest", _since("oldest_s"), show=lambda age: "" if age is None else short_duration(age),
    help="how long ago the oldest object was made; null: the kernel does not tell", rank=1,
)  # fmt: skip
_NEWEST: Field[Row] = Field(
    "newest_age_s", COUNT, "newest", _since("newest_s"), show=lambda age: "" if age is None else short_duration(age),
    help="the same of the newest", rank=2,
)  # fmt: skip
_EXAMPLE: Field[Row] = Field("example", TEXT, value=attrgetter("group.example"), help="the target of one descriptor")
_FIRST: Field[Row] = Field(
    "first", COUNT, "first", lambda row: row.growth and row.growth.first, help="with -w: at its first look",
    show=lambda first: "" if first is None else f"{first:,}",
)  # fmt: skip
_PER_MIN: Field[Row] = Field(
    "fds_per_min", NUMBER, "per min", lambda row: row.growth and round(row.growth.per_min, 3), show=_rate, right=True,
    help="with -w",
)  # fmt: skip
GROUP: Sequence[Field[Row]] = (
    _FDS,
    _SHARE,
    _KIND,
    _LOWEST,
    _HIGHEST,
    _OLDEST,
    _NEWEST,
    _FIRST,
    _PER_MIN,
    _DETAIL,
    _EXAMPLE,
    Field("threads", records(THREAD), value=lambda row: [*row.group.threads], help="those that wait on one of them"),
)
GROWTH: Sequence[Field[Growth]] = (
    Field("kind", value=lambda it: it.group and it.group.kind, help="null: of the process"),
    Field("detail", value=lambda it: it.group and it.group.detail),
    Field("first", COUNT),
    Field("last", COUNT),
    Field("fds_per_min", NUMBER, value=lambda it: round(it.per_min, 3)),
    Field("is_steady", FLAG, help="it grew in nearly every look, and never shrank"),
    Field("limit_in_s", COUNT, value=_limit_in, help="until RLIMIT_NOFILE is reached at this pace"),
)
DOCUMENT: Sequence[Field[Result]] = (
    Field("process", record(TARGET), value=attrgetter("facts.process")),
    Field("is_jvm", FLAG, value=attrgetter("facts.is_jvm")),
    Field("fd_count", COUNT, value=attrgetter("facts.fds")),
    Field("open_files", record(OPEN), value=attrgetter("facts.open"), help="against RLIMIT_NOFILE"),
    Field("at_s", NUMBER, value=lambda it: round(it.facts.at_s, 3), help="since the first look of -w"),
    Field("groups", records(GROUP), value=rows_of, help="what grows, then the largest first"),
    Field("total_growth", record(GROWTH), value=attrgetter("total"), help="with -w"),
    Field("growth", records(GROWTH), value=lambda it: [*it.growth], help="with -w: the group that grows first, then the fastest"),
)  # fmt: skip
# Blanks only in the last column.
_TEXT = (_FDS, _KIND, _LOWEST, _HIGHEST, _OLDEST, _NEWEST)
_WAITING: Sequence[Field[Waiting]] = (
    Field("fd", ID, "fd", attrgetter("thread.fd")),
    Field("tid", ID, "tid", attrgetter("thread.tid"), rank=2),
    Field("call", TEXT, "call", attrgetter("thread.call"), rank=1),
    Field("group", TEXT, "waits on", lambda it: name_of(it.group), shrinks=16),
    Field("thread", TEXT, "thread", attrgetter("thread.name"), shrinks=12),
    Field("stack", TEXT, "in Java", lambda it: where_in_java(it.thread.frames), shrinks=20),
)


def target(result: Result) -> dict[str, object]:
    """What was asked about, for the head of the report."""
    process = result.facts.process
    return {"pid": process.pid, "user": process.user}


def report(about: About, result: Result, shown: Shown) -> Report:
    """The answer, the groups, the threads that wait."""
    rows = rows_of(result)
    return Report(
        about,
        [*_blocks(result, rows, shown)],
        verdict=[*verdict(result, watching=shown.watching), *_next(result, shown)],
        footer=[*_footer(result.facts, shown)],
        findings=result.findings,
        sheet=lambda: sheet([field for field in GROUP if field.name != "threads"], rows),
    )


def verdict(result: Result, *, watching: bool) -> Iterator[str]:
    """How many descriptors are open and left, what most of them are, what grows."""
    facts = result.facts
    if facts.missing and not facts.fds:
        yield f"{who(facts)}: which file descriptors it has is unknown."
        return
    yield f"{who(facts)}: {_headroom(facts)}."
    largest = sorted(facts.groups, key=lambda group: -group.fds)[:_MOST_GROUPS]
    if largest:
        share = percent(largest[0].fds / max(facts.fds, 1))
        first, *others = (f"{each.fds:,} {name_of(each)}" for each in largest)
        yield f"Most: {', '.join([f'{first} ({share})', *others])}."
    if watching and result.total is not None:
        yield _growth(result.total, result.growth, facts.at_s)


def _next(result: Result, shown: Shown) -> Iterator[str]:
    closer = next((each.next for each in result.findings if each.next), None)
    if shown.on_screen and closer is not None:
        yield f"next: {closer}"


def _headroom(facts: Facts) -> str:
    """`912 of 1,024 file descriptors (RLIMIT_NOFILE), 112 left`."""
    counted = plural(facts.fds, "file descriptor")
    if facts.open is None:
        return f"{counted}; its limit is unknown"
    limit = limit_of(facts.open.limit.soft)
    if limit is None:
        return f"{counted}, no limit (RLIMIT_NOFILE)"
    left = round(facts.open.free)
    return f"{facts.open.taken:,} of {plural(limit, 'file descriptor')} (RLIMIT_NOFILE), {f'{left:,}' if left else 'none'} left"


def _growth(total: Growth, groups: Sequence[Growth], within_s: float) -> str:
    """`In 20.0 s it grew from 120 to 198: +234 a minute, limit reached in 3 min 32 s; …`."""
    over = f"In {duration(within_s)}"
    if total.last <= total.first and not groups:
        return f"{over} it did not grow: {total.first:,} to {total.last:,}."
    said = f"{over} it {'grew' if total.last > total.first else 'went'} from {total.first:,} to {total.last:,}"
    if total.last > total.first:
        said += f": {_rate(total.per_min)} a minute"
        said += ", but not steadily" if not total.is_steady else ""
        said += f", limit reached in {duration(total.full_s)}" if total.full_s is not None else ""
    leading = [each for each in groups if each.group is not None and each.last > each.first]
    if leading and leading[0].group is not None:
        said += f"; first {name_of(leading[0].group)} grew from {leading[0].first:,} to {leading[0].last:,}"
        said += f", then {plural(len(leading) - 1, 'other group')}" if leading[1:] else ""
    return f"{said}."


def _blocks(result: Result, rows: Sequence[Row], shown: Shown) -> Iterator[Block[Any]]:
    kept = rows[: shown.first(DEFAULT_TOP)]
    if rows:
        yield Block([*_columns(kept, shown)], kept, len(rows), one_line=True)
    waiting = waiting_of(result)
    if waiting and (shown.asked or shown.verbose):
        title = None if shown.text else "threads that wait on a descriptor"
        first = waiting[: shown.first(_STACKS)]
        columns = _WAITING if shown.text or any(each.thread.frames for each in first) else _WAITING[:-1]
        yield Block(columns, first, len(waiting), title, one_line=True, details=True)


def _columns(rows: Sequence[Row], shown: Shown) -> Iterator[Field[Row]]:
    if shown.text:
        yield from (*_TEXT, *((_FIRST, _PER_MIN) if shown.watching else ()), _DETAIL)
        return
    yield _FDS
    yield from (_FIRST, _PER_MIN) if shown.watching else (_SHARE,)
    yield from (_KIND, _DETAIL)
    yield from (each for each in (_OLDEST, _NEWEST) if any(each.value(row) is not None for row in rows))
    yield from (_LOWEST, _HIGHEST)


def _footer(facts: Facts, shown: Shown) -> Iterator[str]:
    yield from facts.missing
    if shown.asked and not facts.is_jvm:
        yield f"--ask: {facts.process.pid} is not a JVM: its threads are shown without stacks"
