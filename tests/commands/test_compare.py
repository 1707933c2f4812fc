"""`opskit compare`: two machines, two JVMs of this one, captures, sos reports, and what it refuses."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack

import cgroups
import jvms
import pytest
from comparing import throttled_sides
from taping import sampled

from opskit.analysis.compare.judge import judge
from opskit.collect.compare import sides as compared_sides
from opskit.collect.compare.collect import collect_side
from opskit.collect.compare.libraries import jar_facts
from opskit.collect.compare.options import options_of
from opskit.host import Host
from opskit.proc.recorded.packing import capture_chunks
from opskit.proc.recorded.tape import REPLY
from opskit.recorded_host import RecordedHost
from opskit.render.formats import csv, markdown, table, text
from opskit.render.formats import json as json_format
from opskit.render.report import About
from opskit.render.views import compare as view

DUMP = 'Full thread dump\n\n"main" #1 prio=5 tid=0x1 nid=0x1 runnable [0x1]\n   java.lang.Thread.State: RUNNABLE\n\tat app.{0}.run({0}.java:1)\n\tat app.Main.main(Main.java:1)\n'
HISTOGRAM = " num     #instances         #bytes  class name\n----------------------------------------------\n   1:   {0}   {1}  app.Order\nTotal   {0}   {1}\n"
SERIAL = ("-XX:+UseSerialGC", "-Xmx64m")
RESULT = judge(throttled_sides())


@pytest.fixture(autouse=True)
def short_window(monkeypatch):
    """Rates of a live machine do not matter but where a test says so."""
    monkeypatch.setattr(compared_sides, "WINDOW_S", 0.05)


@pytest.mark.parametrize(
    "form", [table, text, json_format, markdown, csv], ids=lambda form: form.__name__.rpartition(".")[2]
)
def test_every_format(form, golden):
    """The same differences in each."""
    about = About("here", "2026-11-24T00:00:00Z", "0.0.0", "opskit compare bad.tgz good.tgz")
    golden(f"compare.{form.__name__.rpartition('.')[2]}", form.render(view.report(about, RESULT)))


@pytest.fixture(scope="module")
def pair():
    """Two JVMs that differ in collector and heap, and a third one like the first."""
    other = ("-XX:+UseG1GC", "-Xmx128m", "-Dserver.id=two", "-Xlog:gc:stderr:time", "-XX:+UnlockDiagnosticVMOptions")
    with ExitStack() as stack:
        options = ((*SERIAL, "-Dserver.id=one"), other, (*SERIAL, "-Dserver.id=three"))
        yield tuple(stack.enter_context(jvms.running("sleep=1", options=each)).pid for each in options)


def test_jars_of_the_class_path_are_compared_wherever_they_are():
    """Also in /tmp; of those that are only open, the absence says nothing."""
    facts, whole = jar_facts(["/tmp/x/guava-31.1.jar", "/opt/app.jar"], ["/opt/plugin-2.jar", "/tmp/copy-1.jar"])
    assert whole
    assert {(each.key, each.value) for each in facts} == {
        ("jar.guava", "31.1"),
        ("jar.app", "no version"),
        ("open_jar.plugin", "2"),
    }


def test_options_that_the_counters_cut_off_are_those_of_the_command_line():
    """The counter of the options holds 1,024 bytes."""
    words = ["java", f"-Dx={'y' * 1100}", "-Xmx64m", "Main"]
    assert options_of(words, ["JAVA_TOOL_OPTIONS=-Xint"], " ".join(words[1:])[:1024]) == ["-Xint", *words[1:3]]


def rows(ran):
    """(class, key) of each difference but the measured ones, which another load on this machine may make."""
    found = json.loads(ran.out)["differences"]
    return [(each["class"], each["key"]) for each in found if each["class"] != "measured"]


def test_two_jvms_differ_in_what_was_planted(pair, inprocess):
    """The collector with its pools and threads is a row, the heap another; names and PIDs are none."""
    ran = inprocess("compare", "live", "live", "--jvm", pair[0], "--jvm", pair[1], "-f", "json")
    assert rows(ran) == [
        ("configured", "jvm.collector"),
        ("configured", "jvm.heap_max"),
        ("configured", "switch.-Xlog:gc"),
    ]
    assert ran.code == 1


def test_two_jvms_of_one_configuration_are_alike(pair, inprocess):
    """They differ in PID, start and server.id."""
    assert rows(inprocess("compare", "live", "live", "--jvm", pair[0], "--jvm", pair[2], "-f", "json")) == []


@pytest.fixture(scope="module")
def captures(pair, tmp_path_factory):
    """Two captures, with a thread dump and a histogram of the first JVM, which differ."""
    replies = [
        [
            (f"{pair[0]}/threads", DUMP.format(name).encode()),
            (f"{pair[0]}/histogram", HISTOGRAM.format(count, count * 16).encode()),
        ]
        for name, count in (("Slow", 900), ("Fast", 100))
    ]
    directory = tmp_path_factory.mktemp("captures")
    paths = [directory / name for name in ("one.tar.gz", "other.tar.gz")]
    live = Host.at(None, None)
    for path, of_jvm in zip(paths, replies):
        tape = sampled(live, 0.3)
        collect_side(RecordedHost(tape, live.fs), "x", "capture", 1.0)
        for key, reply in of_jvm:
            tape.keep(REPLY, key, reply)
        path.write_bytes(b"".join(capture_chunks(tape)))
    return [str(path) for path in paths]


def test_captures_of_one_machine_are_alike(pair, captures, inprocess):
    """And a capture is like the live machine, and holds all that is compared."""
    one, other = captures
    for sides_ in ((one, other), (one, "live"), (one, one)):
        ran = inprocess("compare", *sides_, "--jvm", pair[0], "-f", "json")
        assert rows(ran) == [], sides_
        assert json.loads(ran.out)["equal"] > 100
        assert json.loads(ran.out)["measured"] != "unknown"


def test_thread_dumps_are_drawn_and_histograms_listed(pair, captures, tmp_path, inprocess):
    """A differential flame graph, and the classes that BAD holds more of."""
    picture = tmp_path / "diff.svg"
    ran = inprocess("compare", *captures, "--jvm", pair[0], "-o", picture)
    assert ran.code == 1, ran.err  # the heap differs
    assert "app.Slow.run" in picture.read_text()
    assert "app.Fast.run" in picture.read_text()
    ran = inprocess("compare", *captures, "--jvm", pair[0], "-f", "text")
    assert "histogram   app.Order: +12.5 KiB, +800 instances" in ran.out
    assert "objects in the heap, bad - good: app.Order +12.5 KiB" in ran.out
    assert "-o diff.svg" in ran.out
    ran = inprocess("compare", *captures, "--jvm", pair[1], "-o", tmp_path / "none.svg")
    assert ran.code == 2
    assert "holds no thread dump" in ran.err


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a cgroup")
def test_a_throttled_jvm_says_its_quota(pair, inprocess, monkeypatch):
    """The symptom comes first, and names the quota; the quota's echoes are one row with it."""
    monkeypatch.setattr(compared_sides, "WINDOW_S", 0.5)  # 25 periods of the quota
    with cgroups.new_cgroup("cpu", f"opskit-test-compare-{os.getpid()}", "cpu.cfs_quota_us cpu.cfs_period_us") as place:
        (place / "cpu.cfs_period_us").write_text("20000")
        (place / "cpu.cfs_quota_us").write_text("2000")
        with jvms.running("burn=1:100", options=SERIAL) as bad:
            (place / "cgroup.procs").write_text(str(bad.pid))
            try:
                found = json.loads(
                    inprocess("compare", "live", "live", "--jvm", bad.pid, "--jvm", pair[0], "-f", "json").out
                )
            finally:
                (place.parent / "cgroup.procs").write_text(str(bad.pid))
    by_key = {each["key"]: each for each in found["differences"]}
    assert found["differences"][0]["key"] == "jvm.throttled"
    assert "cgroup.cpu_quota" in by_key["jvm.throttled"]["explained_by"]
    assert by_key["cgroup.cpu_quota"]["bad_number"] == 0.1
    assert "jvm.cpus" not in by_key


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("live", "/nowhere.tar.gz"), "/nowhere.tar.gz"),
        (("live", "live", "--jvm", "no.such.Main"), "no.such.Main"),
        (("live", "live", "--jvm", "a", "--jvm", "b", "--jvm", "c"), "given 3 times"),
        (("-", "-"), "standard input"),
        (("live", "/etc/passwd"), "/etc/passwd"),
        (("live", "/"), "/"),
    ],
)
def test_what_cannot_be_compared_is_exit_2(words, said, inprocess):
    """One line that names what was given."""
    ran = inprocess("compare", *words)
    assert ran.code == 2
    assert said in ran.err.splitlines()[0]
    assert "Traceback" not in ran.err
