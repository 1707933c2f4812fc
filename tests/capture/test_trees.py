"""A capture of a captured tree: every command shows of it what `--root` shows, byte for byte."""

from __future__ import annotations

import pytest
from jvmtree import LIBJVM, PROGRAM, Tree
from taping import differences, lines_for, recorded, show, stopped, without_cpu_times

from opskit.host import Host
from opskit.recorded_host import RecordedHost

JVM, WRITER, READER = 40, 60, 61
PRESSURE = "some avg10=1.00 avg60=2.00 avg300=3.00 total=4000000\n"
MOUNTS = "21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n22 21 0:4 / /proc rw - proc proc rw\n23 21 0:9 / /tmp rw - tmpfs tmpfs rw,size=9k\n"


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """A machine with a JVM, two processes with a pipe between them, a deleted file, cgroups with limits, a socket."""
    root = tmp_path_factory.mktemp("machine")
    tree = Tree(root)
    tree.process(JVM, maps=PROGRAM + LIBJVM + tree.perf(str(JVM)))
    tree.process(WRITER, ("producer",), threads=2)
    tree.process(READER, ("consumer", "--password", "x"), threads=1)
    tree.process(1, ("init",), threads=1)
    for pid, fds in (
        (WRITER, {1: "pipe:[77]", 3: "/var/log/app.log (deleted)", 4: "socket:[99]"}),
        (READER, {0: "pipe:[77]"}),
    ):
        for number, target in fds.items():
            (root / f"proc/{pid}/fd").mkdir(exist_ok=True)
            (root / f"proc/{pid}/fd/{number}").symlink_to(target)
            tree.write(f"proc/{pid}/fdinfo/{number}", "pos:\t0\nflags:\t0100001\nmnt_id:\t14\n")
    for pid in (1, JVM, WRITER, READER):
        tree.write(f"proc/{pid}/cgroup", "0::/app.slice\n" if pid > 1 else "0::/\n")
        tree.write(f"proc/{pid}/mountinfo", MOUNTS)
        tree.write(f"proc/{pid}/limits", LIMITS)
        tree.write(f"proc/{pid}/wchan", "pipe_read")
        (root / f"proc/{pid}/root").symlink_to("/")
    for path, text in FILES.items():
        tree.write(path, text)
    return root


LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max processes             100                  100                  processes
Max open files            1024                 4096                 files
Max stack size            8388608              unlimited            bytes
"""
FILES = {
    "proc/meminfo": "MemTotal: 8000000 kB\nMemFree: 100000 kB\nMemAvailable: 200000 kB\nSlab: 900000 kB\nSReclaimable: 800000 kB\n"
    "CommitLimit: 9000000 kB\nCommitted_AS: 8900000 kB\nSwapTotal: 1000 kB\nSwapFree: 10 kB\n",
    "proc/slabinfo": "slabinfo - version: 2.1\n# name <active_objs>\ndentry 900000 900000 192 21 1 : tunables 0 0 0 : slabdata 42858 42858 0\n",
    "proc/sys/fs/dentry-state": "900000 800000 45 0 700000 0\n",
    "proc/sys/kernel/hostname": "captured\n",
    "proc/sys/kernel/threads-max": "1000\n",
    "proc/sys/kernel/pid_max": "32768\n",
    "proc/loadavg": "1.0 2.0 3.0 1/16 99\n",
    "proc/vmstat": "nr_free_pages 25000\npgmajfault 12\noom_kill 1\n",
    "proc/net/tcp": "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000005 00:00000000 00000000     0        0 99 1 0 100 0 0 10 0\n",
    **{f"proc/pressure/{name}": PRESSURE for name in ("cpu", "io", "memory")},
    "sys/fs/cgroup/cgroup.controllers": "cpu memory pids\n",
    "sys/fs/cgroup/app.slice/pids.max": "20\n",
    "sys/fs/cgroup/app.slice/pids.current": "19\n",
    "sys/fs/cgroup/app.slice/memory.max": "1000000\n",
    "sys/fs/cgroup/app.slice/memory.current": "990000\n",
    "sys/fs/cgroup/app.slice/cgroup.procs": f"{JVM}\n{WRITER}\n{READER}\n",
    "sys/fs/cgroup/app.slice/memory.events": "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n",
}


@pytest.fixture(scope="module")
def tape(machine):
    """The machine on a tape."""
    found, ran = recorded(Host.at(str(machine), None), (JVM, WRITER, READER))
    assert [line for line, why in ran.without if "bug" in why] == []
    return found


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_capture_shows_what_its_tree_shows(machine, tape, form):
    """Output, messages and exit code are the same, also where a command refuses."""
    unlike = {}
    for line in lines_for(pids=(JVM, WRITER, READER), jvms=(JVM,)):
        live = show(stopped(Host.at(str(machine), None), tape.marks[0]), f"{line} -f {form}")
        replayed = show(RecordedHost(tape), f"{line} -f {form}")
        if line.startswith("doctor"):  # the CPU time of its checks; there is none of a replay
            live, replayed = (without_cpu_times(ran) for ran in (live, replayed))
        if live.code == replayed.code == 2 and not live.out:  # the message tells that it is a capture
            continue
        if live != replayed:
            unlike[line] = differences(live, replayed)
    assert unlike == {}
