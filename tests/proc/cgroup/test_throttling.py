"""How often a CPU quota held a process up."""

from __future__ import annotations

from opskit.proc.cgroup.throttling import read_periods, throttled_percent
from opskit.proc.fs import ProcFS

MOUNT = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


def test_every_level_above_a_process_is_read(tree):
    """Its own cgroup may have no quota where its parent's has one."""
    root = tree(
        {
            "proc/1/mountinfo": MOUNT,
            "proc/7/cgroup": "0::/pod/app\n",
            "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
            "sys/fs/cgroup/pod/cpu.stat": "usage_usec 5\nnr_periods 100\nnr_throttled 40\nthrottled_usec 7\n",
            "sys/fs/cgroup/pod/cgroup.type": "domain\n",
            "sys/fs/cgroup/pod/app/cpu.stat": "usage_usec 5\nnr_periods 0\nnr_throttled 0\n",
            "sys/fs/cgroup/pod/app/cgroup.type": "domain\n",
        }
    )
    fs = ProcFS(f"{root}/proc", str(root))
    assert read_periods(fs, 7) == {"/pod/app": (0, 0), "/pod": (100, 40)}
    assert read_periods(fs, 8) is None


def test_the_share_of_the_periods_that_ran_out():
    """Of the cgroup where that was most; without a quota no period passes, and it is 0."""
    before = {"/pod/app": (0, 0), "/pod": (100, 40)}
    assert throttled_percent(before, {"/pod/app": (0, 0), "/pod": (140, 50)}) == 25.0
    assert throttled_percent(before, before) == 0.0
    assert throttled_percent({}, before) == 0.0
