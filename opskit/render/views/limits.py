"""How the limits are shown: the verdict's sentences, a row a limit, keys for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from opskit.proc.files.limits import UNLIMITED
from opskit.proc.thread_limits import PERMISSION_DENIED
from opskit.quantities import size, whole
from opskit.render.report import Block, Column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.analysis.limit_trend import HeadroomSample, Trend
    from opskit.analysis.limit_use import LimitUse
    from opskit.analysis.limits import Limit, Verdict
    from opskit.analysis.probe_plan import ProbePlan
    from opskit.proc.thread_limits import Situation


def short_size(count: float) -> str:
    """A size without a needless decimal: 16 TiB, 23.5 GiB."""
    return size(count).replace(".0 ", " ")


def amount(value: float | None, unit: str) -> str:
    """A limit's value or use in its unit."""
    if value is None:
        return "unknown"
    if value == UNLIMITED:
        return "unlimited"
    return short_size(value) if unit == "bytes" else whole(value)


def verdict_lines(verdict: Verdict, who: str, situation: Situation, advice: Callable[[], str]) -> list[str]:
    """The answer first; open files; what could not be told and might bind sooner. `advice` says how to be allowed to read it."""
    return [_answer(verdict, who, situation), open_files_line(situation), *_doubts(verdict, advice)]


def _answer(verdict: Verdict, who: str, situation: Situation) -> str:
    binding = verdict.binding
    if binding is None:
        return f"{who}: how many more threads can start could not be told{_unknown(verdict)}"
    left = binding.threads_left or 0
    noun = "thread" if left == 1 else "threads"
    line = f"{who} can start {'at most ' if verdict.is_at_most else ''}{left:,} more {noun}"
    if left and verdict.unknown:
        line += f"{_unknown(verdict)}. The first known limit is {_described(binding, verdict).rstrip(',')}."
    elif left:
        line += f"; then {_described(binding, verdict)} stops it."
    else:
        line += f": {_reason(binding, verdict, situation)}."
    if verdict.has_run_out:
        line += f" Set by {binding.set_by}." if binding.set_by else ""
        line += f" Type: {binding.fix}" if binding.fix else ""
    return line


def _described(limit: Limit, verdict: Verdict) -> str:
    if limit.name == "RLIMIT_STACK":
        return f"the address space, full of stacks of {short_size(verdict.stack.bytes)} ({_stack_name(verdict)}),"
    if limit.name == "vm.overcommit_memory":
        return f"CommitLimit ({amount(limit.value, 'bytes')}, {amount(limit.in_use, 'bytes')} committed, mode 2)"
    return f"{limit.full_name} ({amount(limit.value, limit.unit)}, {amount(limit.in_use, limit.unit)} in use)"


def _reason(limit: Limit, verdict: Verdict, situation: Situation) -> str:
    if limit.name == "RLIMIT_STACK":
        ram = situation.meminfo.get("MemTotal", 0) + situation.meminfo.get("SwapTotal", 0)
        more = (
            f"more than RAM + swap ({short_size(ram)})" if verdict.stack.bytes > ram else "more than its addresses hold"
        )
        return f"each needs a stack of {short_size(verdict.stack.bytes)} ({_stack_name(verdict)}), {more}"
    if limit.name == "seccomp":
        return f"seccomp: {limit.note}"
    return f"{_described(limit, verdict)} has no room for one more"


def _stack_name(verdict: Verdict) -> str:
    return "RLIMIT_STACK" if verdict.stack.follows_rlimit else verdict.stack.origin


def _unknown(verdict: Verdict) -> str:
    """`; unknown: vm.max_map_count (permission denied), pids.max`; empty where nothing is."""
    names = [limit.full_name + (f" ({limit.reason})" if limit.reason else "") for limit in verdict.unknown]
    return f"; unknown: {', '.join(names)}" if names else ""


def _doubts(verdict: Verdict, advice: Callable[[], str]) -> list[str]:
    denied = [limit.full_name for limit in verdict.unknown if limit.reason == PERMISSION_DENIED]
    lines = [
        f"{limit.full_name} is unknown and may stop it sooner: {limit.note}"
        for limit in verdict.unknown
        if limit.reason != PERMISSION_DENIED
    ]
    if denied:
        are = "is" if len(denied) == 1 else "are"
        lines.append(f"{' and '.join(denied)} {are} unknown and may stop it sooner: {PERMISSION_DENIED}; {advice()}")
    return lines


def open_files_line(situation: Situation) -> str:
    """`open files: 394 of 1,024 (RLIMIT_NOFILE), 38 %`."""
    limit = situation.limits.get("RLIMIT_NOFILE")
    if limit is None or situation.open_files is None:
        reason = situation.unreadable.get("fd") or situation.unreadable.get("limits") or "not read"
        return f"open files: {amount(situation.open_files, 'files')} of {amount(limit.soft if limit else None, 'files')}: {reason}"
    share = f", {situation.open_files / limit.soft * 100:.0f} %" if limit.soft not in (0, UNLIMITED) else ""
    return f"open files: {situation.open_files:,} of {amount(limit.soft, 'files')} (RLIMIT_NOFILE){share}"


def number(value: float | None) -> int | str | None:
    """What JSON gets: a number, "unlimited", or null."""
    if value is None:
        return None
    return "unlimited" if value == UNLIMITED else int(value)


def _left(limit: Limit) -> object:
    if limit.state == "counts":
        return limit.threads_left
    return None if limit.state == "unknown" else limit.state


def _left_shown(value: object) -> str:
    return "unknown" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


class _Amount:
    """A value with its unit: plain for text, readable for tables."""

    def __init__(self, value: float | None, unit: str) -> None:
        self.value, self.unit = value, unit

    def __str__(self) -> str:
        return "-" if self.value is None else "unlimited" if self.value == UNLIMITED else str(int(self.value))


def _percent(value: object) -> str:
    return "-" if value is None else f"{value} %"


def _shown(cell: _Amount) -> str:
    return "-" if cell.value is None else amount(cell.value, cell.unit)


_FACTS: list[Column[Limit]] = [
    Column("limit", lambda limit: limit.name),
    Column("value", lambda limit: _Amount(limit.value, limit.unit), _shown, right=True),
    Column("in use", lambda limit: _Amount(limit.in_use, limit.unit), _shown, right=True),
    Column("threads left", _left, _left_shown, right=True),
]
_NOTE: Column[Limit] = Column("note", lambda limit: limit.note)
_ADVICE: list[Column[Limit]] = [
    Column("where", lambda limit: limit.source),
    Column("set by", lambda limit: limit.set_by),
    Column("fix", lambda limit: limit.fix, below=lambda limit: limit.full_name),
]


def blocks(verdict: Verdict, *, narrow: bool) -> list[Block[Any]]:
    """A row a limit. `narrow`: for a screen in two tables, the numbers and what goes with those that count."""
    rows = verdict.limits
    if not narrow:
        return [Block([*_FACTS, *_ADVICE, _NOTE], rows, len(rows))]
    known = [limit for limit in rows if limit.state == "counts"]
    advice = Block([Column("limit", lambda limit: limit.full_name), *_ADVICE], known, len(known), "set by, fix")
    return [Block([*_FACTS, _NOTE], rows, len(rows)), *([advice] if known else [])]


def limit_object(limit: Limit) -> dict[str, Any]:
    """One limit for JSON. `threads_left` null: unlimited, exempt or unknown; `state` says which."""
    return {
        "name": limit.name,
        "value": number(limit.value),
        "in_use": limit.in_use,
        "threads_left": limit.threads_left,
        "source": limit.source,
        "set_by": limit.set_by,
        "fix": limit.fix,
        "unit": limit.unit or None,
        "state": limit.state,
        "note": limit.note,
        "cgroup": limit.cgroup,
        "threads_left_max": limit.threads_left_max,
    }


def unknown_object(limit: Limit) -> dict[str, Any]:
    """A limit that could not be told, for JSON. `reason` null: `note` alone says why."""
    return {"name": limit.name, "cgroup": limit.cgroup, "reason": limit.reason, "note": limit.note}


USE_COLUMNS: list[Column[LimitUse]] = [
    Column("limit", lambda use: use.name),
    Column("what", lambda use: use.what),
    Column("value", lambda use: _Amount(use.value, use.unit), _shown, right=True),
    Column("in use", lambda use: _Amount(use.in_use, use.unit), _shown, right=True),
    Column("used %", lambda use: None if use.share is None else round(use.share * 100), _percent, right=True),
    Column("mark", lambda use: "over 80 %" if use.nearly else None),
    Column("where", lambda use: use.source),
]


def use_object(use: LimitUse) -> dict[str, Any]:
    """One row of --all for JSON."""
    return {
        "name": use.name,
        "what": use.what,
        "unit": use.unit,
        "value": number(use.value),
        "in_use": use.in_use,
        "used_ratio": None if use.share is None else round(use.share, 4),
        "over_80_percent": use.nearly,
        "source": use.source,
    }


def trend_line(samples: Sequence[HeadroomSample], found: Trend | None) -> str:
    """`in 20 s: 118 -> 96 threads left (-66.0 a minute); none left in 1 min 27 s at this rate`."""
    first, last = samples[0], samples[-1]
    line = f"after {last.at_s:.0f} s: {_count(first.threads_left)} -> {_count(last.threads_left)} threads left"
    if found is None:
        return line
    line += f" ({found.per_min:+.1f} a minute)"
    if found.zero_in_s is None:
        return line + "; at this rate it does not run out"
    return line + (
        "; none is left" if found.zero_in_s == 0 else f"; none left in {_span(found.zero_in_s)} at this rate"
    )


def _count(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _span(seconds: float) -> str:
    whole_s = round(seconds)
    if whole_s < 60:
        return f"{whole_s} s"
    if whole_s < 3600:
        return f"{whole_s // 60} min {whole_s % 60} s"
    hours = whole_s // 3600
    return f"{hours} h {whole_s % 3600 // 60} min" if hours < 72 else f"{hours // 24} days"


class Probed(NamedTuple):
    """A probe's plan and what came of it; None: it would have taken the last threads, and was not made."""

    plan: ProbePlan
    result: Outcome | None


class Outcome(Protocol):
    """What a probe gives (actions.probe.ProbeResult)."""

    @property
    def tried(self) -> int: ...  # noqa: D102
    @property
    def started(self) -> int: ...  # noqa: D102
    @property
    def failed_call(self) -> str | None: ...  # noqa: D102
    @property
    def errno(self) -> str | None: ...  # noqa: D102
    @property
    def took_s(self) -> float: ...  # noqa: D102


def plan_line(plan: ProbePlan, user: str) -> str:
    """What a probe would do, before it is agreed to."""
    where = f" in the cgroup of {plan.cgroup_procs.removesuffix('/cgroup.procs')}" if plan.cgroup_procs else ""
    return (
        f"probe: a child as user {user}{where} will start up to {plan.threads} "
        f"thread{'' if plan.threads == 1 else 's'} with stacks of {short_size(plan.stack_bytes)}, under the limits of {plan.pid}, "
        "and be gone within a second; while it lives these are not there for the application"
    )


def probe_line(probed: Probed, verdict: Verdict) -> str:
    """What the probe showed, and what it could not."""
    plan, result = probed
    if result is None:
        return f"probe: not made, with {plan.predicted} left: these are the application's own last threads"
    stacks = f"with stacks of {short_size(plan.stack_bytes)}"
    if result.failed_call is None:
        line = f"probe: {result.started} of {result.tried} threads {stacks} really started"
    elif result.failed_call == "timeout":
        line = "probe: no answer within a second, it was ended: the machine is slow or the limits left it no room"
    elif result.failed_call.startswith("setup:"):
        line = f"probe: could not take on {result.failed_call[6:]}: {result.errno}; nothing was proved"
    else:
        line = f"probe: {result.started} of {result.tried} threads {stacks} started, then {result.failed_call}() failed: {result.errno}"
    line += f" (gone after {result.took_s * 1000:.0f} ms)"
    binding = verdict.binding
    if binding and binding.name not in plan.proves:
        line += f"; it was not under {binding.name}" + (": add --in-cgroup" if binding.name == "pids.max" else "")
    elif plan.predicted == 0 and result.started:
        line += "; none was predicted: something has changed meanwhile, or the prediction is wrong"
    return line


def probe_object(probed: Probed) -> dict[str, Any]:
    """The probe for JSON."""
    plan, result = probed
    return {
        "made": result is not None,
        "tried": result.tried if result else 0,
        "started": result.started if result else 0,
        "failed_call": result.failed_call if result else None,
        "errno": result.errno if result else None,
        "took_s": round(result.took_s, 4) if result else None,
        "stack_bytes": plan.stack_bytes,
        "proves": list(plan.proves),
    }
