"""What is read about a process's limits, without click and without a terminal."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from trees import Link

from opskit.collect.limits.collect import collect, request_for
from opskit.collect.limits.program import cpu_count
from opskit.errors import NoSuchProcess, NotSupported, UsageError
from opskit.host import Host

WITHOUT_CLICK = """
import sys
from opskit.analysis.limits.judge import judge
from opskit.collect.limits.collect import collect, request_for
from opskit.host import Host
host = Host.at(None, None)
print(judge(collect(host, request_for(host, None, uses=True))).headroom.threads_left)
print([name for name in ("click", "rich") if name in sys.modules])
"""

STATUS = "Name:\tx\nPPid:\t0\nUid:\t5\t5\t5\t5\nGid:\t5\t5\t5\t5\nThreads:\t1\n"


def test_collect_and_judge_need_no_click():
    """And give a number for this very process."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_CLICK], capture_output=True, text=True, check=True, env={**os.environ}
    )
    left, imported = done.stdout.splitlines()
    assert int(left) > 0
    assert imported == "[]"


def test_this_process():
    """Its own limits, ancestors and cgroups."""
    host = Host.at(None, None)
    facts = collect(host, request_for(host, os.getpid(), uses=False))
    assert facts.pid == os.getpid()
    assert facts.ancestors[0].pid == os.getppid()
    assert facts.sysctl["kernel.threads-max"] > 0
    assert facts.cpu_s is None
    assert facts.unreadable == {}


def test_what_a_copy_lacks_has_a_reason(tree):
    """Each file that is not there, by its name; the rest is read."""
    root = tree({"proc/1/status": STATUS, "proc/9/status": STATUS, "proc/9/limits": "x\n", "proc/9/stat": ""})
    host = Host.at(str(root), None)
    facts = collect(host, request_for(Host.at(str(root), None), 1, uses=True))
    assert facts.unreadable["maps"] == "not in this proc tree"
    assert facts.pids.unknown == "/proc/1/cgroup is not in this proc tree"
    assert (facts.limits, facts.sysctl, facts.total_tasks, facts.open_files) == ({}, {}, None, None)
    assert facts.tasks.of_uid(5) == 2
    assert facts.farthest_write_bytes is None


def test_who_cannot_be_asked(tree):
    """No process, no process of ours, a copy without its status."""
    root = tree({"proc/1/status": STATUS, "proc/7/comm": "x\n", "proc/self": Link("1")})
    host = Host.at(str(root), None)
    with pytest.raises(NoSuchProcess):
        request_for(host, 8, uses=False)
    with pytest.raises(UsageError, match="name a PID"):
        request_for(host, None, uses=False)
    with pytest.raises(NotSupported, match="is not in this copy"):
        collect(host, request_for(host, 7, uses=False))


@pytest.mark.parametrize(("text", "count"), [("0-3,8\n", 5), ("0\n", 1), ("", None), ("3-1", None), ("a", None)])
def test_the_cpus_of_a_list(text, count):
    """Ranges and single ones; other text is unknown."""
    assert cpu_count(text) == count
