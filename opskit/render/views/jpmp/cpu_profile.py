"""The tables of a CPU profile: methods by their own time and with callees, then stacks; and its part of the JSON object."""

from __future__ import annotations

from itertools import takewhile
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opskit.analysis.jpmp import stacks
from opskit.analysis.jpmp.cpu_samples import FEWEST, explained_ms, ranked
from opskit.analysis.jpmp.frame_marks import LABEL
from opskit.analysis.jpmp.frames import short
from opskit.quantities import listed, plural
from opskit.records import NamedTuple
from opskit.render.fields import COUNT, FLAG, NUMBER, TEXT, Field, Kind, list_of, map_of, record
from opskit.render.report import Block, Listing
from opskit.render.views.jpmp.cpu_sentences import callers_of, of_whole, share_words, whole_ms
from opskit.render.views.jpmp.stack_listing import LEAST_ROWS, MOST_FRAMES, chosen, whose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.jpmp.cpu_samples import Method, Share
    from opskit.analysis.jpmp.judge import Profile, Weighing
    from opskit.collect.cpu_profile import CpuProfile
    from opskit.collect.jpmp.collect import Facts
    from opskit.jvm.profiles import WeightedStack
    from opskit.render.views.jpmp.report import View

_ROUNDED = Kind(NUMBER.schema, right=True, dump=lambda value: round(value, 3))
_MOST_METHODS = 10
_SHOWN_NAMES, _NARROWEST = 3, 36
_LARGE = 0.01  # of all CPU time


class _Row(NamedTuple):
    """A method and its shares of the CPU time."""

    method: Method
    own: Share
    total: Share


def _share(name: str, title: str, of: str, *, rank: int = 0) -> list[Field[_Row]]:
    def part(row: _Row) -> str:
        return f"{100 * getattr(row, of).part:.1f} %"

    def plus_minus(row: _Row) -> str:
        return f"{100 * getattr(row, of).plus_minus:.1f}"

    return [
        Field(name, TEXT, title, part, right=True),
        Field(f"{name}_pm", TEXT, "±", plus_minus, right=True, rank=rank),
    ]


def _columns(by: str, naming_full: bool) -> list[Field[_Row]]:
    pools = "self_pools" if by == "self" else "total_pools"
    own, total = _share("self", "self", "own"), _share("total", "with callees", "total", rank=2)
    return [
        *(own if by == "self" else total),
        *((total if by == "self" else own)[:1]),
        Field("samples", COUNT, "samples", lambda row: getattr(row.method, f"{by}_samples"), rank=3),
        Field(
            "method",
            TEXT,
            "method",
            lambda row: row.method.name if naming_full else short(row.method.name),
            shrinks=_NARROWEST,
        ),
        Field(
            "threads",
            TEXT,
            "threads",
            lambda row: listed([*getattr(row.method, pools)], _SHOWN_NAMES),
            rank=1,
            shrinks=8,
        ),
    ]


def blocks(taken: CpuProfile, how: Weighing, profile: Profile, view: View) -> list[Block[Any]]:
    """The tables. On a terminal the methods with their callees are in the verdict only."""
    found = profile.methods or ()
    shown: list[Block[Any]] = []
    rows = [
        _Row(each, of_whole(each.self_ms, profile, taken), of_whole(each.total_ms, profile, taken)) for each in found
    ]
    by_name = {row.method.name: row for row in rows}
    most = _MOST_METHODS if view.top is None else view.top or None
    fits = view.terminal and view.top is None
    for by in ("self",) if fits else ("self", "total"):
        best = [
            by_name[method.name] for method in (ranked(found, by)[0] if by == "self" else callers_of(found, profile))
        ]
        title = None if fits else "methods by their own CPU time" if by == "self" else "methods with their callees"
        if best:
            shown.append(Block(_columns(by, how.naming.full), best[:most], len(best), title, one_line=True))
    ordered = stacks.heaviest_first(_folded(profile.selected), "cpu_ms")
    kept = [stack for stack in ordered if stack.samples >= FEWEST or _is_large(stack, profile)]
    if kept:
        listing = _listing(taken, how, profile, view) if view.terminal else None
        columns = _stack_columns(taken, how, profile)
        shown.append(Block(columns, kept[: view.top or None], len(kept), None if fits else "stacks", listing=listing))
    return shown


def _is_large(stack: WeightedStack, profile: Profile) -> bool:
    """Whether it is worth a row without a sample: its CPU time is known by the kernel."""
    return not stack.samples and (stack.cpu_ms or 0.0) >= _LARGE * whole_ms(profile)


def _folded(selected: Sequence[WeightedStack]) -> list[WeightedStack]:
    from opskit.analysis.jpmp.recursion import folded

    return folded(selected)


def _split(stack: WeightedStack, how: Weighing) -> tuple[str, tuple[str, ...]]:
    """Whose stack it is, and its frames without the names of threads: `virtual thread #41 in ForkJoinPool-1-worker-1`."""
    roots = len(stack.kinds) - len([*takewhile(lambda kind: kind != LABEL, stack.kinds)])
    if how.root is None or not 0 < roots < len(stack.frames) or how.selection.depth is not None:
        return whose(stack), stack.frames
    return " in ".join(stack.frames[-roots:]), stack.frames[:-roots]


def _stack_columns(taken: CpuProfile, how: Weighing, profile: Profile) -> list[Field[WeightedStack]]:
    def frames(stack: WeightedStack) -> tuple[str, ...]:
        threads, named = _split(stack, how)
        shown = named if how.naming.full else tuple(map(short, named))
        return (f"{threads}:", *shown)

    def part(stack: WeightedStack) -> str:
        return share_words(of_whole(stack.cpu_ms or 0.0, profile, taken))

    return [
        Field("cpu_ms", COUNT, "CPU ms"),
        Field("share", TEXT, "share", part, right=True),
        Field("samples", COUNT, "samples"),
        Field("stack", TEXT, "stack", frames),
    ]


def _listing(taken: CpuProfile, how: Weighing, profile: Profile, view: View) -> Listing:
    """A line with the weight and the threads of each stack, below it the frames."""
    whole = how.selection.depth is not None or view.top is not None

    def lines(stack: WeightedStack, detail: int, _: int | None) -> list[str]:
        used = f"{stack.cpu_ms or 0.0:,.0f} ms ({share_words(of_whole(stack.cpu_ms or 0.0, profile, taken))})"
        threads, frames = _split(stack, how)
        head = "  ".join(filter(None, (f"{used}, {plural(stack.samples, 'sample')}", threads)))
        shown = [*(frames if how.naming.full else map(short, frames))]
        return [head, *(f"  {frame}" for frame in (shown if whole else chosen(frames, shown, detail)))]

    return Listing(lines, MOST_FRAMES, LEAST_ROWS)


class Run(NamedTuple):
    """What the JSON object says about the sampling of a live process; of dumps only `sampler` and `fallback`."""

    facts: Facts
    taken: CpuProfile | None


def _of(name: str, kind: Kind, value: Any = None, text: str = "") -> Field[Run]:
    field: Field[CpuProfile] = Field(name, kind, value=value)
    return Field(name, kind, value=lambda run: run.taken and field.value(run.taken), help=text)


def _explained(taken: CpuProfile) -> float | None:
    known_ms = explained_ms(taken)
    return known_ms / taken.cpu_ms if known_ms is not None and taken.cpu_ms else None


def _waited_ms(taken: CpuProfile) -> float | None:
    known = [each.waited_ms for each in taken.threads.values() if each.waited_ms is not None]
    return sum(known) if known else None


RUN: Sequence[Field[Run]] = (
    Field("sampler", value=lambda run: run.facts.sampler, help="unwind, dumps, asprof or perf-map"),
    Field(
        "fallback",
        value=lambda run: run.facts.fallback,
        help="why thread dumps were taken although CPU samples were asked for",
    ),
    _of("hz", NUMBER),
    _of("samples", COUNT),
    Field(
        "lost",
        COUNT,
        value=lambda run: None if run.facts.asprof or run.taken is None else run.taken.lost,
        help="samples that the kernel dropped; null for asprof, which does not count them",
    ),
    _of(
        "ends",
        map_of(COUNT),
        lambda taken: dict(taken.ends),
        "how stacks end: root (complete), dump, rule, torn, heap, deep, none",
    ),
    Field(
        "explained",
        _ROUNDED,
        value=lambda run: _explained(run.taken) if run.taken is not None and run.facts.counts_cpu else None,
        help="share of the process's CPU time, 0 to 1",
    ),
    _of("scope", TEXT, text="cpus or threads: which perf events were opened"),
    _of("kernel_seen", FLAG),
    _of("debug_non_safepoints", FLAG, text="without it lines and innermost inlined frames are approximate"),
    _of("missing", list_of(TEXT), lambda taken: [*taken.missing]),
    _of(
        "waited_ms",
        _ROUNDED,
        _waited_ms,
        "all threads, in run queues",
    ),
    Field("event", value=lambda run: run.facts.asprof and run.facts.asprof.event, help="of async-profiler"),
    Field(
        "unit",
        value=lambda run: run.facts.asprof and run.facts.asprof.unit,
        help="of its samples: samples, bytes or ns",
    ),
    Field(
        "stays",
        list_of(TEXT),
        value=lambda run: run.facts.asprof and [*run.facts.asprof.stays],
        help="what it leaves in the JVM",
    ),
)


class Ranked(NamedTuple):
    """A method in the JSON object, with the whole that its shares are of."""

    method: Method
    own: Share
    total: Share


def _of_method(name: str, kind: Kind) -> Field[Ranked]:
    field: Field[Method] = Field(name, kind)
    return Field(name, kind, value=lambda row: field.value(row.method))


def _of_share(side: str, of: str) -> list[Field[Ranked]]:
    """`self_share`, `self_low`, `self_high`."""
    kind = Kind(NUMBER.schema, dump=lambda value: round(value, 4))

    def part(name: str, attribute: str, text: str) -> Field[Ranked]:
        return Field(f"{side}_{name}", kind, value=attrgetter(f"{of}.{attribute}"), help=text)

    return [
        part("share", "part", "of the CPU time, 0 to 1"),
        part("low", "low", "of its 95 % interval"),
        part("high", "high", "of its 95 % interval"),
    ]


METHOD: Sequence[Field[Ranked]] = (
    Field("name", value=lambda row: row.method.name),
    Field("kind", value=lambda row: row.method.kind, help="of most of its frames: compiled, inlined, interpreted, c1, stub, native, kernel"),
    *(_of_method(name, _ROUNDED) for name in ("self_ms", "total_ms")),
    *(_of_method(name, COUNT) for name in ("self_samples", "total_samples")),
    *_of_share("self", "own"),
    *_of_share("total", "total"),
    Field("pools", map_of(COUNT), value=lambda row: dict(row.method.total_pools)),
)  # fmt: skip


def ranked_methods(taken: CpuProfile, profile: Profile, top: int | None) -> list[Ranked]:
    """Those with enough samples, most CPU time of their own first."""
    rows = [method for method in profile.methods or () if method.total_samples >= FEWEST]
    return [
        Ranked(method, of_whole(method.self_ms, profile, taken), of_whole(method.total_ms, profile, taken))
        for method in rows[: top or None]
    ]


RUN_KIND = record(RUN)
