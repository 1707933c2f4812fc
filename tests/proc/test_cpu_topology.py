"""Which CPUs there are and how they belong together, of this machine and of trees of larger ones."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from opskit.errors import NotSupported
from opskit.proc.cpu_topology import Place, cpuset_of, read_caches, read_cpuset, read_topology
from opskit.proc.fs import ProcFS
from opskit.proc.treefs import TreeFS

CPU, NODE = "sys/devices/system/cpu", "sys/devices/system/node"
MOUNTS = {
    1: "30 23 0:26 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n",
    2: "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
}


def two_sockets():
    """Two sockets of two cores with two SMT threads each, numbered as Linux does on x86; CPU 7 is offline."""
    files = {
        f"{CPU}/online": "0-6\n",
        f"{CPU}/isolated": "3\n",
        f"{CPU}/nohz_full": "  (null)\n",
        f"{NODE}/node0/cpulist": "0-1,4-5\n",
        f"{NODE}/node1/cpulist": "2-3,6-7\n",
        f"{NODE}/has_cpu": "0-1\n",
    }
    for cpu in range(7):
        core, package = cpu % 4, cpu % 4 // 2
        siblings = f"{core}" if core == 3 else f"{core},{core + 4}"
        files[f"{CPU}/cpu{cpu}/topology/thread_siblings_list"] = f"{siblings}\n"
        files[f"{CPU}/cpu{cpu}/topology/core_siblings_list"] = ("2-3,6\n", "0-1,4-5\n")[package == 0]
        files[f"{CPU}/cpu{cpu}/topology/physical_package_id"] = f"{package}\n"
    return files


def read(tree, files):
    return TreeFS(str(tree({"proc/1/stat": "", **files}) / "proc"), str(tree({})))


def test_smt_siblings_sockets_and_nodes(tree):
    """SMT siblings, package and node of each CPU; `(null)` of nohz_full means that it is off; offline CPUs are left out."""
    found = read_topology(read(tree, two_sockets()))
    assert found.online == (0, 1, 2, 3, 4, 5, 6)
    assert found.places[1] == found.places[5] == Place(frozenset({1, 5}), 0, 0)
    assert found.places[6] == Place(frozenset({2, 6}), 1, 1)
    assert found.places[3] == Place(frozenset({3}), 1, 1)
    assert (found.isolated, found.tickless) == (frozenset({3}), frozenset())
    assert found.place(99) == Place(frozenset({99}))


def test_a_machine_without_topology(tree):
    """Every CPU is a core of its own, in an unknown package; -1 is the kernel's word for that. Empty lists are empty."""
    found = read_topology(
        read(
            tree,
            {
                f"{CPU}/online": "0-1\n",
                f"{CPU}/isolated": "\n",
                f"{CPU}/cpu0/topology/physical_package_id": "-1\n",
                f"{CPU}/cpu1/topology/thread_siblings_list": "0\n",
            },
        )
    )
    assert found.places == {0: Place(frozenset({0})), 1: Place(frozenset({1}))}
    assert found.isolated == frozenset()


@pytest.mark.parametrize("online", ["", "x\n", "1-0\n", "0-99999999999\n"])
def test_unknown_cpus(tree, online):
    """Without a list of CPUs the answer is an error that says so."""
    with pytest.raises(NotSupported, match="CPUs that are online"):
        read_topology(read(tree, {f"{CPU}/online": online}))


@pytest.mark.parametrize("version", [1, 2])
def test_the_cpuset_of_a_process(tree, version):
    """The lowest cgroup that has the file counts: cgroup v2 has it only where the controller is enabled."""
    name = {1: "cpuset.effective_cpus", 2: "cpuset.cpus.effective"}[version]
    top = "sys/fs/cgroup/cpuset" if version == 1 else "sys/fs/cgroup"
    fs = read(
        tree,
        {
            "proc/1/mountinfo": MOUNTS[version],
            "proc/1/cgroup": "9:cpuset:/web/app\n" if version == 1 else "0::/web/app\n",
            f"{top}/cgroup.controllers": "cpuset cpu\n",
            f"{top}/{name}": "0-7\n",
            f"{top}/web/{name}": "2-3,9\n",
            f"{top}/web/app/cgroup.procs": "1\n",
        },
    )
    assert read_cpuset(fs, 1, frozenset(range(8))) == {2, 3}
    assert read_cpuset(fs, 1, frozenset({0, 1})) == {0, 1}  # none of them is online: not to be believed
    assert cpuset_of(fs, (), frozenset({0, 1})) == {0, 1}


def test_caches(tree):
    """Size and level of each cache, the nearest first; a directory without both is left out."""
    base = f"{CPU}/cpu0/cache"
    fs = read(
        tree,
        {
            f"{base}/index3/level": "3\n", f"{base}/index3/size": "32768K\n", f"{base}/index3/type": "Unified\n",
            f"{base}/index3/shared_cpu_list": "0-1\n",
            f"{base}/index0/level": "1\n", f"{base}/index0/size": "48K\n", f"{base}/index0/type": "Data\n",
            f"{base}/index1/level": "1\n",
            f"{base}/uevent": "",
        },
    )  # fmt: skip
    assert [(cache.level, cache.kind, cache.size_bytes) for cache in read_caches(fs, 0)] == [
        (1, "Data", 48 << 10),
        (3, "Unified", 32 << 20),
    ]
    assert read_caches(fs, 0)[1].shared == {0, 1}
    assert read_caches(fs, 5) == ()


def test_this_machine():
    """As lscpu sees it."""
    if shutil.which("lscpu") is None:
        pytest.skip("needs lscpu")
    shown = subprocess.run(["lscpu", "-p=CPU,CORE,SOCKET,NODE"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(",") for line in shown.splitlines() if not line.startswith("#")]
    found = read_topology(ProcFS())
    assert [str(cpu) for cpu in found.online] == [row[0] for row in rows]
    cores = {row[1]: {int(other[0]) for other in rows if other[1] == row[1]} for row in rows}
    for cpu, core, _, node in rows:
        assert found.place(int(cpu)).siblings == cores[core]
        assert found.place(int(cpu)).node == (int(node) if node else None)
    assert len({place.package for place in found.places.values()}) == len({row[2] for row in rows})
    assert read_cpuset(ProcFS(), "self", frozenset(found.online)) <= set(found.online)
