"""What takes the CPU from a thread, by what its CPUs, cgroups and neighbours did in the same window. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.collect.cswitch.facts import CpuLoad, Facts, Quota, Thread

WAITS = 0.2  # of the window: a shorter wait is explained by nothing
_MOSTLY = 0.5  # of the wait
TAKEN = 0.15  # of a CPU, by interrupts
STOLEN = 0.1  # of a CPU, by the hypervisor
CROWDED, FULL = 0.5, 0.1  # PSI of a machine whose CPUs are used up; their idle share
_WANTS_ALL = 0.9  # of a CPU, running or waiting
_BUSY, IDLE = 0.1, 0.5  # idle share of a CPU that has no time left, and of one that has
_FEWEST_LOOKS, _ALTERNATE, _EQUAL, _OFTEN = 10, 0.35, 0.15, 1000.0
_SELDOM = 0.1  # of the looks
_BESIDE = 0.1  # of a CPU: other threads of a process of which two wake each other
_SAME, _VERY_OFTEN = 0.05, 10_000.0  # of two that share a CPU, which no look can tell apart
# Busy threads take the CPU for a millisecond or more at a time: a shorter wait is for the thread that woke this one.
_SHORT_WAIT_S = 50e-6
_FEWEST_PERIODS, _EACH = 5, 0.8  # of the periods of a quota
_IDLE_POLICY, _LOWEST_NICE = 5, 19
_KTHREADD = 2  # parent of kernel threads

THROTTLED, SOFTIRQS, PINNED, OUTNUMBERED, PING_PONG, STEAL = (
    "throttled", "softirqs", "pinned", "outnumbered", "ping-pong", "stolen",
)  # fmt: skip


class Pair(NamedTuple):
    """Two threads that wake each other in turn. `switches`: voluntary ones of both, a second. `call`: what they sleep in; None: unknown."""

    first: Thread
    second: Thread
    switches: float
    call: str | None

    @property
    def is_lock(self) -> bool:
        """Whether they were seen to sleep in futex(2)."""
        return self.call == "futex"


def takes_what_is_left(thread: Thread) -> bool:
    """Whether it asked for no more than what others leave: SCHED_IDLE or nice 19."""
    return thread.policy == _IDLE_POLICY or thread.nice >= _LOWEST_NICE


def usable(facts: Facts) -> frozenset[int]:
    """The online CPUs that the cpuset allows."""
    online = frozenset(load.use.cpu for load in facts.cpus)
    return online & facts.cpuset if facts.cpuset else online


def allowed_loads(facts: Facts, thread: Thread) -> list[CpuLoad]:
    """The CPUs that it may use; those of the cpuset where its affinity is unknown."""
    allowed = thread.allowed or usable(facts)
    return [load for load in facts.cpus if load.use.cpu in allowed]


def free_cpus(facts: Facts, thread: Thread) -> list[int]:
    """CPUs with idle time that its affinity excludes, though its cpuset does not; never isolated ones."""
    if not thread.allowed or thread.is_bound:
        return []
    able = (thread.cpuset or usable(facts)) - thread.allowed - facts.isolated
    return [load.use.cpu for load in facts.cpus if load.use.cpu in able and load.use.idle >= IDLE]


def cause_of(facts: Facts, thread: Thread) -> str:
    """What takes the CPU from it; empty: nothing was proven."""
    loads = allowed_loads(facts, thread)
    waiting = thread.waiting or 0.0
    if waiting >= WAITS and (thread.throttled >= _MOSTLY * waiting or _is_used_up(quota_above(facts, thread))):
        return THROTTLED
    wants_all = thread.running + waiting >= _WANTS_ALL
    if (
        wants_all
        and len(loads) == 1
        and is_interrupted(loads[0])
        and _takes_more_than_threads(facts, loads[0], waiting)
    ):
        return SOFTIRQS
    if wants_all and loads and mean(load.use.steal for load in loads) >= STOLEN:
        return STEAL
    if waiting < WAITS or not loads or mean(load.use.idle for load in loads) > _BUSY or waits_shortly(thread):
        return ""
    return PINNED if free_cpus(facts, thread) else OUTNUMBERED


def _takes_more_than_threads(facts: Facts, load: CpuLoad, waiting: float) -> bool:
    """Whether interrupts take at least as much of a CPU as threads do that a thread waits for; ksoftirqd does the work of softirqs."""
    softirqs = sum(
        waits.running
        for waits in facts.processes
        if waits.process.ppid == _KTHREADD and waits.process.command == f"ksoftirqd/{load.use.cpu}"
    )
    return load.use.softirq + load.use.irq >= waiting - softirqs


def quota_above(facts: Facts, thread: Thread) -> Quota | None:
    """The quota that throttles a thread; where that is unknown the one that was used up most."""
    used_up = [quota for quota in facts.quotas if quota.throttled_periods]
    of_thread = [quota for quota in used_up if quota.path == thread.throttled_by]
    if thread.throttled_by is None and not thread.throttled:
        return None
    return max(of_thread or used_up, key=lambda quota: (quota.throttled or 0.0, quota.throttled_periods), default=None)


def _is_used_up(quota: Quota | None) -> bool:
    """Whether a cgroup gets no more than its quota, whatever else uses the CPUs: on busy ones it is throttled late in each period."""
    return quota is not None and quota.periods >= _FEWEST_PERIODS and quota.throttled_periods >= _EACH * quota.periods


def waits_shortly(thread: Thread) -> bool:
    """Whether its waits are too short to be for a busy thread's CPU."""
    return thread.average_wait_s is not None and thread.average_wait_s < _SHORT_WAIT_S


def is_interrupted(load: CpuLoad) -> bool:
    """Whether interrupts take a good part of a CPU that is used up, and are not its threads' own work.

    What a thread sends over loopback is received by softirqs on its CPU, at once: then its system time is as long.
    """
    use = load.use
    return use.softirq + use.irq >= max(TAKEN, use.system) and use.idle <= _BUSY


def pairs(facts: Facts) -> list[Pair]:
    """The pairs that wake each other: they switch equally often, and nearly always one of the two sleeps while the other does not."""
    by_tid = {thread.tid: thread for thread in facts.threads}
    found = []
    for handoff in facts.handoffs:
        first, second = by_tid.get(handoff.first), by_tid.get(handoff.second)
        if first is None or second is None or first.voluntary is None or second.voluntary is None:
            continue
        more, less = max(first.voluntary, second.voluntary), min(first.voluntary, second.voluntary)
        is_equal = less >= _OFTEN and more - less <= _EQUAL * more and handoff.looks >= _FEWEST_LOOKS
        alternate = handoff.asleep + handoff.awake <= _ALTERNATE * handoff.looks
        call = "futex" if handoff.same_address else handoff.call
        shared = not handoff.asleep and _share_a_cpu(first, second)
        seldom_asleep = handoff.asleep <= _SELDOM * handoff.looks
        preempt = call == "futex" and seldom_asleep and _preempt_each_other(facts, first, second)
        if is_equal and (alternate or shared or preempt):
            found.append(Pair(first, second, more + less, call))
    return sorted(found, key=lambda pair: -pair.switches)


def _share_a_cpu(first: Thread, second: Thread) -> bool:
    """Whether two threads of one CPU sleep so often that only the other one can wake each: the first runs on for a moment, so both want the CPU."""
    rates = sorted((first.voluntary or 0.0, second.voluntary or 0.0))
    same_cpu = len(first.allowed) == 1 and first.allowed == second.allowed
    often = rates[0] >= _VERY_OFTEN and rates[1] - rates[0] <= _SAME * rates[1]
    return same_cpu and often and waits_shortly(first) and waits_shortly(second)


def _preempt_each_other(facts: Facts, first: Thread, second: Thread) -> bool:
    """Whether each is mostly switched away from for the other one, which was woken, and no third thread of the process wakes both.

    An involuntary switch never goes to an idle CPU. Where there are more of them than switches of all other threads, the other one gets the CPU.
    """
    forced = min(first.involuntary or 0.0, second.involuntary or 0.0)
    own = sum((each.voluntary or 0.0) + (each.involuntary or 0.0) for each in (first, second))
    beside = sum(thread.running for thread in facts.threads if thread.tid not in (first.tid, second.tid))
    return facts.switches is not None and forced > max(_OFTEN, facts.switches - own) and beside <= _BESIDE


def mean(values: Iterable[float]) -> float:
    """The mean of some values, 0 of none."""
    known = list(values)
    return sum(known) / len(known) if known else 0.0
