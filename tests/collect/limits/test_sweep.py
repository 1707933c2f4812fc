"""The limits of the whole machine: of a tree, and of a real cgroup."""

from __future__ import annotations

import subprocess
import sys

import pytest
from cgroups import new_cgroup
from nextsteps import try_next

from opskit.analysis.limits.sweep import judge
from opskit.collect.limits.sweep import Request, collect
from opskit.host import Host

MOUNT = "31 23 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max processes             {}                  100                  processes
Max open files            1024                 4096                 files
"""
STATUS = "Name:\tapp\nTgid:\t{0}\nUid:\t1000\t1000\t1000\t1000\nGid:\t1\t1\t1\t1\nThreads:\t{1}\nCapEff:\t{2}\n"


def process(pid, threads, soft="100", capabilities="0000000000000000"):
    """The files of a process of user 1000."""
    at = f"proc/{pid}"
    fields = f"S 1 1 1 0 -1 0 0 0 0 0 5 5 0 0 20 0 {threads} 0 77 0 0"
    return {
        f"{at}/limits": LIMITS.format(soft), f"{at}/status": STATUS.format(pid, threads, capabilities),
        f"{at}/stat": f"{pid} (app) {fields}\n", f"{at}/comm": "app\n",
    }  # fmt: skip


@pytest.fixture
def host(tree):
    def make(files):
        sysctl = {f"proc/sys/kernel/{name}": "5000\n" for name in ("threads-max", "pid_max")}
        root = tree({
            "proc/meminfo": "MemTotal: 1 kB\n", "proc/loadavg": "0 0 0 1/120 9\n", "proc/1/mountinfo": MOUNT,
            "sys/fs/cgroup/cgroup.controllers": "pids\n", **sysctl, **files,
        })  # fmt: skip
        return Host.at(str(root), None)

    return make


def test_each_cgroup_with_a_limit(host):
    """Those without one, or with room, are left out; the process with the most threads is that of the cgroup and below."""
    at = "sys/fs/cgroup"
    machine = host({
        **{f"{at}/many/c{number}/pids.max": "max\n" for number in range(300)},
        f"{at}/app.service/pids.max": "40\n", f"{at}/app.service/pids.current": "39\n",
        f"{at}/app.service/cgroup.procs": "5\n", f"{at}/app.service/sub/cgroup.procs": "6\n7\n",
        f"{at}/roomy/pids.max": "40\n", f"{at}/roomy/pids.current": "10\n",
        **process(5, 1), **process(6, 30), **process(7, 8),
    })  # fmt: skip
    facts = collect(machine, Request(0.0))
    assert (facts.cgroups, facts.processes) == (304, 3)
    [task] = facts.tasks
    assert (task.path, task.used, task.limit, task.members.processes) == ("/app.service", 39, 40, 3)
    assert (task.members.main.pid, task.members.main.name, task.members.main.start_ticks) == (6, "app", 77)


def test_a_user_that_has_used_up_its_processes(host):
    """All threads of the uid count; a process with CAP_SYS_RESOURCE has no limit."""
    full = {**process(5, 60), **process(6, 38, "unlimited")}
    [user] = collect(host(full), Request(0.0)).users
    assert (user.uid, user.limit, user.threads, user.largest.pid) == (1000, 100, 98, 5)


def test_users_with_room_or_without_a_limit(host):
    """Nothing is near: one has the capability, the others have room."""
    files = {**process(5, 98, capabilities="0000000001000000"), **process(6, 1, "unlimited")}
    facts = collect(host(files), Request(0.0))
    assert (facts.users, facts.totals) == ((), ())


@pytest.mark.usefixtures("root_only")
def test_a_real_cgroup_at_its_limit():
    """A thread more cannot start: the count of refused ones grows within the window."""
    program = """
import threading, time
def start():
    try:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    except RuntimeError:
        pass
print("READY", flush=True); input()
while True:
    start(); time.sleep(0.01)
"""
    with (
        new_cgroup("pids", "opskit-test-sweep.service", "pids.max") as place,
        subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
    ):
        try:
            process.stdout.readline()
            (place / "pids.max").write_text("7")
            (place / "cgroup.procs").write_text(str(process.pid))
            process.stdin.write(b"\n")
            process.stdin.flush()
            facts = _until_full(place)
            findings = [each for each in judge(facts) if each.entity.id == "/opskit-test-sweep.service"]
            [one] = findings
            assert (one.code, one.severity) == ("threads-none-left", "error")
            assert f"its process is {process.pid} (" in one.summary
            assert one.next == f"opskit limits {process.pid}"
            assert try_next(findings, "threads-none-left")
        finally:
            process.kill()


def _until_full(place):
    while int((place / "pids.current").read_text()) < 7:
        pass
    return collect(Host.at(None, None), Request(0.05))
