"""How often, or for how much CPU, threads stood where: dumps become weighted stacks, as data to fold, show or draw. Pure.

A stack's weight is the samples that met it, over all threads, or its CPU ms. What RUNNABLE says is not what runs: a
native read is RUNNABLE and costs nothing. A thread's CPU over the run is therefore split over those of its samples that
are RUNNABLE and not in a native that is known to wait.
"""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from opskit.analysis.frames import frame_name, pool_of, short, vm_frame
from opskit.jvm.dumps.thread_dump import Stack

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from opskit.jvm.dumps.thread_dump import Thread, ThreadDump

Root = Literal["thread", "pool"]
Explains = Literal["all", "the rest", "nothing"]  # the rest: what no other sample of the thread explains

NOT_SEEN_RUNNING = "[not seen running]"
NOT_IN_ANY_DUMP = "[not in any dump]"
_TOP = 8  # frames that tell what a native waits for
_NOBODY = None, None, None  # a thread without name, native id and Java id


class Naming(NamedTuple):
    """How frames are written: as the dump has their names, with the line."""

    full: bool = False
    lines: bool = False


class WeightedStack(NamedTuple):
    """One stack and what it weighs. `frames`: leaf first; the root frame may be a thread's or pool's name.

    `samples`: how often a thread was met there; None in profiles that count something else. `cpu_ms`: the CPU that was
    spent there, None where nothing measured it. `threads`: how many different ones; `pools`: their names folded, with
    how many each; `container`: the executor or scope of virtual threads, where the dump tells it; `idle`: they wait for
    work; `deadlocked`: the JVM itself says so of one of them.
    """

    frames: tuple[str, ...]
    state: str | None = None
    samples: int = 0
    cpu_ms: float | None = None
    threads: int | None = None
    pools: Mapping[str, int] = MappingProxyType({})
    container: str | None = None
    idle: bool = False
    deadlocked: bool = False


class Selection(NamedTuple):
    """Which stacks are wanted. `idle` False leaves out those that wait for work; `depth` keeps that many frames."""

    states: frozenset[str] = frozenset()
    include: tuple[re.Pattern[str], ...] = ()
    exclude: tuple[re.Pattern[str], ...] = ()
    idle: bool = True
    depth: int | None = None


def count(dumps: Iterable[ThreadDump], naming: Naming, *, idle: bool = True) -> list[WeightedStack]:
    """Weigh by samples alone, for dumps read without their threads' names: the fastest way.

    `idle` False: nobody wants to know who is idle.
    """
    met: Counter[Stack] = Counter()
    for dump in dumps:
        met.update(map(_stack_of, dump.threads))
    return [_weighted(stack, _Group(times), naming, None, idle=idle) for stack, times in met.items()]


def _stack_of(thread: Thread) -> Stack:
    return thread.stack


class _Group:
    """What one stack gathers."""

    __slots__ = ("cpu_ms", "deadlocked", "names", "samples")

    def __init__(self, samples: int = 0) -> None:
        self.samples = samples
        self.cpu_ms = 0.0
        self.names: dict[Hashable, str] = {}
        self.deadlocked = False


def weigh(
    dumps: Sequence[ThreadDump],
    naming: Naming,
    *,
    root: Root | None = None,
    cpu_ms: Mapping[int, float] | None = None,
    natives: Mapping[int, str] | None = None,
    on_cpu: bool = False,
) -> list[WeightedStack]:
    """Weigh by samples and, with `cpu_ms` (native id -> CPU over the run), by CPU.

    With `on_cpu`, threads without frames stand as `[GC Thread]`, and CPU that no sample explains has stacks of its own;
    without, it is in no stack (`unexplained_ms` tells it). `natives` names the threads that are in no dump.
    """
    groups: dict[tuple[str | None, Stack, str | None], _Group] = {}
    running: dict[int, list[_Group]] = {}  # native id -> a group a sample that may have used CPU
    reading: dict[int, list[_Group]] = {}  # the same, of samples that read a file or wait for a pipe: nobody can tell
    known: dict[tuple[Stack, bool], Explains] = {}
    names: dict[int, str] = dict(natives or {})
    made: dict[str, Stack] = {}

    def group_of(name: str | None, stack: Stack, container: str | None = None) -> _Group:
        above = None if root is None or name is None else (name if root == "thread" else pool_of(name)) or '""'
        found = groups.get((above, stack, container))
        if found is None:
            found = groups[above, stack, container] = _Group()
        return found

    def invented(frame: str) -> Stack:
        return made.setdefault(frame, Stack((frame,)))

    for dump in dumps:
        deadlocked = {link.thread for deadlock in dump.deadlocks for link in deadlock}
        mounting = {thread.native_id for thread in dump.threads if thread.stack.role == "mounted"}
        for thread in dump.threads:
            stack, name, native_id = thread.stack, thread.name or "", thread.native_id
            if stack.role == "mounted":
                name = f"virtual thread #{thread.java_id}"
            elif native_id is not None:
                names[native_id] = name
            if on_cpu and not stack.frames:
                stack = invented(vm_frame(name))
            group = group_of(name, stack, thread.container)
            group.samples += 1
            group.names[name, thread.java_id, native_id] = name
            if deadlocked and name in deadlocked and stack.state != "RUNNABLE":
                group.deadlocked = True
            if native_id is None:
                continue
            key = thread.stack, native_id in mounting
            explains = known.get(key) or known.setdefault(key, _cpu_of(*key))
            if explains != "nothing":
                (running if explains == "all" else reading).setdefault(native_id, []).append(group)
    for native_id, spent in (cpu_ms or {}).items():
        explained = running.get(native_id) or reading.get(native_id)
        if not explained and on_cpu and spent > 0:
            missing = NOT_SEEN_RUNNING if natives is None or native_id not in natives else NOT_IN_ANY_DUMP
            name = names.get(native_id, "?")
            explained = [group_of(name, invented(missing))]
            explained[0].names[name, None, native_id] = name
        for group in explained or ():
            group.cpu_ms += spent / len(explained or ())
    return [
        _weighted(stack, group, naming, above)._replace(
            cpu_ms=None if cpu_ms is None else group.cpu_ms, container=container
        )
        for (above, stack, container), group in groups.items()
    ]


def _is_idle(state: str | None, frames: tuple[str, ...]) -> bool:
    from opskit.analysis.idle import is_idle

    return is_idle(state, frames)


def _cpu_of(stack: Stack, carries_one_that_shows: bool) -> Explains:
    """What of a thread's CPU a sample there explains. A carrier's CPU is its mounted thread's, where that shows."""
    from opskit.analysis.idle import may_read_file, waits_in_native

    if not stack.frames:
        return "all"
    if stack.role == "carrier":
        return "nothing" if carries_one_that_shows else "all"
    if stack.state != "RUNNABLE" and stack.role != "mounted":
        return "nothing"
    top = [frame_name(frame) for frame in stack.frames[:_TOP]]
    if not waits_in_native(top):
        return "all"
    return "the rest" if may_read_file(top) else "nothing"


def _weighted(stack: Stack, group: _Group, naming: Naming, above: str | None, *, idle: bool = True) -> WeightedStack:
    plain = tuple(map(frame_name, stack.frames))
    frames = (
        tuple(frame_name(frame, full=naming.full, lines=naming.lines) for frame in stack.frames)
        if any(naming)
        else plain
    )
    pools = Counter(map(pool_of, group.names.values()))
    return WeightedStack(
        frames=frames if above is None or not frames else (*frames, above),
        state=stack.state,
        samples=group.samples,
        threads=len(group.names) or None,
        pools=dict(sorted(pools.items(), key=lambda item: (-item[1], item[0]))),
        idle=idle and not (plain and group.cpu_ms >= 0.5) and _is_idle(stack.state, plain),
        deadlocked=group.deadlocked,
    )


def cpu_over_run(
    dumps: Sequence[ThreadDump], before: Mapping[int, float] | None = None, after: Mapping[int, float] | None = None
) -> dict[int, float] | None:
    """CPU ms each thread (native id) used over the run: from the first reading to the last; None where nothing tells it.

    `before` and `after` are the kernel's readings of a live run; the dumps' own `cpu=` serve between them, and alone for
    saved dumps, of which there must be two. A thread that was born meanwhile began with 0.
    """
    if before is None and len(dumps) < 2:
        return None
    first: dict[int, float] = dict(before or {})
    last: dict[int, float] = {}
    for number, dump in enumerate(dumps):
        for thread in dump.threads:
            if thread.cpu_ms is None or thread.native_id is None or thread.stack.role == "mounted":
                continue
            last[thread.native_id] = thread.cpu_ms
            if before is None:
                first.setdefault(thread.native_id, thread.cpu_ms if number == 0 else 0.0)
    for native_id, reading in (after or {}).items():
        last[native_id] = max(reading, last.get(native_id, 0.0))
    if not last:
        return None
    used = {native_id: reading - first.get(native_id, 0.0) for native_id, reading in last.items()}
    return {native_id: spent for native_id, spent in used.items() if spent >= 0}  # less: another thread by now


def select(stacks: Iterable[WeightedStack], selection: Selection) -> list[WeightedStack]:
    """The wanted stacks; those that are the same to the wanted depth and state are one."""
    wanted = [stack for stack in stacks if _is_wanted(stack, selection)]
    if selection.depth is not None:
        wanted = [stack._replace(frames=stack.frames[: selection.depth]) for stack in wanted]
    return merge(wanted, lambda stack: (stack.frames, stack.state, stack.idle, stack.container))


def _is_wanted(stack: WeightedStack, selection: Selection) -> bool:
    if selection.states and stack.state not in selection.states:
        return False
    if stack.idle and not selection.idle and not stack.deadlocked:
        return False
    if selection.include and not _matches(stack, selection.include):
        return False
    return not (selection.exclude and _matches(stack, selection.exclude))


def _matches(stack: WeightedStack, patterns: Iterable[re.Pattern[str]]) -> bool:
    """Whether a frame matches, as the dump names it or as the output does."""
    return any(pattern.search(frame) or pattern.search(short(frame)) for pattern in patterns for frame in stack.frames)


def merge(stacks: Iterable[WeightedStack], key: Callable[[WeightedStack], Hashable]) -> list[WeightedStack]:
    """Add up the stacks of the same key; the first of them gives frames and state."""
    merged: dict[Hashable, WeightedStack] = {}
    for stack in stacks:
        at = key(stack)
        other = merged.get(at)
        merged[at] = stack if other is None else _sum(other, stack)
    return list(merged.values())


def _sum(one: WeightedStack, other: WeightedStack) -> WeightedStack:
    pools = Counter(one.pools)
    pools.update(other.pools)
    return one._replace(
        samples=one.samples + other.samples,
        cpu_ms=None if one.cpu_ms is None and other.cpu_ms is None else (one.cpu_ms or 0) + (other.cpu_ms or 0),
        threads=None if one.threads is None and other.threads is None else (one.threads or 0) + (other.threads or 0),
        pools=dict(pools),
        deadlocked=one.deadlocked or other.deadlocked,
    )


def lines_by_weight(
    stacks: Iterable[WeightedStack], write: Callable[[WeightedStack], str], *, on_cpu: bool
) -> list[tuple[int, str]]:
    """(weight, stack as text): most first, ties by the text's bytes. Stacks without frames, and those of no weight, are not."""
    totals: dict[str, float] = {}
    for stack in stacks:
        if stack.frames:
            text = write(stack)
            totals[text] = totals.get(text, 0) + ((stack.cpu_ms or 0) if on_cpu else stack.samples)
    rows = [(round(weight), text) for text, weight in totals.items() if round(weight) > 0]
    rows.sort(key=lambda row: (-row[0], row[1].encode("utf-8", "surrogateescape")))
    return rows


def hottest_first(stacks: Iterable[WeightedStack]) -> list[WeightedStack]:
    """Deadlocked ones, then those that used most CPU, then those that were met most often, the idle ones last."""
    return sorted(
        stacks,
        key=lambda stack: (not stack.deadlocked, stack.idle, -round(stack.cpu_ms or 0), -stack.samples, stack.frames),
    )


def heaviest_first(stacks: Iterable[WeightedStack], on_cpu: bool) -> list[WeightedStack]:
    """Most CPU, or most samples, first."""
    return sorted(
        stacks, key=lambda stack: (-((stack.cpu_ms or 0) if on_cpu else stack.samples), stack.frames, stack.state or "")
    )


def thread_count(dumps: Iterable[ThreadDump]) -> int | None:
    """How many different threads were met; None where the dumps were read without what tells them apart."""
    met = {
        (thread.name, thread.java_id, thread.native_id)
        for dump in dumps
        for thread in dump.threads
        if thread[1:4] != _NOBODY
    }
    return len(met) or None
