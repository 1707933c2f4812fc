"""Reading dumps and profiles without a command line: files of any kind, a live JVM."""

from __future__ import annotations

import pytest
from twodumps import DUMP, LATER

from opskit.analysis.jpmp.judge import Weighing, judge, judge_locks
from opskit.collect.jpmp.collect import collect, heap_walk_s
from opskit.collect.jpmp.facts import Request, Schedule
from opskit.errors import NotPermitted, UsageError
from opskit.host import Host


@pytest.fixture
def host():
    return Host.at(None, None)


def test_files_are_read_as_what_they_are(host, tmp_path):
    """Dumps and collapsed stacks together; the file to compare with; a dump without its end."""
    (tmp_path / "dumps.txt").write_text(DUMP + LATER)
    (tmp_path / "half.txt").write_text(DUMP[: DUMP.index("ThreadPoolExecutor.java:1062", 900)])
    (tmp_path / "x.folded").write_text("main;com.example.A.a 3\n")
    dumps, half, folded = (str(tmp_path / name) for name in ("dumps.txt", "half.txt", "x.folded"))
    facts = collect(host, Request(files=(dumps, half, folded), before=folded, detail="threads"))
    assert [len(dump.threads) for dump in facts.dumps[:2]] == [4, 4]
    assert facts.stacks[0].frames == ("com.example.A.a", "main")
    [cut] = facts.cut_off
    assert cut == (half, 1, 1, 2)
    assert facts.before.stacks == facts.stacks
    found = judge(facts, Weighing())
    assert sum(stack.samples for stack in found.stacks) == sum(len(dump.threads) for dump in facts.dumps) + 3


def test_a_live_jvm_is_sampled_and_judged(host, workload):
    """Without click and without a terminal: stops, CPU time, the contended lock."""
    jvm = workload("blocked=3", "sleep=2")
    kept = []
    ask = Request(pid=jvm.pid, schedule=Schedule(3, 0.05), detail="locks", cpu=True, timeout_s=120)
    facts = collect(host, ask, keep=lambda number, dump: kept.append((number, dump)))
    assert [number for number, _ in kept] == [1, 2, 3]
    assert (facts.live.pid, facts.live.main, len(facts.live.stops_ms)) == (jvm.pid, "Workload", 3)
    assert facts.live.cpu_after.keys() >= {jvm.pid}
    assert [finding.code for finding in judge_locks(facts).findings] == ["lock-contended"]


def test_nothing_is_sent_to_a_pid_of_a_copy(tree):
    """A pid there may be another process here."""
    root = tree({"proc/7/stat": "7 (java) S", "proc/self/stat": ""})
    with pytest.raises(NotPermitted, match="is a copy"):
        collect(Host.at(str(root), None), Request(pid=7))


def test_the_cost_of_a_heap_walk_grows_with_the_heap_and_the_samples():
    """36 to 39 s were reported for 65 GB."""
    assert 30 < heap_walk_s(65_000_000_000, 1) < 40
    assert heap_walk_s(1 << 30, 3) == pytest.approx(3 * heap_walk_s(1 << 30, 1))


def test_profiles_cannot_be_weighed_by_cpu(host, tmp_path):
    """Collapsed stacks do not say what their counts are."""
    (tmp_path / "x.folded").write_text("a;b 1\n")
    with pytest.raises(UsageError, match="say nothing about CPU time"):
        judge(collect(host, Request(files=(str(tmp_path / "x.folded"),))), Weighing(on_cpu=True))
