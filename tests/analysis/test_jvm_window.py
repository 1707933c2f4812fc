"""What a window of a second of a JVM proves, and what is a moment."""

from __future__ import annotations

import pytest
from jvmreadings import MIB, seen

from opskit.analysis.finding import Entity
from opskit.analysis.jvm_window import judge
from opskit.collect.jvm_monitors import Party, Waits
from opskit.collect.jvm_troubles import Killed, Stall
from opskit.collect.jvm_window import Facts, Pair
from opskit.jvm.attach.target import Stopped
from opskit.jvm.memory.monitors import Wait
from opskit.jvm.perfdata.generations import Generations
from opskit.proc.cgroup.limits import CpuLimit, MemoryLimit
from opskit.proc.cgroup.owner import CgroupOwner

STOPPED = Stopped("is stopped by a signal (state T)", "kill -CONT 7", command=True)


def pair(now=(), before=(), **fields):
    """A JVM at 100 s of its life and a second earlier; `fields` of both looks."""
    looks = [
        seen(at_s=at_s, **numbers)._replace(**fields) for at_s, numbers in ((99.0, dict(before)), (100.0, dict(now)))
    ]
    return Pair(*looks)


def found(*pairs, **facts):
    return judge(Facts(pairs, 1.0, **facts))


def codes(*pairs, **facts):
    return [(finding.code, finding.severity) for finding in found(*pairs, **facts)]


@pytest.mark.parametrize(
    ("gc_s", "since_s", "pauses", "age_s", "severity"),
    [
        (0.05, 1.0, 10, 100.0, None),  # a young collection of 5 ms each 100 ms
        (0.7, 0.7, 1, 100.0, "note"),  # one full collection
        (0.2, 2.0, 10, 100.0, "note"),  # a burst
        (0.35, 2.0, 10, 100.0, "warning"),  # plain
        (0.2, 15.0, 10, 100.0, "warning"),  # and so all its life
        (1.0, 30.0, 0, 100.0, "warning"),  # within a long pause, after many
        (1.0, 1.0, 0, 100.0, "note"),  # within the first one
        (0.35, 1.0, 10, 5.0, "note"),  # its heap grows
        (0.5, 3.0, 10, 5.0, "warning"),
    ],
)
def test_gc_pauses(gc_s, since_s, pauses, age_s, severity):
    """A warning where the window alone is plain, or the JVM's life is like it."""
    case = pair(
        {"gc_s": since_s, "pauses": 50 + pauses, "age_s": age_s},
        {"gc_s": since_s - gc_s, "pauses": 50, "age_s": age_s - 1},
    )
    assert codes(case) == ([] if severity is None else [("jvm-gc-share", severity)])


def test_a_pause_counted_at_its_end_is_at_most_the_whole_window():
    [finding] = found(pair({"gc_s": 30.0, "pauses": 9}, {"gc_s": 20.0, "pauses": 4}))
    assert finding.share == 1.0
    assert finding.summary.startswith("7 (app.Main) spends 100 % of the time in GC pauses; heap: 8.0 MiB of 64.0 MiB")


def generation(full, old, most=100):
    return Generations("Serial", 9, full, 0, 10, 0, 0, old * MIB, most * MIB)


@pytest.mark.parametrize(
    ("before", "now", "is_full"),
    [
        (generation(3, 95), generation(4, 92), True),
        (generation(3, 95), generation(4, 50), False),  # it freed much
        (generation(3, 95), generation(3, 99), False),  # full before a collection, as it should be
        (generation(3, 95), None, False),
        (generation(3, 95, 0), generation(4, 0, 0), False),
    ],
)
def test_a_heap_is_full_where_a_full_collection_leaves_it_so(before, now, is_full):
    case = pair()
    case = Pair(
        case.before._replace(reading=case.before.reading._replace(generations=before)),
        case.now._replace(reading=case.now.reading._replace(generations=now)),
    )
    assert codes(case) == [("heap-nearly-full", "warning")] * is_full


def test_a_process_that_stopped_just_now_may_be_in_the_hands_of_a_debugger():
    stopped = pair(stopped=STOPPED)
    assert codes(stopped) == [("process-stopped", "error")]
    [finding] = found(stopped)
    assert finding.summary == "7 (app.Main) is stopped by a signal (state T): nothing in it runs"
    assert finding.fix == "kill -CONT 7"
    assert codes(stopped._replace(before=stopped.before._replace(stopped=None))) == []


def test_a_stalled_jvm_is_named_with_its_thread():
    [finding] = found(pair(), stalls={7: Stall(0.99, (9, "hog", 0.98))})
    assert (finding.code, finding.severity) == ("safepoint-not-reached", "error")
    assert finding.summary == (
        "7 (app.Main) is stuck: its threads have not stopped for a safepoint for 990 ms; thread 'hog' (9) used 98 % of a CPU"
    )


@pytest.mark.parametrize(("stopped_s", "severity"), [(0.2, "warning"), (0.9, "note")])
def test_a_lock_that_is_held_during_a_long_pause(stopped_s, severity):
    """Its holder is paused like all other threads."""
    held = Waits(seen().jvm, 1.0, {thread: Wait(1, 9) for thread in range(1, 9)}, {9: Party(9, "holder", "futex")})
    case = pair({"stopped_s": 5.0 + stopped_s}, {"stopped_s": 5.0})
    assert codes(case, waits={7: held}) == [("lock-contended", severity)]


def test_throttling_is_of_the_window():
    """What the counters gathered before is not in it."""
    before = {"cpu": CpuLimit("/a", 0.5, 100, 90, 1)}
    assert codes(pair({"cpu": CpuLimit("/a", 0.5, 110, 90, 1)}, before)) == []
    assert codes(pair({"cpu": CpuLimit("/a", 0.5, 110, 98, 1)}, before)) == [("cpu-throttled", "warning")]
    assert codes(pair({"cpu": CpuLimit("/a", 0.5, 110, 91, 1)}, before)) == [("cpu-throttled", "note")]


def test_a_summary_stands_alone_and_its_advice_is_the_fix():
    memory = MemoryLimit("/a", 100 * MIB, 99 * MIB)
    case = pair({"rss": 95 * MIB}, {"rss": 95 * MIB}, memory=memory, place=CgroupOwner("/a"))
    [finding] = found(case)
    assert (finding.code, finding.entity) == ("memory-near-limit", Entity("cgroup", "/a"))
    assert finding.summary.startswith("7 (app.Main) has 95.0 MiB resident")
    assert (";" in finding.summary, finding.fix) == (False, "raise the limit, or lower -Xmx")


def test_findings_know_their_process_and_its_cgroup():
    case = pair({"gc_s": 30.0, "pauses": 9}, {"gc_s": 20.0}, place=CgroupOwner("/app.service"))
    [finding] = found(case)
    assert finding.entity == Entity("process", 7, 5, Entity("cgroup", "/app.service"))


def test_one_look_has_no_rates():
    """A copy: what stands still and what is near its limit can be told."""
    alone = Pair(None, seen(gc_s=90.0, stopped_s=90.0, cpu=CpuLimit("/a", 0.5, 100, 90, 1)))
    assert codes(alone) == []
    assert codes(alone._replace(now=alone.now._replace(stopped=STOPPED))) == [("process-stopped", "error")]


def test_a_jvm_that_was_killed_meanwhile_is_named():
    killed = Killed(7, 5, "app.Main", None, "/a", MIB, "the kernel's log names it")
    assert codes(killed=[killed]) == [("oom-killed", "error")]


def test_a_healthy_jvm_has_no_findings():
    assert codes(pair({"cpu_s": 12.0}, {"cpu_s": 10.0})) == []
