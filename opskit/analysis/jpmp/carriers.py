"""Find pinned virtual threads: they wait, and their carriers with them, so that no other virtual thread runs there. Pure.

A monitor pins before JDK 24, a native frame or a class initializer in every JDK. What shows a pinned thread:
VirtualThread.parkOnCarrierThread or Object.wait in the stack of a mounted one; and a carrier that has the same virtual thread
in every dump and uses no CPU time (ordinary dumps of JDK 21 to 23 have no stack of it; one that enters a monitor has no mark).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Optional

from opskit.analysis.jpmp.frames import frame_name
from opskit.analysis.jpmp.libraries import application_frame
from opskit.analysis.jpmp.stacks import cpu_over_run
from opskit.jvm.dumps.dump_to_file import FIRST_WITHOUT_PINNING_MONITORS
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opskit.analysis.finding import Severity
    from opskit.collect.jpmp.collect import Facts
    from opskit.jvm.dumps.thread_dump import Stack, Thread, ThreadDump

_PARKS_MOUNTED = "java.lang.VirtualThread.parkOnCarrierThread"
_WAITS = ("java.lang.Object.wait0", "java.lang.Object.wait")
_TOP = 4  # frames next to the leaf
_ENOUGH_DUMPS = 3  # fewer may show a moment
_MOST_CPU_SHARE = 0.02  # of the run, of a carrier that only waits
_INITIALIZER, _LAMBDA = ".<clinit>", "ambda$"
FROM = " (from "  # after it the caller of a frame


class Pins(NamedTuple):
    """`pinned` of `carriers` are pinned in the last dump that shows any. `by`: application frames and how many each pins.

    Of `dumps`, all carriers are pinned in `dumps_of_all`; `lasting` carriers have the same pinned thread in all dumps.
    """

    pinned: int
    carriers: int
    by: tuple[tuple[str, int], ...]
    dumps: int
    dumps_of_all: int
    lasting: int

    def reason(self, java_major: int | None) -> str:
        """What pins them."""
        if all(frame.endswith(_INITIALIZER) for frame, _ in self.by):
            return "they wait in a class initializer"
        if java_major is None or java_major >= FIRST_WITHOUT_PINNING_MONITORS:
            return "a native frame or class initializer in their stack pins them"
        return "before JDK 24 `synchronized` pins: use a ReentrantLock there, or run JDK 24 or later"


_Pair = tuple[Optional[int], Optional[int]]  # a carrier and its virtual thread, by their Java ids


class _Look(NamedTuple):
    """One dump: the number of carriers, and the pinned threads by their Java ids."""

    carriers: int
    pinned: Mapping[int | None, Stack | None]


def pins(facts: Facts) -> Pins | None:
    """The pinned virtual threads of all dumps; None where there are none."""
    live = facts.live
    stacks = {
        thread.java_id: thread.stack
        for dump in (live.virtual if live else ())
        for thread in dump.threads
        if thread.virtual
    }
    stuck = _stuck(facts)
    looks = [_look(dump, stacks, stuck, None if live is None else live.parallelism) for dump in facts.dumps]
    seen = [look for look in looks if look.pinned]
    if not seen:
        return None
    last = seen[-1]
    by = Counter(_culprit(thread_id, stack) for thread_id, stack in last.pinned.items())
    return Pins(
        len(last.pinned),
        last.carriers,
        tuple(by.most_common()),
        len(looks),
        sum(len(look.pinned) >= look.carriers for look in seen),
        len(set.intersection(*(set(look.pinned) for look in looks))),
    )


def severity(found: Pins) -> Severity | None:
    """Error: nothing else runs, all the time. Warning: half of the time, or half of the carriers. None: a moment."""
    dumps, of_all = found.dumps, found.dumps_of_all
    if dumps >= _ENOUGH_DUMPS:
        if of_all == dumps and found.lasting >= found.carriers:
            return "error"
        if 2 * of_all >= dumps or 2 * found.lasting >= found.carriers:
            return "warning"
        return "note" if found.lasting else None
    return "note" if of_all == dumps else None


def _look(
    dump: ThreadDump, stacks: Mapping[int | None, Stack], stuck: Collection[int | None], parallelism: int | None
) -> _Look:
    carriers = [thread for thread in dump.threads if thread.stack.role == "carrier"]
    pinned: dict[int | None, Stack | None] = {}
    for carrier in carriers:
        stack = stacks.get(carrier.mount_id)
        if carrier.mount_id in stuck or (stack is not None and is_pinned(stack)):
            pinned[carrier.mount_id] = stack
    for thread in dump.threads:
        if thread.stack.role == "mounted" and (
            thread.java_id in stuck or is_pinned(thread.stack) or _waits_pinned(thread)
        ):
            pinned[thread.java_id] = thread.stack
    if not pinned:
        return _Look(0, {})
    pools = {_pool(carrier) for carrier in carriers}
    workers = sum(
        not thread.virtual and thread.stack.role != "mounted" and _pool(thread) in pools for thread in dump.threads
    )
    return _Look(max(workers, parallelism or 0, len(pinned)), pinned)


def _pool(thread: Thread) -> str:
    """`ForkJoinPool-1-worker` of `ForkJoinPool-1-worker-3`."""
    return (thread.name or "").rpartition("-")[0]


def is_pinned(stack: Stack) -> bool:
    """Whether a mounted virtual thread waits without giving up its carrier."""
    top = [frame_name(frame) for frame in stack.frames[:_TOP]]
    return stack.role == "mounted" and (_PARKS_MOUNTED in top or top[:1] == [_WAITS[0]] or top[:1] == [_WAITS[1]])


def _waits_pinned(thread: Thread) -> bool:
    """Whether a mounted thread waits to enter a monitor, by its lock lines."""
    return thread.stack.state == "BLOCKED" and any(lock.action == "waiting to lock" for lock in thread.locks)


def _stuck(facts: Facts) -> set[int | None]:
    """The virtual threads that one carrier has in every one of enough dumps without using CPU time."""
    if len(facts.dumps) < _ENOUGH_DUMPS:
        return set()
    kept: dict[_Pair, Thread] | None = None
    for dump in facts.dumps:
        found: dict[_Pair, Thread] = {
            (thread.java_id, thread.mount_id): thread
            for thread in dump.threads
            if thread.stack.role == "carrier" and thread.mount_id is not None
        }
        kept = found if kept is None else {pair: kept[pair] for pair in kept.keys() & found.keys()}
        if not kept:
            return set()
    live = facts.live
    readings = (None, None) if live is None else (live.cpu_before, live.cpu_after)
    cpu_ms = cpu_over_run(facts.dumps, *readings) or {}
    last = {thread.java_id: thread for thread in facts.dumps[-1].threads if thread.stack.role == "carrier"}
    stuck = set()
    for (carrier_id, thread_id), first in (kept or {}).items():
        length_s = live.elapsed_s if live else _between(first, last[carrier_id])
        used = cpu_ms.get(first.native_id or 0)
        if length_s and used is not None and used <= _MOST_CPU_SHARE * 1000 * length_s:
            stuck.add(thread_id)
    return stuck


def _between(first: Thread, last: Thread) -> float | None:
    return None if first.elapsed_s is None or last.elapsed_s is None else last.elapsed_s - first.elapsed_s


def _culprit(thread_id: int | None, stack: Stack | None) -> str:
    """The class initializer, or the application's frame nearest to the leaf (and its caller, unless that is a lambda)."""
    if stack is None:
        return f"virtual thread #{thread_id}"
    frames = [frame_name(frame) for frame in stack.frames]
    initializer = next((frame for frame in frames if frame.endswith(_INITIALIZER)), None)
    nearest = application_frame(frames)
    if initializer is not None or nearest is None:
        return initializer or "the JDK"
    caller = application_frame(frames[frames.index(nearest) + 1 :])
    return nearest if caller is None or _LAMBDA in caller else f"{nearest}{FROM}{caller})"
