"""`opskit jpmp --sampler asprof` and `perf-map` on real JVMs: stacks, units, what is said of what stays, and of what is refused."""

from __future__ import annotations

import json

import asyncprofiler
import pytest

SHORT = ("--duration", "0.4s")


@pytest.fixture
def asked(inprocess):
    """`opskit jpmp PID --sampler asprof` with the profiler of the tests."""

    def run(running, *more, library=None):
        asprof = library or asyncprofiler.library()
        return inprocess("jpmp", running.pid, "--sampler", "asprof", "--asprof", asprof, *SHORT, *more)

    return run


def test_cpu_time(workload, asked):
    """As text, as JSON with marks, as a picture: the same profile as of the other samplers, and a footer with what stays."""
    running = workload("burn=2", version=21)
    done = asked(running, "--on-cpu", "-f", "text", "-F", "199")
    assert done.code in (0, 1)
    assert "Workload.work,Workload.burnForever" in done.out
    for said in (
        "sampler async-profiler 4.0 (ctimer, loaded from /", "199 Hz for ", "of the CPU time explained", "stays loaded in the JVM",
        "the attach listener of the JVM, which this run started, stays too", "ctimer samples no kernel frames",
    ):  # fmt: skip
        assert said in done.out + done.err
    document = json.loads(asked(running, "--on-cpu", "--by-thread", "-f", "json").out)
    assert {stack["frames"][-1] for stack in document["stacks"]} >= {"burn-2"}
    assert (document["profiler"]["sampler"], document["profiler"]["event"]) == ("asprof", "ctimer")
    assert len(document["profiler"]["stays"]) == 1
    folded = asked(running, "-f", "folded").out
    assert "Workload.work_[j] " in folded
    assert asked(running, "--on-cpu", "-f", "svg").out.startswith("<")


def test_other_events_have_their_units(workload, asked):
    """Bytes for allocations; threads that sleep with wall."""
    running = workload("allocate=100000000", "sleep=1", version=17)
    done = asked(running, "--event", "alloc", "-f", "text")
    assert "byte[],Workload" in done.out
    assert " MiB allocated in " in done.out + done.err
    assert "Hz" not in done.out + done.err
    assert json.loads(asked(running, "--event", "alloc", "-f", "json").out)["profiler"]["unit"] == "bytes"
    assert "Thread.sleep" in asked(running, "--event", "wall", "-f", "text").out


def test_what_is_refused(workload, inprocess, asked, tmp_path):
    """One line, exit code 2, and nothing reaches the JVM."""
    running = workload("burn=1", version=21)
    (tmp_path / "libasyncProfiler.so").write_text("no library")
    for library, says in (
        ("/nowhere", "--asprof /nowhere: no such file or directory"),
        (tmp_path, "is not an ELF shared library"),
    ):
        done = asked(running, library=library)
        assert (done.code, done.out) == (2, "")
        assert says in done.err
        assert done.err.count("\n") == 1
    done = inprocess("jpmp", running.pid, "--on-cpu", "--sampler", "perf-map", *SHORT)
    assert (done.code, done.out) == (2, "")
    assert "runs without -XX:+PreserveFramePointer" in done.err
    assert done.err.count("\n") == 1
    assert running.output() == "READY"


def test_a_perf_map(workload, inprocess, root_only):
    """Names of compiled methods, and a line about those that have none."""
    running = workload("burn=2", version=21, options=("-Xmx64m", "-XX:+PreserveFramePointer"))
    done = inprocess("jpmp", running.pid, "--on-cpu", "--sampler", "perf-map", "-F", "199", *SHORT, "-f", "text")
    assert done.code in (0, 1)
    assert "Workload.work,Interpreter" in done.out
    assert "interpreted methods have no names in a perf map" in done.out + done.err
