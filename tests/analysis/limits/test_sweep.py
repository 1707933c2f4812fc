"""Limits of cgroups, users and the kernel as findings."""

from __future__ import annotations

import pytest

from opskit.analysis.limits.sweep import judge
from opskit.collect.limits.sweep import Facts, Members, Request, TaskLimit, Total, UserTasks
from opskit.collect.process_names import Named

BILLING = Named(4242, 77, "billing", True, 38)
ALONE, SHARED, NOBODY = Members(1, BILLING), Members(3, BILLING), Members(0, None)


def limit(used, most=40, members=ALONE, refused=0, before=0, path="/app.service"):
    """A cgroup's pids.max."""
    return TaskLimit(path, f"/sys/fs/cgroup{path}/pids.max", most, used, refused, before, members)


def found(*tasks, users=(), totals=()):
    """The findings."""
    return judge(Facts(Request(), 1.0, 1, 1, tasks, users, totals))


def test_a_cgroup_that_is_nearly_full():
    """The cgroup is the entity; its largest process is named, and looked at next."""
    [one] = found(limit(39))
    assert one.summary == "1 more thread can start in /app.service: pids.max is 40; its process is 4242 (billing)"
    assert (one.code, one.severity, one.entity.kind, one.entity.id) == (
        "threads-nearly-none-left", "warning", "cgroup", "/app.service",
    )  # fmt: skip
    assert one.fix == "raise pids.max of /app.service: systemctl set-property app.service TasksMax=80"
    assert one.next == "opskit limits 4242"
    assert one.share == pytest.approx(39 / 40)


def test_a_full_cgroup():
    """An error; what was refused before is evidence."""
    [one] = found(limit(40, members=SHARED, before=1200, path="/shop"))
    assert (one.code, one.severity) == ("threads-none-left", "error")
    assert one.summary == "no thread can start in /shop: pids.max is 40; 4242 (billing) has 38 threads"
    assert one.fix == "raise pids.max of /shop: echo 80 > /sys/fs/cgroup/shop/pids.max"
    assert one.evidence.endswith("pids.events counted 1,200 refused before")
    assert found(limit(40, members=NOBODY))[0].next is None


def test_what_a_healthy_host_has():
    """Room for a tenth, and services that may not start anything by design."""
    assert found(limit(35)) == []
    [by_design] = found(limit(1, most=1))
    assert by_design.severity == "note"
    [refused] = found(limit(1, most=1, refused=2))
    assert refused.severity == "error"


def test_tasks_that_were_refused_while_there_is_room_again():
    """The window has the proof."""
    [one] = found(limit(33, refused=5))
    assert (one.code, one.severity) == ("threads-none-left", "warning")
    assert one.summary.startswith("5 tasks could not start in /app.service within 1.0 s: pids.max is 40")


def test_users_and_the_kernel():
    """RLIMIT_NPROC counts all threads of a user; threads-max and pid_max those of the machine."""
    user = UserTasks(1000, "app", 100, 95, BILLING)
    [one] = found(users=(user,))
    assert (one.entity.kind, one.entity.id) == ("user", "app")
    assert one.summary == "5 more threads can start for user app: RLIMIT_NPROC is 100"
    assert found(users=(user._replace(threads=85),)) == []
    [full] = found(totals=(Total("kernel.pid_max", 32468, 32468),))
    assert (full.code, full.severity) == ("threads-none-left", "error")
    assert full.summary == "no thread can start on this machine: kernel.pid_max is 32,468"
