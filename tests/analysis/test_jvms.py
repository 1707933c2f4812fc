"""Shares of time and of limits, from one look and from two; what is wrong."""

from __future__ import annotations

import pytest
from jvmreadings import MIB, reading, seen

from opskit.analysis.finding import Entity
from opskit.analysis.jvms import judge, shares
from opskit.collect.jvm_troubles import Killed, Stall
from opskit.collect.jvms import Facts
from opskit.jvm.attach.target import Stopped, frozen_in
from opskit.proc.cgroup.limits import CpuLimit, MemoryLimit


def facts(*jvms, before=None, history=()):
    return Facts(jvms, before or {}, history, len(jvms), 0, 0, [], None, [], True)


def test_with_one_look_shares_are_of_its_life():
    got = shares(reading(gc_s=5, stopped_s=6))
    assert got.cpu_percent == pytest.approx(10)
    assert got.gc_percent == pytest.approx(5)
    assert got.stopped_percent == pytest.approx(6)
    assert got.throttled_percent is None
    assert got.window_s == 100


def test_with_two_looks_shares_are_of_the_interval():
    before = reading(100, cpu_s=10, gc_s=5, stopped_s=6, cpu=CpuLimit("/a", 2, 100, 50, 1))
    got = shares(reading(104, cpu_s=16, gc_s=6, stopped_s=8, cpu=CpuLimit("/a", 2, 140, 60, 2)), before)
    assert got == pytest.approx((4, 150, 25, 50, 25))


def test_a_stop_that_began_before_the_window_is_at_most_all_of_it():
    """It is counted at its end; the GC pause in it a moment before."""
    before = reading(100, gc_s=5, stopped_s=6)
    got = shares(reading(104, gc_s=10.2, stopped_s=6.1), before)
    assert (got.gc_percent, got.stopped_percent) == (100, 100)


def test_a_counter_that_ran_backwards_gives_nothing():
    before = reading(100, cpu_s=10, gc_s=5, cpu=CpuLimit("/a", 2, 100, 50, 1))
    got = shares(reading(104, cpu_s=9, gc_s=1, cpu=CpuLimit("/a", 2, 10, 5, 1)), before)
    assert (got.cpu_percent, got.gc_percent, got.throttled_percent) == (None, None, None)
    moved = shares(reading(104, cpu=CpuLimit("/b", 2, 110, 55, 1)), before)
    assert moved.throttled_percent is None
    assert shares(reading(100), reading(100)).cpu_percent is None  # no time has passed


def test_a_quota_that_never_ran_out_is_no_throttling():
    assert shares(reading(cpu=CpuLimit("/a", 2, 0, 0, 0))).throttled_percent == 0
    assert shares(reading(cpu=CpuLimit("/a", None))).throttled_percent is None


def test_the_largest_comes_first_and_the_unknown_last():
    jvms = [seen(pid, rss=rss) for pid, rss in ((3, 5), (1, None), (2, 9), (4, 5))]
    assert [row.seen.jvm.pid for row in judge(facts(*jvms), "rss").rows] == [2, 3, 4, 1]
    assert [row.seen.jvm.pid for row in judge(facts(*jvms)).rows] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("code", "share", "window_s", "jvm"),
    [
        ("jvm-gc-share", 0.3, 100.0, seen(gc_s=30)),
        ("cpu-throttled", 0.34, 100.0, seen(cpu=CpuLimit("/a", 0.5, 100, 34, 1))),
        ("memory-near-limit", 0.95, None, seen(rss=95 * MIB, memory=MemoryLimit("/a", 100 * MIB, 99 * MIB))),
        ("memory-heap-outgrows-limit", None, None, seen(memory=MemoryLimit("/a", 60 * MIB, None), rss=MIB)),
    ],
)
def test_a_finding_has_its_jvm_its_share_and_the_next_command(code, share, window_s, jvm):
    [finding] = judge(facts(jvm)).findings
    assert (finding.code, finding.severity, finding.share, finding.window_s) == (code, "warning", share, window_s)
    of_cgroup = code in ("cpu-throttled", "memory-near-limit")
    assert finding.entity == (Entity("cgroup", "/a") if of_cgroup else Entity("process", 7, 5))
    assert "app.Main" in finding.summary
    assert finding.next.startswith("opskit ")


def test_a_healthy_jvm_has_no_findings():
    calm = seen(gc_s=0.1, cpu=CpuLimit("/a", 2, 100, 1, 1), memory=MemoryLimit("/a", 1 << 30, 1), rss=MIB)
    assert judge(facts(calm)).findings == []


def test_what_a_counter_gathered_over_days_is_a_note_and_what_the_window_shows_a_warning():
    """Trouble of long ago, or of the first seconds, does not make the check fail."""
    [finding] = judge(facts(seen(at_s=2.0, gc_s=1))).findings
    assert finding.severity == "note"
    old = seen(at_s=500_000.0, gc_s=100_000)
    [finding] = judge(facts(old)).findings
    assert finding.severity == "note"
    before = {old.key: reading(at_s=499_990.0, gc_s=99_998, pauses=1)}
    [finding] = judge(facts(old, before=before)).findings
    assert (finding.severity, finding.window_s, finding.share) == ("warning", 10.0, 0.2)


def test_one_pause_or_period_in_a_short_window_is_a_note():
    """G1 aims at 200 ms a pause, which is a tenth of the usual interval of a watch; a period is a twentieth of it."""
    now = seen(at_s=102.0, gc_s=1.25, pauses=5, cpu=CpuLimit("/a", 2, 120, 1, 1))
    found = judge(facts(now, before={now.key: reading(gc_s=1, cpu=CpuLimit("/a", 2, 100, 0, 0))})).findings
    assert [(each.code, each.severity) for each in found] == [("jvm-gc-share", "note"), ("cpu-throttled", "note")]
    now = seen(at_s=102.0, gc_s=1.25, pauses=7, cpu=CpuLimit("/a", 2, 120, 3, 1))
    found = judge(facts(now, before={now.key: reading(gc_s=1, cpu=CpuLimit("/a", 2, 100, 0, 0))})).findings
    assert [each.severity for each in found] == ["warning", "warning"]


@pytest.mark.parametrize(("file", "usage", "codes"), [(30, 99, []), (1, 99, ["memory-near-limit"]), (0, 40, [])])
def test_memory_that_the_kernel_reclaims_is_not_near_the_limit(file, usage, codes):
    """The page cache of mapped files (Lucene, Kafka), and what is mapped several times (ZGC)."""
    jvm = seen(rss=95 * MIB, file=file * MIB, memory=MemoryLimit("/a", 100 * MIB, usage * MIB))
    assert [finding.code for finding in judge(facts(jvm)).findings] == codes


def test_samples_have_the_shares_between_the_looks():
    looks = [(0.1, {(7, 5): reading(100, cpu_s=10)}), (2.1, {(7, 5): reading(102, cpu_s=11), (8, 9): reading(4)})]
    first, second = judge(facts(seen(), history=looks)).samples
    assert [(at_s, [(each.key, each.shares.cpu_percent) for each in rows]) for at_s, rows in (first, second)] == [
        (0.1, [((7, 5), 10.0)]),
        (2.1, [((7, 5), 50.0), ((8, 9), 250.0)]),
    ]


def test_killed_and_stuck_jvms_come_first():
    """Killed, then stuck; the JVM with the worst finding is the first row when that is asked for. Earlier kills are one note."""
    stall = Stall(1.0, (9, "hog", 0.9))
    case = facts(seen(7), seen(8), seen(9))._replace(
        stalls={9: stall},
        killed=(
            Killed(5, 1, "app.Main", None, "/pod", 64 * MIB, "oom_kill"),
            Killed(6, None, "java", 7200.0, None, None, "log"),
            Killed(4, None, "java", 60.0, None, None, "log", replaced=True),
        ),
    )
    result = judge(case, worst_first=True)
    found = [(each.code, each.severity, each.entity.id) for each in result.findings]
    assert found == [
        ("oom-killed", "error", 5), ("safepoint-not-reached", "error", 9), ("oom-killed", "note", 4),
    ]  # fmt: skip
    assert "at the limit of 64.0 MiB of /pod while it was watched" in result.findings[0].summary
    assert "60.0 s ago, and 1 more in the last 24 h" in result.findings[2].summary
    assert [row.seen.jvm.pid for row in result.rows] == [9, 7, 8]
    assert [row.seen.jvm.pid for row in judge(case).rows] == [7, 8, 9]


def test_a_debugger_may_be_intended():
    """A signal's stop is an error with its command, a debugger's or a freezer's a warning."""
    by_signal = seen(7)._replace(stopped=Stopped("is stopped by a signal (state T)", "kill -CONT 7", command=True))
    frozen = seen(8)._replace(stopped=frozen_in("/pod"))
    assert [(each.severity, each.fix) for each in judge(facts(by_signal, frozen)).findings] == [
        ("error", "kill -CONT 7"), ("warning", None),
    ]  # fmt: skip
