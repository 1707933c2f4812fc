"""Whether tasks wait for memory: PSI, swap, reclaim, by two readings of trees."""

from __future__ import annotations

import pytest
from nextsteps import try_next

from opskit.analysis.finding import HOST, Entity
from opskit.analysis.host.memory_pressure import is_pressed, judge_memory_pressure, looked_at
from opskit.collect.host.memory_pressure import collect_memory_pressure
from opskit.host import Host

ROOT = "31 23 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


def pressure(some, full, avg10, avg60=None):
    """`some`, `full`: us so far; the averages in percent."""
    averages = f"avg10={avg10:.2f} avg60={avg10 if avg60 is None else avg60:.2f} avg300=0.00"
    return f"some {averages} total={some}\nfull {averages} total={full}\n"


def meminfo(available_gib=8, swap_mib=0, swap_free_mib=0):
    sizes = {
        "MemTotal": 16 << 20,
        "MemAvailable": available_gib << 20,
        "SwapTotal": swap_mib << 10,
        "SwapFree": swap_free_mib << 10,
    }
    return "".join(f"{key}: {size} kB\n" for key, size in sizes.items())


def vmstat(**events):
    return "".join(f"{name} {count}\n" for name, count in {"pswpin": 0, "pswpout": 0, "oom_kill": 0, **events}.items())


@pytest.fixture
def machine(tree):
    """A tree that changes in a window of a second: a function of its files before and after."""

    def look(before, after, pids=()):
        fixed = {"proc/1/mountinfo": ROOT, "proc/meminfo": meminfo(), "sys/fs/cgroup/cgroup.controllers": "memory\n"}
        host = Host.at(str(tree({**fixed, **before})), None)
        clock = iter(range(100))
        host.monotonic = lambda: float(next(clock))
        host.sleep = lambda _: tree(after)
        host.page_bytes = 4096
        return collect_memory_pressure(host, 1.0, pids, is_pressed)

    return look


def found(facts, **options):
    return [(each.code, each.severity) for each in judge_memory_pressure(facts, **options)]


PSI = "proc/pressure/memory"
VMSTAT = "proc/vmstat"


def test_old_pages_in_swap_are_healthy(machine):
    """Half of swap is used, and nothing moves; pages that come back without being replaced are healthy too."""
    still = {VMSTAT: vmstat(pswpin=900, pswpout=90_000), PSI: pressure(5, 0, 0), "proc/meminfo": meminfo(8, 2048, 900)}
    assert found(machine(still, {})) == []
    assert found(machine(still, {VMSTAT: vmstat(pswpin=9000, pswpout=90_000)})) == []
    assert looked_at(machine(still, {}))[0] == "1.1 GiB of 2.0 GiB swap used"


def test_full_swap_is_a_note_until_memory_is_short(machine):
    """The OOM killer comes next only then."""
    facts = machine({VMSTAT: vmstat(), PSI: pressure(0, 0, 0), "proc/meminfo": meminfo(8, 2048, 100)}, {})
    assert found(facts) == [("swap-nearly-full", "note")]
    facts = machine({VMSTAT: vmstat(), PSI: pressure(0, 0, 0), "proc/meminfo": meminfo(1, 2048, 100)}, {})
    assert found(facts) == [("swap-nearly-full", "warning")]
    try_next(judge_memory_pressure(facts), "swap-nearly-full")


def test_swapping_in_and_out(machine):
    """With PSI tasks have to wait for it, too (zram is fast); without PSI the rates tell."""
    before = {VMSTAT: vmstat(), PSI: pressure(0, 0, 0)}
    moved = {VMSTAT: vmstat(pswpin=2000, pswpout=3000)}
    assert found(machine(before, {**moved, PSI: pressure(10_000, 0, 1)})) == []
    facts = machine(before, {**moved, PSI: pressure(300_000, 90_000, 20)})
    assert found(facts) == [("swapping", "warning")]
    try_next(judge_memory_pressure(facts), "swapping")
    assert found(machine(before, {**moved, PSI: pressure(900_000, 500_000, 20)})) == [("swapping", "error")]


def test_swapping_without_psi(machine):
    """It is said that PSI is missing."""
    facts = machine({VMSTAT: vmstat()}, {VMSTAT: vmstat(pswpin=2000, pswpout=3000)})
    assert found(facts) == [("swapping", "warning")]
    assert [what for what, _ in facts.missing] == ["memory pressure"]


@pytest.mark.parametrize(
    ("some_us", "full_us", "avg10", "expected"),
    [
        (100_000, 20_000, 12, None),  # a backup in a cgroup with a small limit
        (900_000, 400_000, 1, None),  # one burst
        (300_000, 20_000, 25, "warning"), (150_000, 120_000, 8, "warning"), (900_000, 600_000, 60, "error"),
    ],
)  # fmt: skip
def test_pressure_has_to_last(machine, some_us, full_us, avg10, expected):
    """In the window, and in the last 10 s or minute."""
    facts = machine({VMSTAT: vmstat(), PSI: pressure(0, 0, 0)}, {PSI: pressure(some_us, full_us, avg10)})
    assert found(facts) == ([("memory-pressure", expected)] if expected else [])


def test_pressure_names_the_cgroup_that_it_comes_from(machine):
    """The deepest one with most of it; several share it: the machine."""
    at = "sys/fs/cgroup"
    groups = {
        f"{at}/a.slice/memory.pressure": pressure(1, 1, 24), f"{at}/a.slice/db.service/memory.pressure": pressure(1, 1, 24),
        f"{at}/b.slice/memory.pressure": pressure(1, 1, 2),
    }  # fmt: skip
    before, after = {VMSTAT: vmstat(), PSI: pressure(0, 0, 0)}, {PSI: pressure(300_000, 20_000, 25)}
    [one] = judge_memory_pressure(machine({**before, **groups}, after))
    assert one.entity == Entity("cgroup", "/a.slice/db.service")
    little = {path: pressure(1, 1, 8) for path in groups}
    [one] = judge_memory_pressure(machine({**before, **little}, after))
    assert one.entity == HOST
    assert try_next([one], "memory-pressure") == "opskit mem"


def test_reclaim_without_psi(machine):
    """Tasks that free memory themselves, where it is short; with memory available it is fragmentation."""
    before = {VMSTAT: vmstat(allocstall_normal=0, pgscan_direct=0)}
    after = {VMSTAT: vmstat(allocstall_normal=200, pgscan_direct=90_000)}
    assert found(machine(before, after)) == []
    assert found(machine({**before, "proc/meminfo": meminfo(1)}, after)) == [("memory-pressure", "warning")]


def test_processes_are_asked_about_by_their_cgroups(machine):
    """Their own alone; where there is no such file it is said."""
    files = {
        "proc/42/cgroup": "0::/a\n",
        "sys/fs/cgroup/a/cgroup.procs": "42\n",
        "sys/fs/cgroup/a/memory.pressure": pressure(0, 0, 0),
    }
    facts = machine(files, {"sys/fs/cgroup/a/memory.pressure": pressure(300_000, 0, 25)}, (42,))
    [one] = judge_memory_pressure(facts, of_processes=True)
    assert one.entity == Entity("cgroup", "/a")
    assert found(machine({**files, "proc/43/cgroup": "0::/b\n"}, {}, (43,)), of_processes=True) == []
