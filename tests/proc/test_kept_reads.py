"""Reads that are kept for a run: the same values as without, none of a counter, and no file that hangs is asked twice."""

from __future__ import annotations

import os
import threading

import pytest
from eachof import each_of
from lesser import call

from opskit.errors import BadInput
from opskit.jvm.discover import survey
from opskit.jvm.launch import parse_words
from opskit.proc.files.limits import parse_limits
from opskit.proc.files.mountinfo import parse_remote_mount_points
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.uid_map import parse_id_map
from opskit.proc.fs import ProcFS, optional
from opskit.proc.kept_reads import Hangs, KeptReads
from opskit.proc.process import read_process, real_uid

# Counters and states, of which rates and changes are made: by their directory below /proc and /sys.
COUNTED = (
    "stat", "vmstat", "meminfo", "uptime", "loadavg", "diskstats", "schedstat", "interrupts", "softirqs", "net/dev", "net/netstat",
    "net/snmp", "net/softnet_stat", "pressure/cpu", "self/stat", "self/schedstat", "self/io", "self/statm", "self/task/1/status",
    "self/sched", "self/wchan", "self/syscall", "self/smaps_rollup", "locks", "slabinfo", "buddyinfo", "sys/fs/file-nr",
    "sys/fs/dentry-state",
)  # fmt: skip
CGROUP = (
    "cpu.stat",
    "memory.stat",
    "memory.events",
    "memory.current",
    "io.stat",
    "pids.current",
    "pids.events",
    "cpu.pressure",
)
STEADY = {
    "status": real_uid, "cmdline": parse_words, "comm": str, "limits": parse_limits,
    "mountinfo": parse_remote_mount_points, "uid_map": parse_id_map,
}  # fmt: skip


class Counting(ProcFS):
    """Counts how often each path is read."""

    def __init__(self):
        super().__init__()
        self.paths = []

    def read_path(self, path, *rest):
        self.paths.append(path)
        return super().read_path(path, *rest)


@pytest.fixture
def fs():
    made = Counting()
    made.kept = KeptReads()
    return made


def test_the_same_values_as_without(fs):
    """Of every process that lives on: each parser's record, the identity, the links."""
    plain = ProcFS()
    for pid in (os.getpid(), os.getppid(), 1, 2):
        for name, parse in STEADY.items():
            for _ in range(2):
                assert optional(fs.load, parse, pid, name) == optional(plain.load, parse, pid, name), name
        for link in (("exe",), ("ns", "net")):
            for _ in range(2):
                assert optional(fs.link, pid, *link) == optional(plain.link, pid, *link)
    assert read_process(fs, os.getpid(), str)._replace(state=None) == read_process(plain, os.getpid(), str)._replace(
        state=None
    )


def test_each_is_read_once(fs):
    """By each parser; a survey of all JVMs reads no maps twice."""
    for _ in range(3):
        for name, parse in STEADY.items():
            optional(fs.load, parse, os.getpid(), name)
        survey(fs)
    assert (
        max(fs.paths.count(path) for path in fs.paths if path.endswith((*STEADY, "maps")) and "/task/" not in path) == 1
    )


@each_of("path", [*(f"/proc/{each}" for each in COUNTED), *(f"/sys/fs/cgroup/a/{each}" for each in CGROUP)])
def test_a_counter_is_read_each_time(path):
    """A rate needs two values."""
    values = iter(range(9))
    kept = KeptReads()
    assert [kept.load(lambda _parse, _path: next(values), str, path) for _ in range(3)] == [0, 1, 2]


def test_stat_moves(fs):
    """The CPU time of a process is never of an earlier moment."""
    first = fs.load(parse_stat, "self", "stat").user_ticks
    while fs.load(parse_stat, "self", "stat").user_ticks == first:
        pass


def test_missing_rights_are_kept():
    """1,000 processes of others are not asked again by each check; the error is the same."""

    def ask():
        fs = Counting()
        fs.kept = KeptReads()
        errors = []
        for _ in range(3):
            try:
                fs.load(str, 1, "maps")
            except PermissionError as error:
                errors.append((error.errno, error.strerror, error.filename))
        return errors, fs.paths

    errors, paths = call(ask, uid=65534)
    assert (errors, paths) == ([(13, "Permission denied", "/proc/1/maps")] * 3, ["/proc/1/maps"])


def test_what_was_malformed_is_read_again(fs):
    """Each asker gets the error with the path."""

    def refuse(_text):
        raise BadInput("status", "odd")

    for _ in range(2):
        with pytest.raises(BadInput, match="/proc/self/status: odd"):
            fs.load(refuse, "self", "status")
    assert fs.paths == ["/proc/self/status"] * 2


def test_a_large_text_is_not_kept(fs):
    """The maps of a thousand processes would take more memory than all else."""
    for _ in range(2):
        fs.load(str, "self", "maps")
    assert fs.paths == ["/proc/self/maps"] * 2


def test_a_walk_is_made_once():
    """By its key."""
    kept, made = KeptReads(), []
    assert [kept.once("key", lambda: made.append(1) or len(made)) for _ in range(3)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("path", "refused", "allowed"),
    [
        (
            "/proc/7/cmdline",
            ("/proc/7/maps", "/proc/7/task/8/smaps", "/proc/7/environ"),
            ("/proc/7/stat", "/proc/77/maps"),
        ),
        ("/proc/7/map_files/1-2", ("/proc/7/cmdline", "/proc/7/map_files/3-4"), ("/proc/7/status", "/proc/7/fd")),
        ("/mnt/dead", ("/mnt/dead",), ("/mnt/deadly", "/mnt", "/proc/7/maps")),
        ("/proc/7/io", ("/proc/7/io",), ("/proc/7/maps",)),
    ],
)
def test_what_hangs_is_refused(path, refused, allowed):
    """The same path, and with any file of a process's memory all the others: they wait for the same lock."""
    kept = KeptReads()
    kept.refuse(path)
    for each in refused:
        with pytest.raises(Hangs) as error:
            kept.ask(each, str)
        assert (error.value.filename, error.value.strerror) == (each, "reading it hangs")
    assert [kept.ask(each, str.upper, "x") for each in allowed] == ["X"] * len(allowed)


def test_who_reads_what():
    """A thread's path is known while it reads, and not after."""
    kept, begun, end = KeptReads(), threading.Event(), threading.Event()

    def hang(_path):
        begun.set()
        end.wait(20)

    reader = threading.Thread(target=lambda: kept.ask("/dead", hang, "/dead"))
    reader.start()
    begun.wait(20)
    assert kept.asked_by(reader.ident) == "/dead"
    end.set()
    reader.join()
    assert kept.asked_by(reader.ident) is None
