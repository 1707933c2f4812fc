"""Limits that a JVM takes from its cgroups: those that all releases take, and those that are left out."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from opskit.collect.jmx.container_limits import Limits, read_limits
from opskit.host import Host

V1 = {"cpu": "cpu", "memory": "memory", "cpuset": "cpuset"}


def limits(directory, files, **flags):
    """Of process 42 in /up/own, by the files below sys/fs/cgroup; v2 where one is `up/…`."""
    is_v2 = any(name.startswith("up/") for name in files)
    names = {"": "unified"} if is_v2 else V1
    mounts = [
        f"{number} 1 0:{number} / /sys/fs/cgroup{'' if is_v2 else '/' + name} rw - cgroup{'2' if is_v2 else ''} cgroup rw{'' if is_v2 else ',' + name}"
        for number, name in enumerate(names, 30)
    ]
    lines = ["0::/up/own"] if is_v2 else [f"{number}:{name}:/up/own" for number, name in enumerate(names, 1)]
    some = {f"{name}/up/own/cgroup.procs".lstrip("/"): "42" for name in names} | {
        "cgroup.controllers": "cpu memory cpuset"
    }
    written = {f"sys/fs/cgroup/{name}": text for name, text in {**some, **files}.items()}
    cpus = "".join(f"cpu{number} 1 0 1 9 0 0 0 0 0 0\n" for number in range(4))
    written |= {"proc/stat": f"cpu 4 0 4 36 0 0 0 0 0 0\n{cpus}", "proc/42/cgroup": "\n".join(lines) + "\n"}
    written |= {"proc/42/mountinfo": "\n".join(mounts) + "\n", "proc/1/mountinfo": "\n".join(mounts) + "\n"}
    for name, text in written.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return read_limits(SimpleNamespace(host=Host.at(str(directory), None), pid=42, flags=flags, major=25, release="25"))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({}, Limits(), id="none"),
        pytest.param(
            {"cpu/up/own/cpu.cfs_quota_us": "150000", "cpu/up/own/cpu.cfs_period_us": "100000", "cpu/up/own/cpu.shares": "1024"},
            Limits(cpus=1.5, share="a CPU quota of 1.5"),
            id="its own quota",
        ),
        pytest.param({"up/cpu.max": "100000 100000"}, Limits(cpus=1, share="a CPU quota of 1", is_unsure_of_cpus=True), id="a quota above"),
        pytest.param({"cpu/up/own/cpu.shares": "512"}, Limits(share="cpu.shares 512", is_unsure_of_cpus=True), id="shares"),
        pytest.param({"up/own/cpu.weight": "100", "up/own/cpuset.cpus.effective": "0-3"}, Limits(), id="all CPUs"),
        pytest.param({"cpuset/up/own/cpuset.cpus": "1-2"}, Limits(share="CPUs 1-2"), id="some CPUs"),
        pytest.param(
            {"memory/up/own/memory.limit_in_bytes": "500", "memory/up/own/memory.usage_in_bytes": "100"},
            Limits(memory=500, free_memory=400),
            id="its own memory",
        ),
        pytest.param(
            {
                "memory/up/memory.limit_in_bytes": "500", "memory/up/memory.usage_in_bytes": "300",
                "memory/up/own/memory.limit_in_bytes": str((1 << 63) - 4096), "memory/up/own/memory.usage_in_bytes": "100",
            },
            Limits(memory=500, free_memory=400),
            id="memory above",
        ),
        pytest.param(
            {"memory/up/memory.limit_in_bytes": "500", "memory/up/own/memory.limit_in_bytes": "600"},
            Limits(is_unsure_of_memory=True),
            id="less memory above",
        ),
        pytest.param({"up/memory.max": "500", "up/own/memory.max": "max"}, Limits(is_unsure_of_memory=True), id="v2 memory above"),
    ],
)  # fmt: skip
def test_limits(tmp_path, files, expected):
    """By the files of its own cgroup and of the one above."""
    assert limits(tmp_path, files) == expected


def test_support_of_containers_is_off(tmp_path):
    """Then there are none."""
    assert limits(tmp_path, {"cpu/up/own/cpu.shares": "512"}, UseContainerSupport=False) == Limits()
