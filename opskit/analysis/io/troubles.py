"""What threads of a process suffer from: storage that does not answer, a page cache that is too small, limits of their cgroup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.io.waits import CHILD, DEVICE, DIRTY, FROZEN, severity_of, wait_of
from opskit.analysis.thresholds import IO_LIMIT_SHARE
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.analysis.finding import Severity
    from opskit.analysis.io.waits import Wait
    from opskit.collect.io.facts import CgroupIo, Facts, IoLimit, Thread

PAGE_BYTES = 4096
_FEWEST_LOOKS, _LEAST_S = 2, 0.9  # of one sleep
_BLOCKED = 0.2  # of looks
_MUCH = 1 << 20
_REREAD, _FROM_DISK, _FULL, _PRESSED = 0.5, 0.3, 0.9, 0.1
_MOST_FROM_DISK = 0.95
_MODE, _WRITE_ONLY = 3, 1  # of open(2)


class Stuck(NamedTuple):
    """Threads that have done nothing in the window but wait at one place of the kernel, the longest first. `for_s`: of the longest."""

    threads: tuple[Thread, ...]
    where: str | None
    wait: Wait | None
    for_s: float
    severity: Severity


def in_d(thread: Thread) -> float:
    """The share of looks that found a thread in state D."""
    return sum(each.looks for each in thread.stalled) / thread.looks if thread.looks else 0.0


def blocked(thread: Thread) -> float:
    """The same, waiting for a block device or for room for dirty pages: what pages from disk and limits cause.

    Looks after which it ran at once, so that their place is unknown, are taken to be like the others.
    """
    known = sum(each.looks for each in thread.stalled if each.where is not None)
    at_device = sum(each.looks for each in thread.stalled if _is_device(each.where))
    return max(in_d(thread) * at_device / known if known else 0.0, min(1.0, thread.block_wait or 0.0))


def _is_device(where: str | None) -> bool:
    wait = wait_of(where)
    return wait is not None and wait.kind in (DEVICE, DIRTY)


def stuck_groups(facts: Facts) -> list[Stuck]:
    """By the place where they wait; the most severe first. A frozen cgroup and a vfork are meant to be so.

    One that waits for many answers of a slow server, as find(1) does, has run in between.
    """
    groups: dict[str | None, list[Thread]] = {}
    for thread in facts.threads:
        if thread.looks >= _FEWEST_LOOKS and len(thread.stalled) == 1 and in_d(thread) == 1 and not any(thread.rates):
            groups.setdefault(thread.stalled[0].where, []).append(thread)
    found = []
    for where, threads in groups.items():
        threads.sort(key=lambda thread: (-(thread.asleep_s or 0), thread.tid))
        wait, for_s = wait_of(where), threads[0].asleep_s or 0.0
        if for_s < _LEAST_S or (wait is not None and wait.kind in (FROZEN, CHILD)):
            continue
        call = next((each.call for each in threads[0].seen), None)
        severity = severity_of(where, call, for_s, stores=bool(facts.stored_pages))
        found.append(Stuck(tuple(threads), where, wait, for_s, severity))
    return sorted(found, key=lambda each: (("error", "warning", "note").index(each.severity), -each.for_s))


def disk_share(facts: Facts) -> float | None:
    """How much of what was read came from storage. Mapped files and readahead fetch more than calls return; None: nothing was read."""
    total = facts.total
    if total is None or not (total.read_bytes or total.disk_read_bytes):
        return None
    return min(1.0, total.disk_read_bytes / total.read_bytes) if total.read_bytes else 1.0


def thrashing(facts: Facts) -> tuple[CgroupIo, Thread, bool] | None:
    """The cgroup whose page cache is too small for what its processes read again and again, who waits most, and whether that does harm.

    It does none that a larger limit would cure where the machine's memory is too small for it too: a large database is so.
    """
    cgroup, total = facts.cgroup, facts.total
    if cgroup is None or total is None or cgroup.refaults is None or cgroup.memory_limit_bytes is None:
        return None
    again = cgroup.refaults * PAGE_BYTES
    if (
        total.disk_read_bytes < _MUCH
        or again < _REREAD * total.disk_read_bytes
        or (disk_share(facts) or 0) < _FROM_DISK
    ):
        return None
    if cgroup.usage_bytes is None or cgroup.usage_bytes < _FULL * cgroup.memory_limit_bytes:
        return None
    worst = max(facts.threads, key=lambda thread: (blocked(thread), thread.rates.disk_read_bytes), default=None)
    if worst is None:
        return None
    waits = blocked(worst) >= _BLOCKED or (cgroup.memory_some or 0) >= _PRESSED
    needed, room = _needed_bytes(facts, cgroup), (facts.available_bytes or 0) + (cgroup.cache_bytes or 0)
    return cgroup, worst, waits and needed is not None and needed <= room


def _needed_bytes(facts: Facts, cgroup: CgroupIo) -> int | None:
    """The page cache that would hold what is read: the files, or by the share that the cache has of it now; None: unknown."""
    sizes = [
        file.size_bytes
        for file in facts.files
        if file.size_bytes is not None and (file.flags or 0) & _MODE != _WRITE_ONLY
    ]
    share = disk_share(facts) or 0.0
    by_share = round((cgroup.cache_bytes or 0) / (1 - share)) if share <= _MOST_FROM_DISK else None
    known = [each for each in (sum(sizes) or None, by_share) if each is not None]
    return max(known, default=None)


def throttled(facts: Facts) -> tuple[IoLimit, Thread] | None:
    """The limit of a cgroup that is used up while a thread waits for its device: of several the fullest."""
    limits = facts.cgroup.limits if facts.cgroup is not None else ()
    full = [
        limit
        for limit in limits
        if limit.used is not None and limit.limit and limit.used >= IO_LIMIT_SHARE * limit.limit
    ]
    worst = max(facts.threads, key=blocked, default=None)
    if not full or worst is None or blocked(worst) < _BLOCKED:
        return None
    return max(full, key=lambda limit: (limit.used or 0) / limit.limit), worst
