"""Cgroups near their memory limit, and the machine's memory, in the quick form."""

from __future__ import annotations

import os
import time

import pytest
from cgroups import new_cgroup
from nextsteps import try_next

from opskit.analysis.finding import Entity
from opskit.analysis.mem.commit import judge_commit
from opskit.analysis.mem.groups import judge_groups
from opskit.checks.look import Look
from opskit.checks.mem import check
from opskit.collect.mem.groups import collect_groups
from opskit.host import Host

MIB, GIB = 1 << 20, 1 << 30
HOLDER = "import time; kept = bytearray({size}); print(); time.sleep(60)"
READER = """
import os, sys, time
with open(sys.argv[1], "wb") as file: file.write(os.urandom(1 << 20) * 40); file.flush(); os.fsync(file.fileno())
with open(sys.argv[1], "rb") as file: file.read()
print(); time.sleep(60)
"""


def limit(place, size):
    for name in ("memory.limit_in_bytes", "memory.max"):
        if (place / name).exists():
            (place / name).write_text(str(size))
    for name in ("memory.memsw.limit_in_bytes", "memory.swap.max"):
        if (place / name).exists():
            (place / name).write_text(str(size if "memsw" in name else 0))


def of(findings, place):
    return [each for each in findings if each.entity.id == f"/{place.name}"]


def test_a_cgroup_near_its_limit_and_one_full_of_page_cache(spawn, tmp_path):
    """The holder is named; the page cache is reclaimed before anything is killed. Processes are judged by their own cgroups."""
    with (
        new_cgroup("memory", f"opskit-test-near-{os.getpid()}", "memory.max memory.limit_in_bytes") as near,
        new_cgroup("memory", f"opskit-test-cache-{os.getpid()}", "memory.max memory.limit_in_bytes") as cache,
    ):
        limit(near, 40 * MIB)
        limit(cache, 32 * MIB)
        join = "import os; open('{}/cgroup.procs', 'w').write(str(os.getpid()))\n"
        holder = spawn(join.format(near) + HOLDER.format(size=37 * MIB))
        reader = spawn(join.format(cache) + READER, tmp_path / "file")
        try:
            deadline = time.monotonic() + 10
            while not (seen := of(check(Look(Host.at(None, None))).findings, near)) and time.monotonic() < deadline:
                time.sleep(0.2)  # v1 updates its statistics late
            [finding] = seen
            assert (finding.code, finding.severity) == ("memory-near-limit", "warning")
            assert f"{holder.pid} (python" in finding.summary
            assert try_next([finding], "memory-near-limit") == f"opskit mem {holder.pid}"
            assert check(Look(Host.at(None, None), (reader.pid,))).findings == []
            assert len(check(Look(Host.at(None, None), (holder.pid,))).findings) == 1
        finally:
            holder.kill()
            reader.kill()


@pytest.fixture
def machine(tree):
    """The groups of a v2 tree: a function of the files of its cgroups."""

    def look(groups, swap_free=0):
        files = {
            "proc/1/mountinfo": "31 23 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "proc/meminfo": "MemTotal: 1 kB\n",
        }
        at = "sys/fs/cgroup"
        files[f"{at}/cgroup.controllers"] = "memory\n"
        for path, (most, used, cache, more) in groups.items():
            place = f"{at}/{path}"
            files |= {
                f"{place}/cgroup.type": "domain\n", f"{place}/cgroup.procs": "", f"{place}/memory.max": f"{most}\n",
                f"{place}/memory.current": f"{used}\n", f"{place}/memory.stat": f"anon {used - cache}\ninactive_file {cache}\n",
            }  # fmt: skip
            files |= {f"{place}/{name}": text for name, text in more.items()}
        return collect_groups(Host.at(str(tree(files)), None), (), swap_free)

    return look


def test_near_is_what_cannot_be_reclaimed(machine):
    """Page cache does not count; 64 GiB with 2 GiB left have room; a tmpfs without a process is named as such."""
    groups = {
        "cache": (100 * MIB, 100 * MIB, 60 * MIB, {}), "large": (64 * GIB, 62 * GIB, 0, {}), "none": ("max", 9 * GIB, 0, {}),
        "files": (100 * MIB, 95 * MIB, 0, {}),
    }  # fmt: skip
    facts = machine(groups)
    assert (facts.looked_at, facts.limited) == (4, 3)
    [finding] = judge_groups(facts)
    assert finding.entity == Entity("cgroup", "/files")
    assert "files in memory" in finding.summary
    assert finding.next == "opskit mem --files"
    [inside] = judge_groups(facts._replace(near=tuple(each._replace(is_outside=True) for each in facts.near)))
    assert inside.summary.endswith("its processes are not visible in this PID namespace")


def test_one_finding_for_a_chain_of_cgroups(machine):
    """A pod and its container share the same memory: the one with the least left is named."""
    groups = {
        "pod": (100 * MIB, 96 * MIB, 0, {}),
        "pod/app": (100 * MIB, 95 * MIB, 0, {}),
        "other": (100 * MIB, 95 * MIB, 0, {}),
    }
    assert [each.entity.id for each in judge_groups(machine(groups))] == ["/pod", "/other"]


def test_swap_of_a_cgroup_is_room(machine):
    """Unless its own swap is used up."""
    swap = {"memory.swap.max": "max\n", "memory.swap.current": "0\n"}
    assert judge_groups(machine({"a": (100 * MIB, 95 * MIB, 0, swap)}, 4 * GIB)) == []
    full = {"memory.swap.max": "1048576\n", "memory.swap.current": "1048576\n"}
    assert len(judge_groups(machine({"a": (100 * MIB, 95 * MIB, 0, full)}, 4 * GIB))) == 1


def test_memory_high_slows_down(machine):
    """Above it by what cannot be reclaimed; page cache above it is how it is meant."""
    high = {"memory.high": f"{50 * MIB}\n"}
    [finding] = judge_groups(machine({"a": ("max", 60 * MIB, 0, high), "b": ("max", 60 * MIB, 30 * MIB, high)}))
    assert (finding.code, finding.entity.id) == ("memory-throttled", "/a")


def test_the_commit_limit_counts_in_strict_mode_only():
    """Less than 3 % and 1 GiB left."""
    meminfo = {"CommitLimit": 8 * GIB, "Committed_AS": 8 * GIB - 100 * MIB}
    [finding] = judge_commit(meminfo, 2)
    assert try_next([finding], "memory-commit-limit")
    assert list(judge_commit(meminfo, 0)) == []
    assert list(judge_commit({**meminfo, "Committed_AS": 4 * GIB}, 2)) == []
    assert list(judge_commit({}, 2)) == []
