"""`opskit compare`: two machines, two JVMs of this one, captures, sos reports, and what it refuses."""

from __future__ import annotations

import json
import os
import time
from contextlib import ExitStack

import cgroups
import jvms
import pytest
from comparing import setting, share, sides

from opskit.analysis.compare.judge import judge
from opskit.collect.compare.collect import collect_side
from opskit.collect.compare.facts import COUNT, CPUS
from opskit.host import Host
from opskit.proc.recorded.packing import capture_chunks
from opskit.proc.recorded.tape import FILE, REPLY, Failure, Mark, Origin, Tape
from opskit.recorded_host import RecordedHost
from opskit.render.formats import csv, markdown, table, text
from opskit.render.formats import json as json_format
from opskit.render.report import About
from opskit.render.views import compare as view

DUMP = 'Full thread dump\n\n"main" #1 prio=5 tid=0x1 nid=0x1 runnable [0x1]\n   java.lang.Thread.State: RUNNABLE\n\tat app.{0}.run({0}.java:1)\n\tat app.Main.main(Main.java:1)\n'
HISTOGRAM = " num     #instances         #bytes  class name\n----------------------------------------------\n   1:   {0}   {1}  app.Order\nTotal   {0}   {1}\n"
RESULT = judge(
    sides(
        [
            setting("host.cpus", 2, "CPU", COUNT),
            setting("sysctl.vm.swappiness", "10", "sysctl"),
            share("host.cpu.steal", 0.2),
        ],
        [
            setting("host.cpus", 4, "CPU", COUNT),
            setting("sysctl.vm.swappiness", "60", "sysctl"),
            share("host.cpu.steal", 0.0),
        ],
        jvm_bad=[
            share("jvm.throttled", 0.8, events=20),
            setting("cgroup.cpu_quota", 0.5, "cgroup", CPUS),
            setting("jvm.cpus", 1, "cgroup", COUNT),
        ],
        jvm_good=[
            share("jvm.throttled", 0.0, events=0),
            setting("cgroup.cpu_quota", "none", "cgroup", CPUS),
            setting("jvm.cpus", 4, "cgroup", COUNT),
        ],
    )
)


@pytest.mark.parametrize(
    "form", [table, text, json_format, markdown, csv], ids=lambda form: form.__name__.rpartition(".")[2]
)
def test_every_format(form, golden):
    """The same differences in each."""
    about = About("here", "2026-11-24T00:00:00Z", "0.0.0", "opskit compare bad.tgz good.tgz")
    golden(f"compare.{form.__name__.rpartition('.')[2]}", form.render(view.report(about, RESULT)))


def write_capture(path, replies=()):
    """A capture of this machine with two samples of the counters, as far as compare reads it."""
    live = Host.at(None, None)
    begun = Mark(time.time(), time.monotonic())
    tape = Tape(Origin(machine=live.machine), (begun, begun._replace(monotonic_s=begun.monotonic_s + 0.5)))
    collect_side(RecordedHost(tape, live.fs), "x", "capture", 1.0)
    time.sleep(max(0.0, begun.monotonic_s + 0.5 - time.monotonic()))
    for key in [
        key
        for key in tape.answers[FILE][0]
        if key.endswith(("/stat", "/schedstat", "/vmstat", "/status")) or "hsperfdata" in key or "pressure" in key
    ]:
        try:
            answer = live.fs.read_path(key)
        except OSError as error:
            answer = Failure(error.errno)
        tape.keep_change(FILE, key, answer, 1)
    for key, reply in replies:
        tape.keep(REPLY, key, reply)
    path.write_bytes(b"".join(capture_chunks(tape)))
    return str(path)


@pytest.fixture(scope="module")
def pair():
    """Two JVMs that differ in collector and heap, and a third one like the first."""
    serial = ("-XX:+UseSerialGC", "-Xmx64m")
    other = ("-XX:+UseG1GC", "-Xmx128m", "-Dserver.id=two")
    with ExitStack() as stack:
        options = ((*serial, "-Dserver.id=one"), other, (*serial, "-Dserver.id=three"))
        yield tuple(stack.enter_context(jvms.running("sleep=1", options=each)).pid for each in options)


def rows(ran):
    """(class, key) of each difference but the measured ones, which another load on this machine may make."""
    found = json.loads(ran.out)["differences"]
    return [(each["class"], each["key"]) for each in found if each["class"] != "measured"]


def test_two_jvms_differ_in_what_was_planted(pair, inprocess):
    """The collector with its pools and threads is a row, the heap another; names and PIDs are none."""
    ran = inprocess("compare", "live", "live", "--jvm", pair[0], "--jvm", pair[1], "-f", "json")
    assert rows(ran) == [("configured", "jvm.collector"), ("configured", "jvm.heap_max")]
    assert ran.code == 1


def test_two_jvms_of_one_configuration_are_alike(pair, inprocess):
    """They differ in PID, start and server.id."""
    assert rows(inprocess("compare", "live", "live", "--jvm", pair[0], "--jvm", pair[2], "-f", "json")) == []


def test_captures_of_one_machine_are_alike(pair, tmp_path, inprocess):
    """And a capture is like the live machine, and holds all that is compared."""
    one, other = (write_capture(tmp_path / f"{name}.tar.gz") for name in ("one", "other"))
    for sides_ in ((one, other), (one, "live"), (one, one)):
        ran = inprocess("compare", *sides_, "--jvm", pair[0], "-f", "json")
        assert rows(ran) == [], sides_
        assert json.loads(ran.out)["equal"] > 100
        assert json.loads(ran.out)["measured"] != "unknown"


def test_thread_dumps_are_drawn_and_histograms_listed(pair, tmp_path, inprocess):
    """A differential flame graph, and the classes that BAD holds more of."""
    made = [
        write_capture(
            tmp_path / f"{name}.tar.gz",
            [
                (f"{pair[0]}/threads", DUMP.format(name).encode()),
                (f"{pair[0]}/histogram", HISTOGRAM.format(count, count * 16).encode()),
            ],
        )
        for name, count in (("Slow", 900), ("Fast", 100))
    ]
    picture = tmp_path / "diff.svg"
    ran = inprocess("compare", *made, "--jvm", pair[0], "-o", picture)
    assert ran.code == 0, ran.err
    assert "app.Slow.run" in picture.read_text()
    assert "app.Fast.run" in picture.read_text()
    ran = inprocess("compare", *made, "--jvm", pair[0], "-f", "text")
    assert "histogram   app.Order: +12.5 KiB, +800 instances" in ran.out
    assert "-o diff.svg" in ran.out
    ran = inprocess("compare", made[0], "live", "--jvm", pair[0], "-o", tmp_path / "none.svg")
    assert ran.code == 2
    assert "holds no thread dump" in ran.err


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a cgroup")
def test_a_throttled_jvm_says_its_quota(inprocess):
    """The symptom comes first, and names the quota; the quota's echoes are one row with it."""
    with cgroups.new_cgroup("cpu", f"opskit-test-compare-{os.getpid()}", "cpu.cfs_quota_us cpu.cfs_period_us") as place:
        (place / "cpu.cfs_period_us").write_text("20000")
        (place / "cpu.cfs_quota_us").write_text("2000")
        with jvms.running("sleep=1") as good, jvms.running("burn=1:100") as bad:
            (place / "cgroup.procs").write_text(str(bad.pid))
            try:
                found = json.loads(
                    inprocess("compare", "live", "live", "--jvm", bad.pid, "--jvm", good.pid, "-f", "json").out
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
