"""Weigh the stacks of thread dumps by samples, CPU time and time off the CPUs; choose, merge and order weighted stacks. Pure.

A RUNNABLE thread may use no CPU (a read from a socket). A thread's CPU time is therefore split over its samples that
are RUNNABLE and whose top frame is not a native method known to wait; its other time over the remaining ones.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal, get_args

from opskit.analysis.jpmp.frames import frame_name, pool_of, short, vm_frame
from opskit.jvm.dumps.thread_dump import Stack
from opskit.jvm.profiles import WeightedStack
from opskit.records import NamedTuple

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from opskit.jvm.dumps.thread_dump import ThreadDump

Root = Literal["thread", "pool"]
Weight = Literal["samples", "cpu_ms", "off_cpu_ms"]
# How well a sample explains CPU time of its thread: first those that run, then reads that may be of a file, then waits that
# begin and end with work of their own. A carrier leaves it to the virtual thread that the dump shows.
Explains = Literal["all", "the rest", "the last", "nothing", "carries"]
_WAITING: tuple[Explains, ...] = ("the rest", "the last", "nothing")

NOT_SEEN_RUNNING, NOT_SEEN_WAITING = "[not seen running]", "[not seen waiting]"
NOT_IN_ANY_DUMP = "[not in any dump]"
_TOP = 8  # frames that decide what a native method waits for


class Naming(NamedTuple):
    """How frames are written: with full names, with file and line."""

    full: bool = False
    lines: bool = False


SHORT_NAMES = Naming()


class OffCpu(NamedTuple):
    """A thread's time in which it did not run, in ms: it waited for something, or in the run queue for a CPU."""

    blocked_ms: float
    queued_ms: float


class _Group:
    """The weights of one stack, and its threads."""

    __slots__ = ("cpu_ms", "deadlocked", "names", "off_cpu_ms", "samples")

    def __init__(self, samples: int = 0) -> None:
        self.samples, self.cpu_ms, self.off_cpu_ms, self.deadlocked = samples, 0.0, 0.0, False
        self.names: dict[Hashable, str] = {}


def count(dumps: Iterable[ThreadDump], naming: Naming, *, idle: bool = True) -> list[WeightedStack]:
    """Weigh by samples only, for dumps read without thread names: the fastest way. `idle` False: leave idle unset."""
    met: Counter[Stack] = Counter()
    for dump in dumps:
        met.update([thread.stack for thread in dump.threads])
    return [_weighted(stack, _Group(times), naming, None, idle=idle) for stack, times in met.items()]


def weigh(
    dumps: Sequence[ThreadDump],
    naming: Naming,
    *,
    root: Root | None = None,
    cpu_ms: Mapping[int, float] | None = None,
    natives: Mapping[int, str] | None = None,
    on_cpu: bool = False,
    off_cpu: Mapping[int, OffCpu] | None = None,
) -> list[WeightedStack]:
    """Weigh by samples and, with `cpu_ms` (native id -> CPU time over the run), by CPU time; with `off_cpu` by the other time.

    With `on_cpu`, threads without frames become `[GC Thread]`, and CPU time that no sample explains gets its own stacks.
    """
    weigher = _Weigher(root, natives, on_cpu=on_cpu)
    for dump in dumps:
        weigher.add(dump)
    for native_id, spent in (cpu_ms or {}).items():
        weigher.spend(native_id, spent)
    for native_id, waited in (off_cpu or {}).items():
        weigher.wait(native_id, waited)
    return [
        _weighted(stack, group, naming, above)._replace(
            cpu_ms=None if cpu_ms is None else group.cpu_ms,
            off_cpu_ms=None if off_cpu is None else group.off_cpu_ms,
            container=container,
        )
        for (above, stack, container), group in weigher.groups.items()
    ]


class _Weigher:
    """Groups the threads of all dumps by root frame, stack and container."""

    def __init__(self, root: Root | None, natives: Mapping[int, str] | None, *, on_cpu: bool) -> None:
        self.groups: dict[tuple[str | None, Stack, str | None], _Group] = {}
        self._root, self._natives, self._on_cpu = root, natives, on_cpu
        # Native id -> the group of each sample, by how it explains CPU time.
        self._seen: dict[Explains, dict[int, list[_Group]]] = {each: {} for each in get_args(Explains)}
        self._known: dict[tuple[Stack, bool], Explains] = {}
        self._names: dict[int, str] = dict(natives or {})
        self._invented: dict[str, Stack] = {}

    def add(self, dump: ThreadDump) -> None:
        deadlocked = {link.thread for deadlock in dump.deadlocks for link in deadlock}
        mounting = {thread.native_id for thread in dump.threads if thread.stack.role == "mounted"}
        for thread in dump.threads:
            stack, name, native_id = thread.stack, thread.name or "", thread.native_id
            if stack.role == "mounted":
                name = f"virtual thread #{thread.java_id}"
            elif native_id is not None:
                self._names[native_id] = name
            if self._on_cpu and not stack.frames:
                stack = self._invent(vm_frame(name))
            group = self._group_of(name, stack, thread.container)
            group.samples += 1
            group.names[name, thread.java_id, native_id] = name
            if deadlocked and name in deadlocked and stack.state != "RUNNABLE":
                group.deadlocked = True
            if native_id is None:
                continue
            key = thread.stack, native_id in mounting
            explains = self._known.get(key) or self._known.setdefault(key, _cpu_of(*key))
            self._seen[explains].setdefault(native_id, []).append(group)

    def spend(self, native_id: int, cpu_ms: float) -> None:
        """Split a thread's CPU time over the samples that explain it."""
        explained = self._seen["all"].get(native_id) or self._seen["the rest"].get(native_id)
        if not explained and self._on_cpu and cpu_ms > 0:
            missing = NOT_IN_ANY_DUMP if self._natives and native_id in self._natives else NOT_SEEN_RUNNING
            explained = self._seen["the last"].get(native_id) or [self._unseen(native_id, missing)]
        for group in explained or ():
            group.cpu_ms += cpu_ms / len(explained or ())

    def wait(self, native_id: int, off: OffCpu) -> None:
        """Split a Java thread's time off the CPUs: time in a run queue over samples that run, the other over those that wait."""
        running = self._seen["all"].get(native_id, [])
        waiting = [group for each in _WAITING for group in self._seen[each].get(native_id, [])]
        if not (running or waiting):
            return
        if off.blocked_ms > 0 and not waiting:
            waiting = [self._unseen(native_id, NOT_SEEN_WAITING)]
        for groups, spent in ((waiting, off.blocked_ms), (running or waiting, off.queued_ms)):
            for group in groups:
                group.off_cpu_ms += spent / len(groups)

    def _unseen(self, native_id: int, frame: str) -> _Group:
        """A group for time that no sample of the thread explains."""
        name = self._names.get(native_id, "?")
        group = self._group_of(name, self._invent(frame))
        group.names[name, None, native_id] = name
        return group

    def _group_of(self, name: str | None, stack: Stack, container: str | None = None) -> _Group:
        root = self._root
        above = None if root is None or name is None else (name if root == "thread" else pool_of(name)) or '""'
        key = above, stack, container
        return self.groups.get(key) or self.groups.setdefault(key, _Group())

    def _invent(self, frame: str) -> Stack:
        return self._invented.setdefault(frame, Stack((frame,)))


def _is_idle(state: str | None, frames: tuple[str, ...]) -> bool:
    from opskit.analysis.jpmp.idle import is_idle  # not needed by -f text

    return is_idle(state, frames)


def _cpu_of(stack: Stack, carries_a_visible_thread: bool) -> Explains:
    """How much of a thread's CPU time a sample explains. A carrier's CPU is its mounted thread's, if the dump shows that."""
    from opskit.analysis.jpmp.idle import may_read_file, parks_or_selects, waits_in_native

    if not stack.frames or (stack.role == "carrier" and not carries_a_visible_thread):
        return "all"
    if stack.role == "carrier":
        return "carries"
    top = [frame_name(frame) for frame in stack.frames[:_TOP]]
    last: Explains = "the last" if parks_or_selects(top) else "nothing"
    if stack.state != "RUNNABLE" and stack.role != "mounted":
        return last
    if not waits_in_native(top):
        return "all"
    return "the rest" if may_read_file(top) else last


def _weighted(stack: Stack, group: _Group, naming: Naming, above: str | None, *, idle: bool = True) -> WeightedStack:
    plain = frames = tuple(map(frame_name, stack.frames))
    if any(naming):
        frames = tuple(frame_name(frame, full=naming.full, lines=naming.lines) for frame in stack.frames)
    pools = Counter(map(pool_of, group.names.values()))
    return WeightedStack(
        frames=frames if above is None or not frames else (*frames, above),
        state=stack.state,
        samples=group.samples,
        threads=len(group.names) or None,
        pools=dict(sorted(pools.items(), key=lambda item: (-item[1], item[0]))),
        # A mounted virtual thread that waits keeps its carrier from running others.
        idle=idle and not (plain and group.cpu_ms >= 0.5) and stack.role != "mounted" and _is_idle(stack.state, plain),
        deadlocked=group.deadlocked,
    )


def cpu_over_run(
    dumps: Sequence[ThreadDump], before: Mapping[int, float] | None = None, after: Mapping[int, float] | None = None
) -> dict[int, float] | None:
    """CPU time (ms) of each thread (native id) from the first reading to the last; None without two readings.

    `before`, `after`: the kernel's readings around a live run. A thread born during the run began with 0.
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
            if before is None:  # a thread that a cut-off first dump lacks may be old
                first.setdefault(thread.native_id, thread.cpu_ms if number == 0 or dumps[0].cut_off else 0.0)
    for native_id, reading in (after or {}).items():
        last[native_id] = max(reading, last.get(native_id, 0.0))
    if not last:
        return None
    used = {native_id: reading - first.get(native_id, 0.0) for native_id, reading in last.items()}
    return {native_id: spent for native_id, spent in used.items() if spent >= 0}  # < 0: the id was used again


def thread_count(dumps: Iterable[ThreadDump]) -> int | None:
    """How many different threads are in the dumps; None if they were read without names and ids."""
    met = {thread[1:4] for dump in dumps for thread in dump.threads}  # name, Java id, native id
    return len(met - {(None, None, None)}) or None


class Selection(NamedTuple):
    """Which stacks are wanted. `idle` False drops stacks that wait for work; `depth` keeps that many frames."""

    states: frozenset[str] = frozenset()
    include: tuple[re.Pattern[str], ...] = ()
    exclude: tuple[re.Pattern[str], ...] = ()
    idle: bool = True
    depth: int | None = None


def select(stacks: Iterable[WeightedStack], selection: Selection) -> list[WeightedStack]:
    """Keep the wanted stacks; merge those that are equal up to the wanted depth."""
    wanted = (stack for stack in stacks if _is_wanted(stack, selection))
    if selection.depth is not None:
        depth = selection.depth
        wanted = (stack._replace(frames=stack.frames[:depth], kinds=stack.kinds[:depth]) for stack in wanted)
    return merge(wanted, lambda stack: (stack.frames, stack.state, stack.idle, stack.container))


def _is_wanted(stack: WeightedStack, selection: Selection) -> bool:
    return not (
        (selection.states and stack.state not in selection.states)
        or (stack.idle and not selection.idle and not stack.deadlocked)
        or (selection.include and not _matches(stack, selection.include))
        or (selection.exclude and _matches(stack, selection.exclude))
    )


def _matches(stack: WeightedStack, patterns: Iterable[re.Pattern[str]]) -> bool:
    """Whether a frame matches, by its name in the dump or in the output."""
    return any(pattern.search(frame) or pattern.search(short(frame)) for pattern in patterns for frame in stack.frames)


def merge(stacks: Iterable[WeightedStack], key: Callable[[WeightedStack], Hashable]) -> list[WeightedStack]:
    """Add up the stacks of the same key; the first of them gives frames and state."""
    merged: dict[Hashable, WeightedStack] = {}
    for stack in stacks:
        at = key(stack)
        merged[at] = _sum(merged[at], stack) if at in merged else stack
    return list(merged.values())


def _sum(one: WeightedStack, other: WeightedStack) -> WeightedStack:
    pools = Counter(one.pools)
    pools.update(other.pools)
    return one._replace(
        samples=one.samples + other.samples,
        cpu_ms=_added(one.cpu_ms, other.cpu_ms),
        off_cpu_ms=_added(one.off_cpu_ms, other.off_cpu_ms),
        threads=None if one.threads is None and other.threads is None else (one.threads or 0) + (other.threads or 0),
        pools=dict(pools),
        deadlocked=one.deadlocked or other.deadlocked,
    )


def _added(one: float | None, other: float | None) -> float | None:
    return None if one is None and other is None else (one or 0) + (other or 0)


def weight_of(stack: WeightedStack, by: Weight) -> float:
    """The weight: samples, or ms on or off the CPUs."""
    return getattr(stack, by) or 0


def with_weight(stack: WeightedStack, by: Weight, weight: float) -> WeightedStack:
    """The stack with this weight."""
    if by == "samples":
        return stack._replace(samples=round(weight))
    return stack._replace(cpu_ms=weight) if by == "cpu_ms" else stack._replace(off_cpu_ms=weight)


def lines_by_weight(
    stacks: Iterable[WeightedStack], write: Callable[[WeightedStack], str], by: Weight = "samples"
) -> list[tuple[int, str]]:
    """(weight, stack as text), heaviest first, ties by bytes. Stacks without frames or weight are left out."""
    totals: dict[str, float] = {}
    for stack in stacks:
        if stack.frames:
            text = write(stack)
            totals[text] = totals.get(text, 0) + weight_of(stack, by)
    rows = [(round(weight), text) for text, weight in totals.items() if round(weight) > 0]
    rows.sort(key=lambda row: (-row[0], row[1].encode("utf-8", "surrogateescape")))
    return rows


def hottest_first(stacks: Iterable[WeightedStack], by: Weight = "samples") -> list[WeightedStack]:
    """Deadlocked stacks, then by CPU time (or time off the CPUs, if that is wanted), then by samples; idle stacks last."""
    of = "off_cpu_ms" if by == "off_cpu_ms" else "cpu_ms"

    def key(stack: WeightedStack) -> tuple[object, ...]:
        return not stack.deadlocked, stack.idle, -round(getattr(stack, of) or 0), -stack.samples, stack.frames

    return sorted(stacks, key=key)


def heaviest_first(stacks: Iterable[WeightedStack], by: Weight) -> list[WeightedStack]:
    """Order by the weight."""
    return sorted(stacks, key=lambda stack: (-weight_of(stack, by), stack.frames, stack.state or ""))
