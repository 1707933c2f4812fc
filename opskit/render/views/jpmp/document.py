"""The fields of `opskit jpmp`: the tables of stacks and locks, and the JSON object."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

from opskit.analysis.jpmp.frames import short
from opskit.analysis.jpmp.idle import returns_often
from opskit.analysis.jpmp.judge import lock_name, party_name
from opskit.analysis.jpmp.load import percents
from opskit.analysis.jpmp.stacks import thread_count
from opskit.quantities import listed
from opskit.records import NamedTuple
from opskit.render.fields import COUNT, FLAG, ID, NUMBER, TEXT, Field, Kind, list_of, map_of, record, records, to_object
from opskit.render.views.jpmp import pools, sentences
from opskit.render.views.jpmp.cpu_profile import METHOD, RUN_KIND, Run, ranked_methods
from opskit.render.views.jpmp.stack_listing import share_of, whose

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.analysis.jpmp.judge import Locks, Profile, Weighing
    from opskit.analysis.jpmp.locks import ContendedLock, Deadlock, Link, Party
    from opskit.analysis.jpmp.pools import Pool
    from opskit.analysis.jpmp.stacks import Weight
    from opskit.analysis.jpmp.virtual_waits import StackWaits
    from opskit.collect.jpmp.collect import Facts, Sampled
    from opskit.collect.jpmp.load import Load
    from opskit.jvm.dumps.thread_dump import Waits
    from opskit.jvm.profiles import WeightedStack
    from opskit.render.views.jpmp.cpu_profile import Ranked

_SHOWN_NAMES, _SHOWN_FRAMES = 3, 8
_ROUNDED = Kind(NUMBER.schema, right=True, dump=lambda value: round(value, 3))


class Shown(NamedTuple):
    """What a JSON document is made of. `rows`: the stacks that -n leaves; None with --locks, as `locks` without it."""

    facts: Facts
    how: Weighing | None = None
    profile: Profile | None = None
    rows: Sequence[WeightedStack] | None = None
    locks: Locks | None = None
    top: int | None = None


def _of_live(name: str, kind: Kind, value: Callable[[Sampled], object] | None = None, text: str = "") -> Field[Shown]:
    """A value of a live run: null for files."""
    field: Field[Sampled] = Field(name, kind, value=value)
    return Field(name, kind, value=lambda shown: shown.facts.live and field.value(shown.facts.live), help=text)


STACK: Sequence[Field[WeightedStack]] = (
    Field("frames", list_of(TEXT), help="leaf first; empty for a VM thread"),
    Field("samples", COUNT, help="how often threads were seen there"),
    Field("cpu_ms", _ROUNDED),
    Field("off_cpu_ms", _ROUNDED, help="time in which its threads did not run, with --offcpu"),
    Field("kinds", list_of(TEXT), value=lambda stack: [*stack.kinds] or None,
          help="of each frame: interpreted, c1, compiled, inlined, stub, native, kernel, or label (a thread, a remark)"),
    Field("state", help="a java.lang.Thread.State"),
    Field("threads", COUNT, help="different threads"),
    Field("pools", map_of(COUNT), value=lambda stack: dict(stack.pools), help="thread names without numbers"),
    Field("container", help="executor or scope of virtual threads; in a CPU profile their carriers"),
    Field("idle", FLAG, help="waits for work"),
    Field("deadlocked", FLAG),
)  # fmt: skip
_WAITS: Sequence[Field[Waits]] = (*map(Field, ("thread", "lock_class", "address", "owner")),)
_PARTY: Sequence[Field[Party]] = (
    Field("name"),
    *(Field(name, ID) for name in ("java_id", "native_id")),
    Field("state"),
    Field("virtual", FLAG),
    Field("frames", list_of(TEXT)),
)
_LINK: Sequence[Field[Link]] = (
    Field("thread", record(_PARTY)),
    Field("lock_class", value=lambda link: link.lock[0]),
    Field("address", value=lambda link: link.lock[1]),
    Field("owner", record(_PARTY)),
)
_LOCK: Sequence[Field[ContendedLock]] = (
    Field("class", value=lambda lock: lock.class_name),
    Field("address"),
    Field("kind", help="monitor or synchronizer"),
    Field("waiters", records(_PARTY)),
    Field("waiter_count", COUNT, value=lambda lock: len(lock.waiters)),
    Field("held_up", COUNT, help="the waiters, and the threads that wait for locks of the waiters"),
    Field("owner", record(_PARTY)),
    Field("owner_unknown", help="why owner is null"),
    Field("chain", records(_LINK), help="what the owner waits for, and so on"),
    Field("samples", COUNT, help="dumps in which it is contended"),
    Field("dumps", COUNT, help="of so many"),
    Field("waited_at_least_s", NUMBER),
)
_VIRTUAL_WAITS: Sequence[Field[StackWaits]] = (
    Field("method", help="that acquires a lock"),
    Field("caller", help="the application's frame that calls it"),
    Field("waiters", records(_PARTY)),
    Field("waiter_count", COUNT, value=lambda group: len(group.waiters)),
    Field("samples", COUNT, help="dumps in which threads wait there"),
    Field("dumps", COUNT),
    Field("lasting", COUNT, help="threads that wait there in all dumps"),
)
_FOUND_DEADLOCK: Sequence[Field[Deadlock]] = (
    Field("reported", FLAG, help="by the JVM itself"),
    Field("links", records(_LINK)),
)
_DEADLOCKS = Kind(
    {"type": "array", "items": {"anyOf": [records(_WAITS).schema, record(_FOUND_DEADLOCK).schema]}},
    dump=lambda found: [
        to_object(_FOUND_DEADLOCK, one) if hasattr(one, "links") else [to_object(_WAITS, link) for link in one]
        for one in found
    ],
)
_SAMPLE: Sequence[Field[Any]] = (
    Field("at_s", _ROUNDED, value=lambda sample: sample[0], help="seconds since the run began"),
    Field("stopped_ms", _ROUNDED, value=lambda sample: sample[1]),
)


def _pools(shown: Shown) -> Sequence[Pool] | None:
    judged = shown.profile or shown.locks
    return None if judged is None or judged.pools is None else judged.pools.pools


def _load(shown: Shown) -> Load | None:
    return shown.facts.load if shown.facts.live is None else shown.facts.live.load


def _methods(shown: Shown) -> Sequence[Ranked] | None:
    taken = shown.facts.cpu
    if taken is None or shown.profile is None or shown.profile.methods is None:
        return None
    return ranked_methods(taken, shown.profile, shown.top)


def _run(shown: Shown) -> Run | None:
    return None if shown.facts.sampler is None else Run(shown.facts, shown.facts.cpu)


DOCUMENT: Sequence[Field[Shown]] = (
    Field("stacks", records(STACK), value=lambda shown: shown.rows),
    Field("weight", value=lambda shown: shown.how and shown.how.by, help="samples, cpu_ms or off_cpu_ms"),
    Field("methods", records(METHOD), value=_methods, help="of a CPU profile, with at least 10 samples"),
    Field("profiler", RUN_KIND, value=_run, help="how a live process was sampled"),
    Field("sample_count", COUNT, value=lambda shown: len(shown.facts.dumps) or None, help="the number of dumps"),
    Field("threads", COUNT, value=lambda shown: shown.profile and thread_count(shown.facts.dumps)),
    Field("cpu_ms", _ROUNDED, value=lambda shown: shown.profile and shown.profile.cpu_ms),
    Field("locks", records(_LOCK), value=lambda shown: shown.locks and shown.locks.contention.locks[: shown.top or None]),
    Field("deadlocks", _DEADLOCKS, value=lambda shown: shown.profile.deadlocks if shown.profile else shown.locks and shown.locks.contention.deadlocks),
    Field("pools", records(pools.POOL), value=_pools, help="what their threads wait for"),
    Field("virtual_waits", records(_VIRTUAL_WAITS), value=lambda shown: shown.locks and shown.locks.by_stack,
          help="virtual threads that wait for locks which the JVM does not name (JDK 21 to 24)"),
    Field("virtual_unknown", value=lambda shown: shown.locks and shown.locks.unseen,
          help="why it is unknown whether virtual threads wait for locks"),
    Field("dialects", list_of(TEXT), value=lambda shown: sentences.dialects(shown.facts)),
    _of_live("samples", records(_SAMPLE), lambda live: zip(live.times_s, repeat(None) if live.replayed else live.stops_ms), "of a live run"),
    _of_live("interval_s", NUMBER, lambda live: live.mean_interval_s and round(live.mean_interval_s, 4)),
    Field("duration_s", _ROUNDED, value=lambda shown: (of := shown.facts.cpu or shown.facts.live) and of.elapsed_s),
    _of_live("late_samples", COUNT, lambda live: live.late),
    *(_of_live(name, _ROUNDED) for name in ("stopped_ms", "stopped_percent")),
    _of_live("stopped_by", TEXT, lambda live: None if live.replayed else "wall time" if live.stops_are_bounds else "hsperfdata"),
    _of_live("throttled_percent", _ROUNDED),
    Field("gc_cpu_percent", _ROUNDED, value=lambda shown: percents(_load(shown)).collecting, help="garbage collection, of the JVM's CPU time"),
    Field("cpu_wait_percent", _ROUNDED, value=lambda shown: percents(_load(shown)).waiting, help="of the time in which threads want to run"),
    Field("ended", value=lambda shown: shown.facts.ended, help="interrupted, exited, deadlock, long stop or failed; null: as planned"),
)  # fmt: skip


def stack_columns(
    stacks: Sequence[WeightedStack], *, by: Weight, full_names: bool, counted: str = "samples"
) -> list[Field[Any]]:
    """The table's columns; shares are of all `stacks`. `counted`: what samples count."""
    off_ms = sum(stack.off_cpu_ms or 0.0 for stack in stacks)
    samples = sum(stack.samples for stack in stacks)
    known = [stack.cpu_ms for stack in stacks if stack.cpu_ms is not None]
    cpu_ms = sum(known)

    def frames(stack: WeightedStack) -> tuple[str, ...]:
        shown = stack.frames if full_names else tuple(map(short, stack.frames))
        threads = whose(stack)
        if by == "cpu_ms" and stack.frames and returns_often(stack.frames[0]):
            shown = (f"{shown[0]} ({sentences.SEEN_AT_RETURNS})", *shown[1:])
        return (f"{threads}:", *shown) if threads else shown

    by_samples: list[Field[Any]] = [
        Field("samples", COUNT, counted),
        Field("share", TEXT, "share", lambda stack: share_of(stack.samples, samples), right=True),
        Field("state", TEXT, "state", lambda stack: "DEADLOCK" if stack.deadlocked else stack.state or "-"),
    ]
    by_cpu: list[Field[Any]] = [
        Field("cpu_ms", COUNT, "CPU ms"),
        Field("cpu_share", TEXT, "CPU share", lambda stack: share_of(stack.cpu_ms, cpu_ms), right=True),
    ]
    by_off: list[Field[Any]] = [
        Field("off_cpu_ms", COUNT, "ms off CPU"),
        Field("off_share", TEXT, "share", lambda stack: share_of(stack.off_cpu_ms, off_ms), right=True),
    ]
    weights = by_samples if not known else [*by_cpu, *by_samples] if by == "cpu_ms" else [*by_samples, *by_cpu]
    return [*(by_off if by == "off_cpu_ms" else ()), *weights, Field("stack", TEXT, "stack", frames)]


def owner_words(lock: ContendedLock) -> str:
    """The owner's name; `readers; …` or `unknown: …`."""
    if lock.owner is not None:
        return party_name(lock.owner)
    unknown = lock.owner_unknown or ""
    return unknown.removeprefix("held by ") if unknown.startswith("held by ") else f"unknown: {unknown}"


def _owner_stack(lock: ContendedLock) -> str:
    return listed([*map(short, lock.owner.frames)], _SHOWN_FRAMES, ",") if lock.owner else ""


LOCK_COLUMNS: Sequence[Field[ContendedLock]] = (
    Field("held_up", COUNT, "held up"),
    Field("waiter_count", COUNT, "waiters", lambda lock: len(lock.waiters)),
    Field("samples", COUNT, "samples"),
    Field(
        "waited_at_least_s",
        NUMBER,
        "waited at least",
        show=lambda value: f"{value:.1f} s" if value is not None and value >= 0.05 else "",
    ),
    Field("lock", TEXT, "lock", lambda lock: lock_name(lock.key)),
    Field("owner", TEXT, "held by", owner_words),
    Field("owner_stack", TEXT, "holder stack", _owner_stack, below=lambda lock: lock_name(lock.key)),
    Field(
        "waiters",
        TEXT,
        "who waits",
        lambda lock: listed([*map(party_name, lock.waiters)], _SHOWN_NAMES),
        below=lambda lock: lock_name(lock.key),
    ),
)


def deadlock_line(deadlock: Deadlock) -> str:
    """The sentence about one deadlock of the stacks."""
    unreported = "" if deadlock.reported else ", which the dump does not report"
    waits = [
        (party_name(link.thread), lock_name(link.lock), link.owner and party_name(link.owner))
        for link in deadlock.links
    ]
    return sentences.deadlock(waits, unreported)
