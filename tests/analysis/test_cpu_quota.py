"""The command that raises a cgroup's CPU quota."""

from __future__ import annotations

import pytest

from opskit.analysis.cpu_quota import judge_quota
from opskit.proc.cgroup.limits import CpuLimit

DOCKER = f"/docker/{'3f' * 32}"


@pytest.mark.parametrize(
    ("path", "place", "command"),
    [
        ("/billing.service", {}, "systemctl set-property billing.service CPUQuota=100%"),
        ("/shop", {"directory": "/sys/fs/cgroup/shop"}, "echo '100000 100000' > /sys/fs/cgroup/shop/cpu.max"),
        ("/shop", {"directory": "/c/shop", "version": 1, "period_us": 50_000}, "echo 50000 > /c/shop/cpu.cfs_quota_us"),
        (DOCKER, {"directory": f"/sys/fs/cgroup{DOCKER}"}, "docker update --cpus 1 3f3f3f3f3f3f"),
    ],
)
def test_what_raises_a_quota(path, place, command):
    """Of a unit, of a container, or of a cgroup that no manager has: the file, of either version."""
    quota = CpuLimit(path, 0.3, 10, 6, **place)
    found = judge_quota(quota, "4242 (billing)", next_=None, window_s=1.0)
    assert found.fix == f"raise cpu.max of {path}: {command}"
    assert found.summary == "4242 (billing) is throttled in 60 % of the periods: its cgroup's quota is 0.3 CPUs"


def test_a_pods_quota_is_set_elsewhere():
    """No command of this machine would last."""
    path = f"/kubepods/burstable/pod1/{'3f' * 32}"
    found = judge_quota(CpuLimit(path, 0.3, 10, 6, directory="/c"), "1 (x)", next_=None, window_s=1.0)
    assert "start fewer threads" in found.fix
