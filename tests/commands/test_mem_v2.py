"""cgroup v2's memory controller, in captured trees: `opskit mem PID --root DIR`."""

from __future__ import annotations

import json

import pytest

MIB = 1 << 20
TOP = "sys/fs/cgroup"
MOUNT = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
SMAPS = "".join(
    f"{start:x}-{start + kib * 1024:x} rw-p 00000000 00:00 0 {name}\n"
    f"Size: {kib} kB\nRss: {kib} kB\nPss: {kib} kB\nAnonymous: {kib} kB\nAnonHugePages: 0 kB\nSwap: 0 kB\nLocked: 0 kB\n"
    for start, kib, name in ((0x5555_0000_0000, 180 << 10, "[heap]"), (0x7F00_0000_0000, 20 << 10, ""), (0x7FFF_0000_0000, 132, "[stack]"))
)  # fmt: skip
STAT = (
    f"anon {205 * MIB}\nfile {150 * MIB}\nkernel {14 * MIB}\nsock 0\nshmem {40 * MIB}\n"
    f"inactive_file {90 * MIB}\nactive_file {20 * MIB}\nunevictable 0\nslab_reclaimable {4 * MIB}\n"
)


@pytest.fixture
def look(tree, inprocess):
    """Look at process 7 in /pod/app of a captured tree, with these files of the cgroups; its JSON object."""

    def run(files, *, meminfo="", root=True):
        names = {
            f"{TOP}/pod/app/memory.max": f"{400 * MIB}\n", f"{TOP}/pod/app/memory.high": "max\n",
            f"{TOP}/pod/app/memory.current": f"{369 * MIB}\n", f"{TOP}/pod/app/memory.stat": STAT,
            f"{TOP}/pod/app/memory.swap.max": "0\n", f"{TOP}/pod/app/memory.swap.current": "0\n",
            f"{TOP}/pod/app/memory.events": "low 0\nhigh 0\nmax 7\noom 0\noom_kill 0\n", f"{TOP}/pod/app/cgroup.procs": "7\n",
            f"{TOP}/pod/memory.max": "max\n", f"{TOP}/pod/memory.current": f"{500 * MIB}\n", f"{TOP}/pod/memory.stat": STAT,
            f"{TOP}/cgroup.controllers": "cpu memory\n", **{f"{TOP}/{name}": text for name, text in files.items()},
        }  # fmt: skip
        if not root:
            names[f"{TOP}/cgroup.type"] = "domain\n"
        place = tree({
            "proc/7/cgroup": "0::/pod/app\n", "proc/1/mountinfo": MOUNT, "proc/self/mountinfo": MOUNT, "proc/7/smaps": SMAPS,
                "proc/7/maps": "".join(line for line in SMAPS.splitlines(True) if "-" in line),
            "proc/7/stat": f"7 (web server) S 1 7 7 0 -1 4194560{' 0' * 10} 20 0 3 0 5000{' 0' * 30}\n",
            "proc/7/status": "Name:\tweb server\nPPid:\t1\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nVmRSS:\t204932 kB\nRssAnon:\t204932 kB\n"
                             "RssFile:\t0 kB\nRssShmem:\t40960 kB\nVmSwap:\t0 kB\nVmPTE:\t500 kB\nThreads:\t3\n",
            "proc/7/comm": "web server\n", "proc/7/cmdline": "/usr/bin/web\0", "proc/uptime": "1000.00 900.00\n",
            "proc/meminfo": f"MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n{meminfo}",
            "proc/sys/vm/swappiness": "60\n", "proc/sys/vm/overcommit_memory": "0\n", **names,
        })  # fmt: skip
        done = inprocess("mem", 7, "--root", place, "-f", "json")
        assert done.code in (0, 1), done.err
        return json.loads(done.out)

    return run


def codes(found):
    return [one["code"] for one in found["findings"] if one["severity"] != "note"]


def test_page_cache_and_reclaimable_slab_go_first(look):
    """369 of 400 MiB are used, and 145 are left."""
    found = look({})
    assert (found["headroom"]["left_bytes"], found["headroom"]["cgroup"]) == (145 * MIB, "/pod/app")
    assert codes(found) == []
    level, above = found["levels"]
    assert (level["anon_bytes"], level["shmem_bytes"], level["cache_bytes"], level["kernel_bytes"]) == (
        205 * MIB, 40 * MIB, 110 * MIB, 10 * MIB,
    )  # fmt: skip
    assert (above["path"], above["limit_bytes"]) == ("/pod", None)


def test_memory_high_slows_it_down(look):
    """255 MiB cannot be reclaimed: more than 250, less than 300."""
    assert codes(look({"pod/app/memory.high": f"{250 * MIB}\n"})) == ["memory-throttled"]
    assert codes(look({"pod/app/memory.high": f"{300 * MIB}\n"})) == []


def test_the_cgroup_above_has_less(look):
    found = look({"pod/memory.max": f"{510 * MIB}\n", "pod/memory.stat": "anon 5\ninactive_file 1048576\n"})
    assert (found["headroom"]["cgroup"], found["headroom"]["left_bytes"]) == ("/pod", 11 * MIB)
    assert codes(found) == ["memory-near-limit"]


def test_swap_comes_before_a_kill(look):
    """Where the cgroup and the machine have some, and swappiness is not 0."""
    near = {"pod/app/memory.max": f"{260 * MIB}\n", "pod/app/memory.swap.max": "max\n"}
    assert codes(look(near)) == ["memory-near-limit"]
    assert codes(look(near, meminfo="SwapFree: 1048576 kB\n")) == []


def test_kills_since_the_cgroup_was_made_are_a_note(look):
    found = look({"pod/app/memory.events": "oom 2\noom_kill 3\n"})
    assert [(one["code"], one["severity"]) for one in found["findings"]] == [("oom-counted", "note")]
    assert "killed 3 processes" in found["findings"][0]["summary"]


def test_above_a_namespace_nothing_is_known(look):
    found = look({}, root=False)
    assert found["levels_unknown"] == "unknown above /, the root of the cgroup namespace"


def test_without_a_limit_the_machine_is_the_limit(look):
    found = look({"pod/app/memory.max": "max\n"})
    assert (found["headroom"]["cgroup"], found["headroom"]["left_bytes"]) == (None, 4 << 30)
    assert codes(found) == []
