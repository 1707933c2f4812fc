"""The table of what a capture reads again at each sample has all that commands read twice."""

from __future__ import annotations

import re

import jvms
import pytest
from ownspaces import in_own_pids
from taping import sampled

from opskit import cli
from opskit.collect.capture.counters import is_counter
from opskit.commands.shared.every_command import _run
from opskit.commands.shared.unseen import Unseen
from opskit.host import Host
from opskit.proc.fs import ProcFS
from opskit.proc.recorded import tape as kinds
from opskit.proc.recorded.kept import KeptByMark
from opskit.proc.recorded.tape import Tape
from opskit.recorded_host import RecordedHost

LINES = ("cswitch", "io -v", "irqs -v", "jvms", "pipes --fill", "tcp -v", "doctor")
# Read at each look, and the same in all of them: configuration, identity, topology; of what is big, a state at the end of the window.
STEADY = re.compile(
    r"/proc/(?:\d+|self)/(?:cgroup|cmdline|comm|limits|maps|mem|mountinfo|task/\d+/(?:comm|children))"
    r"|/proc/\d+/root/.*/release|/proc/sys/.*|/sys/devices/system/(?:cpu|node)/.*|/sys/fs/cgroup/.*/(?:\w+\.limit_in_bytes|cpu\.cfs_\w+|cpu\.max|memory\.(?:max|high|swap\.max)"
    r"|memory\.swappiness|release_agent|cgroup\.(?:type|controllers|procs)|blkio\.throttle\.(?:read|write)_\w+|io\.max|pids\.max|cpuset\.[\w.]+)"
)


def test_what_is_read_at_two_moments_is_sampled(root_only):
    """Each file that a command reads at two samples is a counter, or known to be steady."""
    twice = in_own_pids(read_twice)
    assert {"/proc/stat", "/proc/softirqs", "/proc/diskstats"} <= twice
    assert [path for path in twice if "/hsperfdata_" in path]
    assert [path for path in sorted(twice) if not is_counter(path) and not STEADY.fullmatch(path)] == []


def read_twice():
    """The files that a command reads at both samples of a capture, on a machine with a JVM."""
    seen: dict[str, set[int]] = {}
    find = Tape.find

    def logged(self, kind, key, mark):
        if kind == kinds.FILE:
            seen.setdefault(key, set()).add(mark)
        return find(self, kind, key, mark)

    jvms.start("sleep=1")
    machine = Host(ProcFS())
    recorded = RecordedHost(sampled(machine, 0.05), machine.fs)
    recorded.fs.kept = KeptByMark(recorded.clock)
    Tape.find = logged
    twice = set()
    for line in LINES:
        seen.clear()
        recorded.rewind()
        assert _run(cli.group, Unseen(recorded), line) is None, line
        twice |= {path for path, marks in seen.items() if len(marks) > 1}
    return twice


@pytest.mark.parametrize(
    "path",
    [
        "/proc/1/stat", "/proc/1/task/2/schedstat", "/proc/stat", "/proc/thread-self/net/netstat", "/proc/pressure/io", "/proc/9/fdinfo/3",
        "/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "/sys/class/net/lo/statistics/rx_bytes", "/proc/9/root/tmp/hsperfdata_me/9",
        "/srv/copy/proc/vmstat", "/sys/block/sda/stat", "/sys/fs/btrfs/0-1/devinfo/1/error_stats",
    ],
)  # fmt: skip
def test_counters(path):
    """Counters of the machine, of processes and threads, cgroups, devices and JVMs."""
    assert is_counter(path)


@pytest.mark.parametrize(
    "path",
    [
        "/proc/1/cmdline",
        "/proc/1/maps",
        "/etc/passwd",
        "/proc/sys/vm/swappiness",
        "/proc/1/fd/3",
        "/tmp/hsperfdata_me/x",
    ],
)
def test_what_is_read_once(path):
    """All else."""
    assert not is_counter(path)
