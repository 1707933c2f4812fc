"""The processes with failed lookups, from the events of a source."""

from __future__ import annotations

import os

import pytest

from opskit.actions.trace_lookups import Tracer
from opskit.host import Host
from opskit.proc.kernel.ftrace import Failure


class Source:
    """Events without a kernel: (comm, tid, pid, call, count)."""

    events = "perf"

    def __init__(self, *seen):
        self.seen = seen
        self.asked = []

    def read(self):
        return {(comm, tid, pid) for comm, tid, pid, _, _ in self.seen}

    finish = read

    def failures(self):
        return [(Failure(comm, tid, call, pid), count) for comm, tid, pid, call, count in self.seen]

    def counted(self):
        total = sum(count for *_, count in self.seen)
        return total, total

    def paths(self, call, tid, *_):
        self.asked.append((call, tid))
        return ["/etc/absent"]


@pytest.fixture
def trace():
    """Trace a source for a moment; the answer."""
    reading, writing = os.pipe()
    yield lambda source: Tracer(Host.at(None, None), 0.01, ("perf",), reading)._trace(source)
    os.close(reading)
    os.close(writing)


GONE = 4_194_303  # a PID that no process has


def test_a_living_process_has_a_row_with_paths_of_its_busiest_thread(trace):
    """The system call and the thread with the most failed lookups are asked for paths."""
    me = os.getpid()
    source = Source((b"python", me, me, "openat", 10), (b"python", me, me, "stat", 30))
    answer = trace(source)
    [row] = answer["lookers"]
    assert (row["pid"], row["lookups"], row["calls"], row["ended"]) == (me, 40, {"stat": 30, "openat": 10}, False)
    assert row["paths"] == ["/etc/absent"]
    assert row["uid"] == os.getuid()
    assert source.asked == [("stat", me)]
    assert (answer["total"], answer["counted"], answer["events"]) == (40, 40, "perf")


def test_processes_that_were_never_seen_alive_share_a_row_per_command(trace):
    """Their PIDs are counted; there is nothing to ask for paths."""
    source = Source(
        (b"ls", GONE, GONE, "stat", 3), (b"ls", GONE - 1, GONE - 1, "stat", 4), (b"cp", GONE, GONE, "stat", 1)
    )
    first, second = trace(source)["lookers"]
    assert (first["pid"], first["command"], first["processes"], first["lookups"], first["ended"]) == (
        None,
        "ls",
        2,
        7,
        True,
    )
    assert (second["command"], second["paths"], source.asked) == ("cp", [], [])
