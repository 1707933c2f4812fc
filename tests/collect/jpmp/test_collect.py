"""Reading dumps and profiles without a command line: files of any kind, a live JVM."""

from __future__ import annotations

import os

import pytest
from twodumps import DUMP, LATER

from opskit.analysis.jpmp.judge import Weighing, judge, judge_locks
from opskit.collect.jpmp.collect import Request, Schedule, collect, heap_walk_s, read_words
from opskit.errors import NoSuchProcess, NotPermitted, UsageError
from opskit.host import Host

HOST = Host.at(None, None)
ME = str(os.getpid())


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
        judge(collect(host, Request(files=(str(tmp_path / "x.folded"),))), Weighing(by="cpu_ms"))


@pytest.mark.parametrize(
    ("words", "kind", "options", "expected"),
    [
        ((ME,), "threads", {}, (20, None)),
        ((ME, "5"), "threads", {}, (5, None)),
        ((ME, "5", "250ms"), "threads", {}, (5, 0.25)),
        ((ME, "5", "0"), "threads", {}, (5, 0.0)),
        ((ME,), "virtual", {}, (1, None)),
        ((ME, "3"), "synchronizers", {}, (3, None)),
        ((ME,), "virtual", {"samples": 4, "interval_s": 2.0}, (4, 2.0)),
        ((ME, "5"), "threads", {"interval_s": 0.5}, (5, 0.5)),
    ],
)
def test_words_and_options(words, kind, options, expected):
    """A heap walk or a file written by the JVM happens once by default."""
    pid, schedule = read_words(HOST, words, kind, **options)
    assert (pid, schedule.samples, schedule.interval_s) == (os.getpid(), *expected)


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        ((ME, "0"), {}, "SAMPLES is 0; give a whole number from 1 up"),
        ((ME, "many"), {}, "SAMPLES is 'many'"),
        ((ME, "5", "soon"), {}, "INTERVAL is 'soon'"),
        ((ME, "5", "1", "2"), {}, "'2' is an unexpected argument"),
        ((ME, "5"), {"samples": 5}, "-c and SAMPLES exclude each other"),
        ((ME, "5", "1"), {"interval_s": 1.0}, "-i and INTERVAL exclude each other"),
        (("No-Such-File", "x"), {}, "'No-Such-File' is not a file, and 'x' is not a number of samples"),
        (("No-Such-Class",), {}, "'No-Such-Class' is not a PID, a file or a part of a running JVM's main class or jar"),
    ],
)
def test_bad_words(words, options, message):
    """Each message names the word and what to type instead."""
    with pytest.raises(UsageError) as raised:
        read_words(HOST, words, "threads", **options)
    assert message in str(raised.value)


def test_a_pid_that_is_gone():
    """A number is only a PID."""
    with pytest.raises(NoSuchProcess):
        read_words(HOST, (str(2**31 - 2),), "threads")
