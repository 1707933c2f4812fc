"""opskit cswitch on real processes: waits, pinned threads, the machine, rights, formats, watches, and every bad usage."""

from __future__ import annotations

import json
import os
import re
import subprocess
from functools import partial

import jvms
import maven
import promtext
import pytest
from answers import FORMATS, answer, no_thread, no_zombie, refused, valid
from hostcaches import wait_until
from imports import HEAVY, imported
from nextsteps import try_next
from shells import NOBODY
from stracing import ACTS, FORKS, OPENS, traced
from terminal import on_terminal

SOURCE = jvms.SOURCE.parent / "CpuLoad.java"
# Two processes that share one CPU; the PID of the second one is printed.
PAIR = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
child = os.fork()
if child: print(child, flush=True)
while True: pass
"""
SLEEPS = "import sys; print(1, flush=True); sys.stdin.read()"
TICKS = "import sys, time; print(1, flush=True)\nwhile True: time.sleep(0.01)"


@pytest.fixture
def of(inprocess):
    """The JSON object of a run, valid by its schema."""
    return partial(answer, inprocess, "cswitch")


@pytest.fixture
def pair(spawn):
    """Two processes that want the same CPU."""
    cpu = max(os.sched_getaffinity(0))
    return spawn(PAIR, cpu), cpu


def test_two_that_share_a_cpu(of, pair):
    """Each waits for about as long as it runs, on that CPU alone; together they take no more than there is."""
    first, cpu = pair
    document = of(first.pid, "-i", "1")
    [thread] = document["threads"]
    assert thread["tid"] == first.pid
    assert thread["allowed"] == [cpu]
    assert thread["cpu"] == cpu
    assert 0.3 < thread["waiting"] <= 1
    # Real-time threads of other tests may keep both from the CPU; a wait is counted when it ends.
    assert 0.4 < thread["running"] + thread["waiting"] < 1.05
    assert thread["involuntary_per_s"] > 0
    assert thread["average_wait_s"] == pytest.approx(thread["waiting"] / thread["slices_per_s"], rel=0.05)
    assert document["process"]["pid"] == first.pid
    assert document["process"]["start_ticks"]
    assert document["thread_count"] == 1


@pytest.mark.parametrize("format_", FORMATS)
def test_every_format_of_a_process_that_waits(inprocess, pair, format_):
    """Its thread, with what it waits."""
    first, _ = pair
    done = inprocess("cswitch", first.pid, "-i", "0.2", "-f", format_)
    assert done.code in (0, 1), done
    if format_ == "prometheus":
        assert 0 < promtext.value(promtext.parse(done.out), "opskit_cswitch_thread_waiting", tid=first.pid) <= 1
    elif format_ == "json":
        valid("cswitch", done.out)
    else:
        assert str(first.pid) in done.out
        assert "python" in done.out


@pytest.mark.parametrize("format_", FORMATS)
def test_the_machine_in_every_format(inprocess, pair, format_):
    """Both processes are among those that wait most."""
    first, _ = pair
    done = inprocess("cswitch", "-n", "0", "-i", "0.3", "-f", format_)
    assert done.code in (0, 1), done.err
    if format_ == "json":
        document = valid("cswitch", done.out)
        rows = {row["pid"]: row for row in document["processes"]}
        for pid in (first.pid, int(first.line)):
            assert rows[pid]["waiting"] > 0.1
            assert rows[pid]["worst_tid"] == pid
        assert document["threads"] is None
        assert sum(cpu["idle"] for cpu in document["cpus"]) <= len(document["cpus"])
    elif format_ == "prometheus":
        assert promtext.value(promtext.parse(done.out), "opskit_cswitch_process_waiting", pid=first.pid) > 0.1
    else:
        assert str(first.pid) in done.out
        assert first.line in done.out


def test_processes_of_a_user(of, root_only):
    """-u shows no others."""
    with subprocess.Popen(
        ["sh", "-c", "echo 1; while :; do sleep 0.01; done"],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        stdout=subprocess.PIPE,
    ) as own:
        try:
            own.stdout.readline()
            rows = of("-u", "nobody", "-i", "0.2")["processes"]
        finally:
            own.kill()
    assert own.pid in [row["pid"] for row in rows]
    assert {row["user"] for row in rows} == {"nobody"}


def test_a_process_that_sleeps(inprocess, of, spawn):
    """No empty table: the answer says what was looked at."""
    sleeper = spawn(SLEEPS, stdin=subprocess.PIPE)
    # On a busy machine it may take a while until it sleeps for good.
    wait_until(lambda: of(sleeper.pid, "-i", "0.2")["threads"] == [])
    document = of(sleeper.pid, "-i", "0.2", codes=(0,))
    assert (document["threads"], document["findings"]) == ([], [])
    assert str(sleeper.pid) in document["verdict"][0]
    out = inprocess("cswitch", sleeper.pid, "-i", "0.2", "-f", "table").out
    assert "waits   " not in out
    assert len(out.splitlines()) <= 4


def test_java_names_with_ask(of, workload):
    """Threads have the names of the dump in full, GC threads too; nothing is asked without --ask."""
    jvm = workload("burn=2:4")
    names = [thread["name"] for thread in of(jvm.pid, "--ask", "-i", "0.4")["threads"]]
    kernel = [thread["name"] for thread in of(jvm.pid, "-i", "0.4")["threads"]]
    assert any(len(name) > 15 for name in names), names
    assert all(len(name.encode("utf-8", "surrogateescape")) <= 15 for name in kernel), kernel


@pytest.fixture
def cpu_load():
    """Start CpuLoad on one CPU with these modes; all are killed at the end."""
    started = []

    def start(*modes):
        java = ["taskset", "-c", str(max(os.sched_getaffinity(0))), jvms.java(17), "-Xmx48m", "-XX:+UseSerialGC"]
        started.append(jvms.run([*java, "-cp", maven.classes(SOURCE), "CpuLoad", *modes]))
        return started[-1]

    yield start
    for each in started:
        each.stop()


def test_java_threads_that_starve(of, cpu_load):
    """Four on one CPU: the name in full, for how much of the time, and why; the commands that are printed give an answer."""
    jvm = cpu_load("spin=4")
    document = of(jvm.pid, "--ask", "-i", "1", codes=(1,))
    assert re.match(r"spin-[0-3] waits \d\d(\.\d)? % of the time for a CPU: ", document["verdict"][0])
    starved = [thread for thread in document["threads"] if thread["name"].startswith("spin-")]
    assert len(starved) == 4
    assert {thread["why"] for thread in starved} <= {"outnumbered", "pinned"}
    [code] = {finding["code"] for finding in document["findings"]} & {"jvm-cpu-wait", "thread-pinned-to-busy-cpu"}
    assert try_next(document["findings"], code).startswith("opskit ")


def test_java_threads_that_take_turns(of, cpu_load):
    """Both are named, with how often they wake each other; the next command shows the lock."""
    jvm = cpu_load("turns=1")
    for _ in range(8):  # real-time threads of other tests may hold its CPU
        document = of(jvm.pid, "--ask", "-i", "0.6")
        if any(finding["code"] == "thread-ping-pong" for finding in document["findings"]):
            break
    assert try_next(document["findings"], "thread-ping-pong") == f"opskit jpmp {jvm.pid} --locks"
    said = " ".join(document["verdict"])
    assert re.search(
        r"turn-[ab]-0 and turn-[ab]-0 wake each other [\d,]+ times a second by a lock or a condition\.", said
    )
    turns = {thread["tid"] for thread in document["threads"] if thread["name"].startswith("turn-")}
    assert {document["handoffs"][0]["first"], document["handoffs"][0]["second"]} == turns


def test_ask_without_a_jvm_is_said(inprocess, spawn):
    """Its threads have no Java names."""
    mover = spawn(TICKS)
    done = inprocess("cswitch", mover.pid, "--ask", "-i", "0.1", "-f", "text")
    assert done.code in (0, 1)
    assert f"--ask: {mover.pid} is not a JVM: its threads have no Java names" in done.err


def test_on_a_terminal_the_answer_fits_the_first_screen(pair):
    """80 x 24: verdict first; a watch shows the next command too."""
    first, _ = pair
    for words in ((str(first.pid), "-i", "0.2"), ("-i", "0.2")):
        _, shown = on_terminal("cswitch", *words, env={"NO_COLOR": "1"})
        lines = shown.replace("\r", "").splitlines()
        assert sum(-(-max(len(line), 1) // 80) for line in lines) <= 24, shown
        assert str(first.pid) in shown
    _, shown = on_terminal("cswitch", str(first.pid), "-w", "-c", "2", "-i", "0.2", env={"NO_COLOR": "1"})
    assert str(first.pid) in shown


def test_a_watch_has_a_sample_of_each_look(of, pair):
    """Each look is a window of its own; JSON has them all."""
    first, _ = pair
    document = of(first.pid, "-w", "-i", "0.2", "-c", "4")
    samples = document["samples"]
    assert len(samples) == 4
    assert [sample["at_s"] for sample in samples] == sorted({sample["at_s"] for sample in samples})
    assert all(0 <= sample["worst_waiting"] <= 1 for sample in samples)


def test_a_watch_ends_with_its_process(inprocess, spawn):
    """One line says so; what was seen is shown."""
    short = spawn(
        "import time; print(1, flush=True)\nend = time.monotonic() + 1\nwhile time.monotonic() < end: time.sleep(0.01)"
    )
    done = inprocess("cswitch", short.pid, "-w", "-i", "0.2", "-c", "60", "-f", "json")
    assert done.code in (0, 1)
    assert f"opskit: no process {short.pid}" in done.err
    assert json.loads(done.out)["process"]["pid"] == short.pid


def test_a_process_that_ends_within_the_window(inprocess, spawn):
    """One line, exit code 2; no traceback."""
    short = spawn("import time; print(1, flush=True); time.sleep(0.6)")
    done = inprocess("cswitch", short.pid, "-i", "2")
    assert (done.code, done.out) == (2, "")
    assert f"no process {short.pid}" in done.err


def test_another_users_process(as_user, inprocess, pair):
    """Waits, switches and CPUs are readable by everyone; the numbers are those that root sees."""
    first, _ = pair
    inprocess("cswitch", first.pid, "-i", "0.1", "-f", "json")  # nobody may not be able to import the modules
    inprocess("cswitch", "-i", "0.1", "-f", "json")
    document = json.loads(as_user(NOBODY, lambda: inprocess("cswitch", first.pid, "-i", "0.3", "-f", "json").out))
    [thread] = document["threads"]
    assert thread["waiting"] > 0.1
    assert thread["involuntary_per_s"] is not None


def test_nothing_is_written_sent_or_stopped(pair):
    """As its safety table says: it ends the children that measure a CPU with softirqs, if there are any."""
    first, _ = pair
    for words in (("cswitch", first.pid, "-i", "0.2"), ("cswitch", "-i", "0.2")):
        done = traced(*words, "-f", "text", calls=(*OPENS, *ACTS, *FORKS))
        assert done.code in (0, 1), done.err
        own = [*done.of(*FORKS), *(call for call in done.of("kill") if "SIGKILL" in call)]
        assert len(own) == 2 * len(done.of(*FORKS)), words
        assert [call for call in done.acting() if call not in own] == [], words


def test_imports(pair):
    """Text needs no heavy module, and no JSON object."""
    modules = imported("cswitch", pair[0].pid, "-i", "0.1", "-f", "text")
    assert not modules & (HEAVY - {"ctypes"})
    assert "opskit.render.views.cswitch.document" not in modules


def test_a_thread_a_zombie_and_nobody(inprocess, spawn):
    """Each has one line and exit code 2."""
    no_thread(inprocess, "cswitch", spawn)
    gone = ": it may have ended; opskit cswitch without a PID shows all"
    no_zombie(inprocess, "cswitch", "opskit: no process {pid}: it is a zombie: ", gone=gone)


BAD = {
    ("--ask",): "opskit: --ask goes with a process: opskit cswitch PID",
    ("1", "-u", "root"): "opskit: -u/--user chooses among the processes of the machine: leave out the PID or -u",
    ("-u", "no-such-user"): "opskit: -u no-such-user: no such user",
    ("1", "-c", "3"): "opskit: -c/--count goes with -w/--watch: add --watch",
    ("-i", "0"): "opskit cswitch: Invalid value for '-i' / '--interval': '0' is not a duration",
    ("0",): "opskit: '0' is not a PID",
    ("-5",): "opskit: cswitch: -5… is negative",
    ("1", "2"): "opskit cswitch: Got unexpected extra argument (2)",
    ("no-such-program",): "opskit: cswitch: 'no-such-program' is not a PID",
    ("1", "-o", "/tmp/x.png"): "opskit: -o /tmp/x.png: unknown suffix '.png'; known are .txt",
}


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_bad_usage(inprocess, words):
    """Exit code 2, and a line that says what to type."""
    refused(inprocess("cswitch", *words), BAD[words])
