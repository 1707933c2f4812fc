"""OOM kills in the quick form."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from cgroups import new_cgroup
from nextsteps import try_next

from opskit.analysis.finding import HOST
from opskit.analysis.oom_quick import judge_quick
from opskit.checks.look import Look
from opskit.checks.oom import check
from opskit.collect import oom_quick
from opskit.collect.oom_quick import Quick, QuickKill
from opskit.host import Host
from opskit.proc.kernel.kmsg import KernelLog

ALLOCATE = "kept = bytearray(64 << 20)"
HOUR = 3600.0


def kill(ago_s, cgroup="/app.service", name="java", **given):
    return QuickKill(4242, name, cgroup, cgroup, ago_s)._replace(**given)


def look(*kills, counted=None, gained=0, **given):
    return Quick(kills, len(kills) if counted is None else counted, gained, 1.0)._replace(**given)


def codes(quick):
    return [(finding.code, finding.severity) for finding in judge_quick(quick)]


def test_a_machine_without_kills_is_healthy():
    """The counter is 0: no log is read."""
    assert codes(look()) == []


def test_kills_of_a_day_and_older_ones():
    """An error within 24 h, then a note; one finding for a program and its limit."""
    [found] = judge_quick(look(kill(3 * HOUR), kill(HOUR)))
    assert (found.severity, found.entity.inside.id) == ("error", "/app.service")
    assert found.summary == "4242 (java) was killed at the memory limit of /app.service, 1 h 0 min ago, 2 times"
    old = look(kill(25 * HOUR, None))
    assert codes(old) == [("oom-killed", "note")]
    assert try_next(judge_quick(old), "oom-killed") == "opskit oom"
    assert "machine was out of memory" in judge_quick(old)[0].summary
    many = look(*(kill(HOUR, f"/{number}") for number in range(9)))
    assert [each.summary for each in judge_quick(many)][-1].startswith("4 more processes were killed")


def test_kills_that_only_a_counter_tells_have_no_time():
    """A note; in the window an error."""
    assert codes(look(counted=3)) == [("oom-counted", "note")]
    gained = look(counted=3, gained=1)
    assert codes(gained) == [("oom-counted", "error")]
    assert judge_quick(gained)[0].summary == "the OOM killer has killed 1 process in the last 1.0 s"
    assert codes(look(kill(0.5), counted=1, gained=1)) == [("oom-killed", "error")]
    assert codes(look(kill(600.0), counted=1, gained=1, drift_s=3000.0)) == [("oom-killed", "error")]


def test_processes_that_were_asked_about_hear_of_their_cgroups():
    """By its counter, where no log names the kill."""
    [found] = judge_quick(look(counted=2, paths=frozenset({"/a", "/a/b"})))
    assert (found.severity, found.entity.id) == ("note", "/a/b")


def test_cgroups_that_are_gone():
    """One note for all."""
    [found] = judge_quick(look(kill(2 * HOUR, is_gone=True), kill(HOUR, "/x", "python", is_gone=True)))
    assert (found.severity, found.entity) == ("note", HOST)
    assert (
        found.summary == "2 processes were killed for memory in cgroups that are gone, the last python, 1 h 0 min ago"
    )


def test_a_log_that_begins_in_a_report(monkeypatch):
    """The limit of which cgroup it was has been overwritten: it was not the machine's."""
    end = "Killed process 4242 (java) total-vm:78056kB, anon-rss:30464kB, file-rss:5780kB, shmem-rss:0kB"
    for text, expected in ((f"Memory cgroup out of memory: {end}", []), (f"Out of memory: {end}", [4242])):
        log = KernelLog(f"<3>[  100.000000] {text}", False)
        monkeypatch.setattr("opskit.collect.kernel_log.kernel_log", lambda _, log=log: log)
        assert [each.pid for each in oom_quick._kills(Host.at(None, None), log.text)] == expected


def test_a_copy_has_no_counters_that_move(tree):
    """Its logs are read by `opskit oom`."""
    [gap] = check(Look(Host.at(str(tree({"proc/meminfo": "MemTotal: 1 kB\n"})), None))).gaps
    assert gap.what == "OOM kills"


@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK), reason="needs to read /dev/kmsg")
@pytest.mark.usefixtures("root_only", "initial_pid_namespace")
def test_a_process_that_the_kernel_kills():
    """An error while its cgroup exists, for the machine and for a process of it; a note when it is gone."""
    name = f"opskit-test-quick-oom-{os.getpid()}"
    machine = Look(Host.at(None, None), window_s=0.0)
    with new_cgroup("memory", name, "memory.limit_in_bytes memory.max") as place:
        for limit in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max", "memory.swap.max"):
            if (place / limit).exists():
                (place / limit).write_text(str(0 if "swap.max" in limit else 30 << 20))
        join = f"echo $$ > {place}/cgroup.procs; exec"
        done = subprocess.run(["sh", "-c", f'{join} "$@"', "sh", sys.executable, "-c", ALLOCATE], check=False)
        assert done.returncode == -9
        with subprocess.Popen(["sh", "-c", f"{join} sleep 60"]) as other:
            assert of(check(machine), name) == ["error"]
            deadline = time.monotonic() + 10
            while f"/{name}" not in _cgroups_of(other.pid) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert of(check(machine._replace(pids=(other.pid,))), name) == ["error"]
            other.kill()
    found = check(machine).findings
    assert not [each for each in found if each.severity == "error" and name in each.summary]
    assert "note" in {each.severity for each in found if each.code == "oom-killed"}


def of(outcome, name):
    return [each.severity for each in outcome.findings if each.entity.inside and name in str(each.entity.inside.id)]


def _cgroups_of(pid):
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
        return file.read()
