"""OOM kills in the quick form."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from cgroups import new_cgroup
from nextsteps import try_next

from opskit.analysis.oom_quick import judge_quick
from opskit.checks.look import Look
from opskit.checks.oom import check
from opskit.collect.oom import Facts, Known
from opskit.collect.oom_quick import Quick
from opskit.errors import NotSupported
from opskit.host import Host
from opskit.proc.oom.lines import When
from opskit.proc.oom.records import Kill

ALLOCATE = "kept = bytearray(64 << 20)"
HOUR = 3600.0


def facts(**given):
    return Facts((), (), (), is_live=True, end=When(1e9, 1e6, 1e9, "now"), uptime_s=1e6)._replace(**given)


def kill(ago_s, cgroup="/app.service", name="java"):
    when = When(1e9 - ago_s, 1e6 - ago_s, 1e9 - ago_s, "then")
    return Known(Kill(4242, name, "killed", when, scope="cgroup", cgroup=cgroup, task_cgroup=cgroup), "the kernel's log", ago_s)


def codes(quick):
    return [(finding.code, finding.severity) for finding in judge_quick(quick)]


def test_a_machine_without_kills_is_healthy():
    """The counter is 0: no log is read."""
    assert codes(Quick(None, 0, 1.0)) == []


def test_kills_of_a_day_and_older_ones():
    """An error within 24 h, then a note."""
    assert codes(Quick(facts(kills=(kill(HOUR),), counted=1), 0, 1.0)) == [("oom-killed", "error")]
    old = Quick(facts(kills=(kill(25 * HOUR),), counted=1), 0, 1.0)
    assert codes(old) == [("oom-killed", "note")]
    assert try_next(judge_quick(old), "oom-killed") == "opskit oom"


def test_kills_that_only_a_counter_tells_have_no_time():
    """A note, also on a young machine; in the window an error."""
    assert codes(Quick(facts(counted=3, uptime_s=HOUR), 0, 1.0)) == [("oom-counted", "note")]
    gained = Quick(facts(counted=3), 1, 1.0)
    assert codes(gained) == [("oom-counted", "error")]
    assert judge_quick(gained)[0].summary == "the OOM killer has killed 1 process in the last 1.0 s"
    assert codes(Quick(facts(kills=(kill(0.5),), counted=3), 1, 1.0))[0] == ("oom-killed", "error")


def test_processes_that_were_asked_about_hear_of_their_cgroups():
    """By its counter, where no log names the kill."""
    [found] = judge_quick(Quick(facts(counted=2), 0, 1.0, frozenset({"/a", "/a/b"})))
    assert (found.severity, found.entity.id) == ("note", "/a/b")


def test_cgroups_that_are_gone():
    """One note for all."""
    [found] = judge_quick(Quick(facts(counted=0), 0, 1.0, gone=(kill(2 * HOUR), kill(HOUR, "/x", "python"))))
    assert (found.severity, found.entity.inside.id) == ("note", "/x")
    assert found.summary.startswith("2 processes were killed for memory in cgroups that are gone, the last python")


def test_a_copy_has_no_counters_that_move(tree):
    """Its logs are read by `opskit oom`."""
    with pytest.raises(NotSupported):
        check(Look(Host.at(str(tree({"proc/meminfo": "MemTotal: 1 kB\n"})), None)))


@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK), reason="needs to read /dev/kmsg")
@pytest.mark.usefixtures("root_only", "initial_pid_namespace")
def test_a_process_that_the_kernel_kills():
    """An error while its cgroup exists, for the machine and for a process of it; a note when it is gone."""
    name = f"opskit-test-quick-oom-{os.getpid()}"
    look = Look(Host.at(None, None), window_s=0.0)
    with new_cgroup("memory", name, "memory.limit_in_bytes memory.max") as place:
        for limit in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max", "memory.swap.max"):
            if (place / limit).exists():
                (place / limit).write_text(str(0 if "swap.max" in limit else 30 << 20))
        join = f"echo $$ > {place}/cgroup.procs; exec"
        done = subprocess.run(["sh", "-c", f'{join} "$@"', "sh", sys.executable, "-c", ALLOCATE], check=False)
        assert done.returncode == -9
        with subprocess.Popen(["sh", "-c", f"{join} sleep 60"]) as other:
            assert of(check(look), name) == ["error"]
            deadline = time.monotonic() + 10
            while f"/{name}" not in _cgroups_of(other.pid) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert of(check(look._replace(pids=(other.pid,))), name) == ["error"]
            other.kill()
    assert "error" not in of(check(look), name)


def of(outcome, name):
    return [each.severity for each in outcome.findings if each.entity.inside and name in str(each.entity.inside.id)]


def _cgroups_of(pid):
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
        return file.read()
