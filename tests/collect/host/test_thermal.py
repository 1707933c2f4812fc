"""Machines with and without thermal counters, sensors and frequencies, in the kernel's formats."""

from __future__ import annotations

import pytest
from nextsteps import try_next

from opskit.analysis.host.thermal import judge
from opskit.checks.look import Look
from opskit.checks.thermal import check
from opskit.collect.host.thermal import collect
from opskit.host import Host
from opskit.proc.fs import ProcFS

CPUS = "sys/devices/system/cpu"
WINDOW_S = 1.0
# Two cores of two threads each, in one package.
LAPTOP = {
    f"{CPUS}/online": "0-3\n",
    **{f"{CPUS}/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 2},{cpu % 2 + 2}\n" for cpu in range(4)},
    **{f"{CPUS}/cpu{cpu}/topology/core_siblings_list": "0-3\n" for cpu in range(4)},
    **{f"{CPUS}/cpu{cpu}/topology/physical_package_id": "0\n" for cpu in range(4)},
}
VIRTUAL = {f"{CPUS}/online": "0-1\n", "proc/cpuinfo": "model name\t: AMD EPYC\nflags\t\t: fpu hypervisor\n"}
METAL = {f"{CPUS}/online": "0-1\n", "proc/cpuinfo": "model name\t: ARMv8\n"}


def throttle(times, total_ms=None, package=0):
    """The counters of all CPUs: core 1 has `times`, the package so many."""
    files = {}
    for cpu in range(4):
        base = f"{CPUS}/cpu{cpu}/thermal_throttle"
        files[f"{base}/core_throttle_count"] = f"{times if cpu % 2 else 0}\n"
        files[f"{base}/package_throttle_count"] = f"{package}\n"
        if total_ms is not None:
            files[f"{base}/core_throttle_total_time_ms"] = f"{total_ms if cpu % 2 else 0}\n"
            files[f"{base}/package_throttle_total_time_ms"] = "0\n"
    return files


def zone(temperature, *trips, kind="acpitz"):
    base = "sys/class/thermal/thermal_zone0"
    files = {f"{base}/type": f"{kind}\n", f"{base}/temp": f"{temperature}\n"}
    for number, (name, limit) in enumerate(trips):
        files |= {f"{base}/trip_point_{number}_type": f"{name}\n", f"{base}/trip_point_{number}_temp": f"{limit}\n"}
    return files


def sensor(temperature, limit, name="coretemp"):
    base = "sys/class/hwmon/hwmon3"
    return {f"{base}/name": f"{name}\n", f"{base}/temp1_input": f"{temperature}\n", f"{base}/temp1_crit": f"{limit}\n"}


def frequency(allowed, able=3_600_000):
    base = f"{CPUS}/cpufreq/policy0"
    return {f"{base}/scaling_max_freq": f"{allowed}\n", f"{base}/cpuinfo_max_freq": f"{able}\n"}


@pytest.fixture
def live(tree):
    """A machine with these files, of which some change while opskit waits."""

    def make(files, later=None):
        root, now = tree({"proc/version": "", **files}), [0.0]
        host = Host(ProcFS(str(root / "proc"), str(root)))

        def sleep(seconds):
            now[0] += seconds
            tree(later or {})

        host.monotonic, host.sleep = (lambda: now[0]), sleep
        return host

    return make


@pytest.fixture
def judged(live):
    """The code, the severity and the sentence of each finding."""

    def run(files, later=None):
        return [(each.code, each.severity, each.summary) for each in judge(collect(live(files, later), WINDOW_S))]

    return run


@pytest.mark.parametrize(
    ("before", "after", "severity", "summary"),
    [
        (throttle(7), throttle(9), "warning", "the core of CPU 1 is slowed down for its temperature 2 times in 1.0 s"),
        (throttle(7), throttle(8), "note", "the core of CPU 1 is slowed down for its temperature 1 time in 1.0 s"),
        (throttle(7, 900), throttle(8, 1300), "warning", "the core of CPU 1 is slowed down for its temperature 40 % of the time"),
        (throttle(7, 900), throttle(8, 904), "note", "the core of CPU 1 is slowed down for its temperature 0.4 % of the time"),
        (throttle(0), throttle(0, package=5), "warning", "the package of CPU 0 is slowed down for its temperature 5 times in 1.0 s"),
        (throttle(7), throttle(7), "note", "the core of CPU 1 was slowed down for its temperature 7 times since boot"),
        (throttle(7, 4200), throttle(7, 4200), "note", "the core of CPU 1 was slowed down for its temperature 7 times since boot, for 4.2 s"),
    ],
    ids=["twice", "once", "long", "short", "package", "long ago", "long ago, with the time"],
)  # fmt: skip
def test_what_was_slowed_down(judged, before, after, severity, summary):
    """A warning for what happens in the window, a note for what was; a core is named once for all of its CPUs."""
    assert judged({**LAPTOP, **before}, after) == [("cpu-thermal-throttled", severity, summary)]


def test_a_machine_that_was_never_too_hot(judged):
    """Nothing."""
    assert judged({**LAPTOP, **throttle(0, 0), **zone(48_000, ("critical", 100_000)), **frequency(3_600_000)}) == []


@pytest.mark.parametrize(
    ("files", "severity", "summary"),
    [
        (zone(98_000, ("passive", 90_000), ("critical", 100_000)), "warning",
         "thermal_zone0 (acpitz) is at 98 °C; at 100 °C the machine is switched off"),
        (zone(98_000, ("critical", 119_000)), None, None),
        (zone(98_000, ("passive", 90_000), kind="x86_pkg_temp"), None, None),
        (zone(20_800, ("critical", 0)), None, None),
        (zone(20_800, ("critical", 20_800)), None, None),
        (zone(-274_000, ("critical", 100_000)), None, None),
        (sensor(100_000, 100_000), "note", "coretemp temp1 is at 100 °C; at 100 °C the CPU slows down"),
        (sensor(99_000, 100_000), None, None),
        (sensor(100_000, 100_000, name="drivetemp"), None, None),
    ],
    ids=["near", "far", "passive", "no trip", "firmware's nonsense", "no sensor", "sensor", "warm", "of a disk"],
)  # fmt: skip
def test_temperatures(judged, files, severity, summary):
    """Near a critical trip point is a warning. A CPU at its own limit is a note; other sensors are not read."""
    expected = [] if severity is None else [("cpu-temperature-critical", severity, summary)]
    assert judged({**METAL, **files}) == expected


def test_frequencies_that_are_capped(judged):
    """A note, and a warning where it happened just now."""
    said = "CPU 0 may run at 1.2 GHz at most, of 3.6 GHz"
    assert judged({**METAL, **frequency(1_200_000)}) == [("cpu-frequency-capped", "note", said)]
    assert judged({**METAL, **frequency(3_600_000)}, frequency(1_200_000)) == [
        ("cpu-frequency-capped", "warning", f"{said}: that was lowered just now")
    ]
    assert judged({**METAL, **frequency(3_400_000)}) == []


def test_what_to_type(live):
    """The sensors, where they are installed."""
    hot = judge(collect(live({**METAL, **zone(98_000, ("critical", 100_000))}), WINDOW_S))
    slowed = judge(collect(live({**LAPTOP, **throttle(1)}, throttle(9)), WINDOW_S))
    assert try_next(hot, "cpu-temperature-critical") == "sensors"
    assert try_next(slowed, "cpu-thermal-throttled") == "sensors"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (VIRTUAL, ["no thermal counters (virtual machine)"]),
        (METAL, ["no thermal counters"]),
        ({**LAPTOP, **throttle(0), **zone(40_000, ("critical", 90_000)), **frequency(2)},
         ["3 throttle counters", "1 temperature", "1 CPU frequency"]),
    ],
    ids=["virtual", "metal", "laptop"],
)  # fmt: skip
def test_what_was_looked_at(live, files, said):
    """A virtual machine shows no temperature: that is normal, and no gap."""
    outcome = check(Look(live(files), (), WINDOW_S))
    assert (list(outcome.looked_at), list(outcome.gaps)) == (said, [])


def test_a_copy_has_counts_since_boot_and_no_rates(tree):
    """The gap says what is missing."""
    root = tree({"proc/meminfo": "MemTotal: 1 kB\n", **LAPTOP, **throttle(7)})
    outcome = check(Look(Host.at(str(root), None), (), 0.0))
    assert [each.severity for each in outcome.findings] == ["note"]
    assert [gap.what for gap in outcome.gaps] == ["whether CPUs are slowed down now"]


def test_of_processes_it_says_nothing(live):
    """The temperature is the machine's."""
    assert not any(check(Look(live({**METAL, **zone(99_000, ("critical", 100_000))}), (1,), WINDOW_S))[:3])
