"""The kills of a kernel log by two lines of each report."""

from __future__ import annotations

import pytest
from kernellogs import KERNELS, cgroup_report, host_report

from opskit.proc.oom.killed import read_killed


def log(messages, start=100.0):
    return "".join(f"<6>[{start + number / 1000:12.6f}] {line}\n" for number, line in enumerate(messages))


@pytest.mark.parametrize("kernel", ["5.4", "5.10", "6.8", "6.18"])
def test_reports_of_kernels_since_5_0(kernel):
    """Victim, its cgroup, the one at its limit; of the machine none."""
    found = read_killed(log([*cgroup_report(kernel), *host_report(kernel)]))
    assert found.is_complete
    first, second = found.kills
    assert (first.pid, first.name, first.cgroup) == (4242, "java", "/system.slice/orders.service")
    assert (second.pid, second.cgroup) == (4242, None)
    assert 100 <= first.at_s < second.at_s


@pytest.mark.parametrize("kernel", [each for each in KERNELS if each in ("3.10", "el7", "4.4", "4.18")])
def test_older_kernels_need_the_whole_parser(kernel):
    """They have no such line."""
    assert not read_killed(log(cgroup_report(kernel))).is_complete


def test_a_log_that_begins_in_a_report_needs_it_too():
    """The sentence alone does not tell the cgroup."""
    assert not read_killed(
        log(["Memory cgroup out of memory: Killed process 7 (a) total-vm:1kB, anon-rss:1kB"])
    ).is_complete


def test_a_group_is_killed_by_one_report():
    """memory.oom.group: each process has its sentence."""
    head = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a/b,task=x,pid=7,uid=0"
    said = "Memory cgroup out of memory: Killed process {} ({}) total-vm:1kB, anon-rss:1kB"
    found = read_killed(log([head, said.format(7, "x"), said.format(8, "y")]))
    assert [(each.pid, each.name, each.cgroup, each.own) for each in found.kills] == [
        (7, "x", "/a", "/a/b"),
        (8, "y", "/a", "/a/b"),
    ]


def test_programs_cannot_forge_a_line():
    """A line with the facility of user space, and a name that looks like one; when the machine was resumed is kept."""
    line = "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),global_oom,task_memcg=/,task=x,pid=7,uid=0"
    assert read_killed(f"<12>[    1.000000] {line}\n").kills == ()
    assert read_killed(f"<4>[    1.000000] name {line}\n").kills == ()
    [kill] = read_killed(f"<6>[    1.000000][T7] {line.replace('task=x', 'task=a,pid=1,uid=0')}\n").kills
    assert (kill.pid, kill.name) == (7, "a,pid=1,uid=0")
    assert read_killed("<6>[    9.000000] PM: suspend exit\n").resumed_s == 9.0
