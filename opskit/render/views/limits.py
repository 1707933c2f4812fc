"""How limits are shown: the answer's sentences, one row per limit, keys for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.limits.findings import open_files
from opskit.analysis.limits.judge import growth
from opskit.proc.config.systemd_units import unit_of_path
from opskit.proc.files.limits import UNLIMITED
from opskit.proc.visibility import PERMISSION_DENIED
from opskit.quantities import duration, percent, plural, short_size, whole
from opskit.records import NamedTuple
from opskit.render.fields import (
    COUNT,
    FLAG,
    ID,
    NUMBER,
    SHARE,
    SIZE,
    TEXT,
    Field,
    Kind,
    list_of,
    map_of,
    record,
    records,
)
from opskit.render.report import Block, Report

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.analysis.limits.findings import LimitUse
    from opskit.analysis.limits.judge import HeadroomSample, LimitsResult
    from opskit.analysis.limits.limit import Headroom, Limit
    from opskit.analysis.limits.probe import Probed, ProbePlan
    from opskit.collect.limits.facts import ThreadLimitFacts
    from opskit.collect.limits.fillers import Filler
    from opskit.render.report import About

_ADVICE = ("source", "set_by", "fix")
_FEW = 5  # rows of a short table, so that the verdict stays in sight
_FEWEST = 2  # threads of a name


class _Amount(NamedTuple):
    """A value with its unit: plain for text, readable for tables, a number or "unlimited" for JSON."""

    value: float | None
    unit: str

    def __str__(self) -> str:
        return "-" if self.value is None else "unlimited" if self.value == UNLIMITED else str(int(self.value))


AMOUNT = Kind(
    {"anyOf": [{"type": ["number", "null"]}, {"const": "unlimited"}]},
    lambda it: "-" if it.value is None else amount(it.value, it.unit),
    right=True,
    dump=lambda it: "unlimited" if it.value == UNLIMITED else it.value,
)


def amount(value: float | None, unit: str) -> str:
    """A limit's value or use in its unit."""
    if value is None:
        return "unknown"
    if value == UNLIMITED:
        return "unlimited"
    return short_size(value) if unit == "bytes" else whole(value)


def _left(limit: Limit) -> object:
    return {"counts": limit.threads_left, "unknown": None}.get(limit.state, limit.state)


LIMIT: Sequence[Field[Limit]] = (
    Field("name", TEXT, "limit"),
    Field("value", AMOUNT, "value", lambda limit: _Amount(limit.value, limit.unit), help='a number or "unlimited"'),
    Field("in_use", AMOUNT, "in use", lambda limit: _Amount(limit.in_use, limit.unit)),
    Field("threads_left", COUNT, help="null: unlimited, exempt or unknown; `state` says which"),
    Field("left", COUNT, "threads left", _left, show=lambda it: it if isinstance(it, str) else whole(it), json=False),
    Field("source", TEXT, "where", help="where it was read"),
    Field("set_by", TEXT, "set by"),
    Field("fix", TEXT, "fix", below=lambda limit: limit.full_name),
    Field("unit", value=lambda limit: limit.unit or None),
    Field("state", help="counts, unlimited, exempt or unknown"),
    Field("note", TEXT, "note"),
    Field("cgroup"),
    Field("threads_left_max", COUNT, help="the highest estimate where only a range is known"),
)
UNKNOWN_LIMIT: Sequence[Field[Limit]] = (
    Field("name"),
    Field("cgroup"),
    Field("reason", help="why a file could not be read; null: `note` alone says why"),
    Field("note"),
)
USE: Sequence[Field[LimitUse]] = (
    Field("name", TEXT, "limit"),
    Field("what", TEXT, "what"),
    Field("unit"),
    Field("value", AMOUNT, "value", lambda use: _Amount(use.value, use.unit)),
    Field("in_use", AMOUNT, "in use", lambda use: _Amount(use.in_use, use.unit)),
    Field("used_ratio", SHARE, value=lambda use: None if use.share is None else round(use.share, 4)),
    Field(
        "used %", COUNT, "used %", lambda use: None if use.share is None else round(use.share * 100),
        show=lambda value: "-" if value is None else f"{value} %", json=False,
    ),
    Field("over_80_percent", FLAG, value=lambda use: use.nearly),
    Field("mark", TEXT, "mark", lambda use: "over 80 %" if use.nearly else None, json=False),
    Field("source", TEXT, "where"),
)  # fmt: skip
SAMPLE: Sequence[Field[HeadroomSample]] = (
    Field("at_s", NUMBER, value=lambda sample: round(sample.at_s, 3)),
    Field("threads_left", COUNT),
    Field("binding"),
)
PROBE: Sequence[Field[Probed]] = (
    Field("made", FLAG, value=lambda probed: probed.result is not None),
    Field("tried", COUNT, value=lambda probed: probed.result.tried if probed.result else 0),
    Field("started", COUNT, value=lambda probed: probed.result.started if probed.result else 0),
    Field("failed_call", value=lambda probed: probed.result and probed.result.failed_call),
    Field("errno", value=lambda probed: probed.result and probed.result.errno),
    Field("took_s", NUMBER, value=lambda probed: probed.result and round(probed.result.took_s, 4)),
    Field("stack_bytes", SIZE, value=lambda probed: probed.plan.stack_bytes),
    Field("proves", list_of(TEXT), value=lambda it: list(it.plan.proves), help="the limits the probe was under"),
)


def _zero_in_s(result: LimitsResult) -> float | None:
    seconds = result.trend and result.trend.zero_in_s
    return None if seconds is None else round(seconds, 1)


OPEN_FILES: Sequence[Field[ThreadLimitFacts]] = (
    Field("in_use", COUNT, value=lambda facts: facts.open_files),
    Field("value", AMOUNT, value=lambda facts: _Amount(facts.soft("RLIMIT_NOFILE"), "files")),
)
FILLER: Sequence[Field[Filler]] = (
    Field("limit"),
    Field("cgroup"),
    Field("pid", ID),
    Field("command"),
    Field("threads", COUNT),
    Field("thread_names", map_of(COUNT), value=lambda filler: dict(filler.names)),
)
DOCUMENT: Sequence[Field[LimitsResult]] = (
    Field("threads_left", COUNT, value=lambda result: result.headroom.threads_left),
    Field(
        "threads_left_is_at_most", FLAG, value=lambda result: result.headroom.is_at_most,
        help="fewer may start: an unknown limit may bind sooner, or not all uses are visible",
    ),
    Field("unknown_limits", records(UNKNOWN_LIMIT), value=lambda result: result.headroom.unknown),
    Field(
        "binding", value=lambda result: result.headroom.binding.name if result.headroom.binding else None,
        help="the first of `limits`, which stops the next thread",
    ),
    Field("limits", records(LIMIT), value=lambda result: result.headroom.limits),
    Field("stack_bytes", SIZE, value=lambda result: result.headroom.stack.bytes),
    Field("stack_origin", value=lambda result: result.headroom.stack.origin),
    Field("open_files", record(OPEN_FILES), value=lambda result: result.facts),
    Field("thread_names", map_of(COUNT), value=lambda result: dict(result.facts.thread_names), help="threads by the pattern of their names"),
    Field("fillers", records(FILLER), value=lambda result: result.facts.fillers, help="who has most threads under each nearly full limit"),
    Field("probe", record(PROBE), value=lambda result: result.probed),
    Field("all", records(USE), value=lambda result: result.uses),
    Field("samples", records(SAMPLE), value=lambda result: result.samples),
    Field("threads_left_per_min", NUMBER, value=lambda result: result.trend and round(result.trend.per_min, 2)),
    Field("zero_in_s", NUMBER, value=_zero_in_s, help="seconds until none is left at this rate"),
)  # fmt: skip


def target(facts: ThreadLimitFacts) -> dict[str, object]:
    """What was asked about, for the head of the report."""
    who = facts.ask.process
    unit = next(filter(None, (unit_of_path(member.path) for member in facts.memberships)), None)
    return {"pid": who.pid, "command": who.command, "user": who.user, "unit": unit}


class Shown(NamedTuple):
    """What to show. `columns`: tables with every column; `short`: the first few limits, and none if nothing is wrong."""

    columns: bool
    short: bool


def report(about: About, result: LimitsResult, shown: Shown) -> Report:
    """The answer and the limits. Open files come first where they are nearly used up."""
    files = open_files(result.facts).nearly
    files_line = open_files_line(result.facts)
    if shown.short:
        files_line += f"; -v shows all {len(result.headroom.limits)} limits"
    lines = [files_line] if files else []
    lines += [_answer(result), *([probe_line(result.probed, result.headroom)] if result.probed else [])]
    lines += _trend_lines(result) if result.samples else []
    lines += _owner_lines(result, always=not shown.short)
    lines += [*([] if files else [files_line]), *_doubts(result)]
    return Report(
        about,
        list(_blocks(result, shown)),
        verdict=lines,
        footer=[f"could not read {name}" for name in result.facts.sources.pam.unread],
        findings=result.findings,
        document=(DOCUMENT, result),
        exit_code=2 if result.headroom.binding is None else None,
    )


def _blocks(result: LimitsResult, shown: Shown) -> Iterator[Block[Limit] | Block[LimitUse]]:
    # A total of 0: no -n shows those that do not fit on the screen of a watch.
    rows = result.headroom.limits
    if shown.short:
        if result.headroom.has_run_out or result.headroom.unknown:
            kept = [limit for limit in rows if limit.state in ("counts", "unknown")][:_FEW]
            yield Block([field for field in LIMIT if field.name not in (*_ADVICE, "note")], kept, 0)
    elif shown.columns:
        yield Block(LIMIT, rows, 0)
    else:
        yield Block([field for field in LIMIT if field.name not in _ADVICE], rows, 0)
        known = [limit for limit in rows if limit.state == "counts"]
        name: Field[Limit] = Field("full_name", TEXT, "limit")
        if known:
            yield Block([name, *(field for field in LIMIT if field.name in _ADVICE)], known, 0, "set by, fix")
    if result.uses is not None:
        yield Block(USE, result.uses, 0, "all limits")


def _answer(result: LimitsResult) -> str:
    found, who = result.headroom, result.facts.ask.process
    user = f"user {who.user or 'unknown'}"
    shell = f"A program started from this shell ({user})"
    title = shell if result.facts.ask.is_opskit else f"{who.pid} ({who.command}, {user})"
    binding = found.binding
    if binding is None:
        return f"{title}: how many more threads can start is unknown{_unknown(found)}"
    left = binding.threads_left or 0
    line = f"{title} can start {'at most ' if found.is_at_most else ''}{plural(left, 'more thread')}"
    if left and found.unknown:
        line += f"{_unknown(found)}. The first known limit is {_described(binding, found).rstrip(',')}."
    elif left:
        line += f"; then {_described(binding, found)} stops it."
    else:
        line += f": {_reason(binding, result)}."
    if found.has_run_out and binding.set_by:
        line += f" Set by {binding.set_by}."
    return line


def _described(limit: Limit, found: Headroom) -> str:
    if limit.name == "RLIMIT_STACK":
        return f"the address space, full of stacks of {short_size(found.stack.bytes)} ({_stack_name(found)}),"
    if limit.name == "vm.overcommit_memory":
        return f"CommitLimit ({amount(limit.value, 'bytes')}, {amount(limit.in_use, 'bytes')} committed, mode 2)"
    return f"{limit.full_name} ({amount(limit.value, limit.unit)}, {amount(limit.in_use, limit.unit)} in use)"


def _reason(limit: Limit, result: LimitsResult) -> str:
    found, meminfo = result.headroom, result.facts.meminfo
    if limit.name == "RLIMIT_STACK":
        ram = meminfo.get("MemTotal", 0) + meminfo.get("SwapTotal", 0)
        most = f"RAM + swap ({short_size(ram)})" if found.stack.bytes > ram else "its addresses hold"
        return f"each needs a stack of {short_size(found.stack.bytes)} ({_stack_name(found)}), more than {most}"
    if limit.name == "seccomp":
        return f"seccomp: {limit.note}"
    return f"{_described(limit, found)} has no room for one more"


def _stack_name(found: Headroom) -> str:
    return "RLIMIT_STACK" if found.stack.follows_rlimit else found.stack.origin


def _unknown(found: Headroom) -> str:
    """`; unknown: vm.max_map_count (permission denied), pids.max`; empty where nothing is."""
    names = [limit.full_name + (f" ({limit.reason})" if limit.reason else "") for limit in found.unknown]
    return f"; unknown: {', '.join(names)}" if names else ""


def _doubts(result: LimitsResult) -> Iterator[str]:
    """The limits that are unknown and might bind sooner."""
    denied = [limit.full_name for limit in result.headroom.unknown if limit.reason == PERMISSION_DENIED]
    for limit in result.headroom.unknown:
        if limit.reason != PERMISSION_DENIED:
            yield f"{limit.full_name} is unknown and may stop it sooner: {limit.note}"
    if denied:
        are = "is" if len(denied) == 1 else "are"
        yield f"{' and '.join(denied)} {are} unknown and may stop it sooner: {PERMISSION_DENIED}; {result.facts.advice}"


def open_files_line(facts: ThreadLimitFacts) -> str:
    """`open files: 394 of 1,024 (RLIMIT_NOFILE), 38 %`."""
    used, soft = facts.open_files, facts.soft("RLIMIT_NOFILE")
    line = f"open files: {amount(used, 'files')} of {amount(soft, 'files')}"
    if soft is None or used is None:
        return f"{line}: {facts.unreadable.get('fd') or facts.unreadable.get('limits') or 'not read'}"
    return f"{line} (RLIMIT_NOFILE)" + (f", {percent(used / soft)}" if soft not in (0, UNLIMITED) else "")


def _owner_lines(result: LimitsResult, *, always: bool) -> Iterator[str]:
    """Who has the threads that a nearly full limit counts, and their names: `38 of 54 threads are named leak-*`.

    Without such a limit the names are shown in a watch in which threads were added, or `always`.
    """
    facts, full = result.facts, result.headroom.binding if result.headroom.has_run_out else None
    filler = full and next(
        (each for each in facts.fillers if (each.limit, each.cgroup) == (full.name, full.cgroup)), None
    )
    if full and filler and filler.pid != facts.pid:
        of_all = f"{whole(filler.threads)} of the {plural(full.in_use or 0, 'thread')}"
        where = (
            f"in {full.cgroup}" if full.cgroup else "of its user" if full.name == "RLIMIT_NPROC" else "of the machine"
        )
        yield f"{filler.pid} ({filler.command}) has {of_all} {where}{_named(filler.names, '; ')}"
    elif full or always or (result.samples and growth(result.samples)):
        yield from filter(None, [_named(facts.thread_names)])


def _named(names: Mapping[str, int], start: str = "") -> str:
    """The most frequent name of at least three threads; empty where there are fewer, or where each has another name."""
    total, (name, count) = sum(names.values()), next(iter(names.items()), ("", 0))
    return f"{start}{whole(count)} of {plural(total, 'thread')} are named {name}" if total > _FEWEST <= count else ""


def _trend_lines(result: LimitsResult) -> Iterator[str]:
    yield trend_line(result)
    found = growth(result.samples or ())
    if found:
        name, gained, total = found
        yield f"{plural(total, 'thread')} more than at first: {whole(gained)} more are named {name}"


def trend_line(result: LimitsResult) -> str:
    """`after 20 s: 118 -> 96 threads left (-66.0 a minute); none left in 1 min 27 s at this rate`."""
    samples = result.samples or []
    counts = [whole(each.threads_left) for each in (samples[0], samples[-1])]
    line = f"after {samples[-1].at_s:.0f} s: {' -> '.join(counts)} threads left"
    if result.trend is None:
        return line
    per_min, zero_in_s = result.trend
    end = f"none left in {duration(zero_in_s)} at this rate" if zero_in_s else "none is left"
    return f"{line} ({per_min:+.1f} a minute); {'at this rate it does not run out' if zero_in_s is None else end}"


def plan_line(plan: ProbePlan, user: str) -> str:
    """What a probe would do, before it is agreed to."""
    where = f" in the cgroup of {plan.cgroup_procs.removesuffix('/cgroup.procs')}" if plan.cgroup_procs else ""
    return (
        f"probe: a child as user {user}{where} will start up to {plural(plan.threads, 'thread')} "
        f"with stacks of {short_size(plan.stack_bytes)}, under the limits of {plan.pid}, "
        "and end within a second; until then these are not available to the application"
    )


def probe_line(probed: Probed, found: Headroom) -> str:
    """What the probe showed, and what it could not."""
    plan, result = probed
    if result is None:
        return f"probe: not made, with {plan.predicted} left: these are the application's own last threads"
    tried = f"{result.started} of {plural(result.tried, 'thread')} with stacks of {short_size(plan.stack_bytes)}"
    if result.failed_call is None:
        line = f"probe: {tried} really started"
    elif result.failed_call == "timeout":
        line = "probe: no answer within a second, it was ended: the machine is slow or the limits left it no room"
    elif result.failed_call.startswith("setup:"):
        line = f"probe: could not take on {result.failed_call[6:]}: {result.errno}; nothing was proved"
    else:
        line = f"probe: {tried} started, then {result.failed_call}() failed: {result.errno}"
    line += f" (gone after {result.took_s * 1000:.0f} ms)"
    binding = found.binding
    if binding and binding.name not in plan.proves:
        line += f"; it was not under {binding.name}" + (": add --in-cgroup" if binding.name == "pids.max" else "")
    elif plan.predicted == 0 and result.started:
        line += "; none was predicted: something has changed meanwhile, or the prediction is wrong"
    return line
