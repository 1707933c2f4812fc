"""The share of kernel mode in a CPU profile of Jetty, by opskit, by async-profiler's events and by perf, beside the kernel's accounting.

    sudo python benchmarks/profile_kernel.py [PROGRAM] [JDK] [SECONDS]

Windows by turns, so that what changes in the program meets all of them. Needs perf. accounted: system time, of the same window, by
the kernel's ticks. perf -p and async-profiler's cpu have a clock of each thread; perf -a and opskit (as root) have one of each CPU.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psutil
from common import OPSKIT, machine
from profile_baseline import recording
from profile_programs import PROGRAMS, java
from profile_stacks import in_kernel, parse

if TYPE_CHECKING:
    from profile_stacks import Profile

_TURNS, _WARM_UP_S, _HZ = 6, 15, 199
_KERNEL = 1 << 63  # addresses from here on


class Modes(NamedTuple):
    """Samples, and how many of them were in the kernel."""

    all: int
    kernel: int


def of_profile(profile: Profile) -> Modes:
    """Of all stacks."""
    return Modes(sum(profile.values()), in_kernel(profile))


def by_opskit(pid: int, seconds: float) -> Modes:
    """Samples of opskit, in ms."""
    how = ("--on-cpu", "--sampler", "unwind", "-F", str(_HZ), "--duration", f"{seconds:g}s", "-f", "folded")
    done = subprocess.run([OPSKIT, "jpmp", str(pid), *how], capture_output=True, text=True, check=False)
    return of_profile(parse(done.stdout))


def by_async_profiler(pid: int, seconds: float) -> Modes:
    """Samples of its event cpu."""
    with recording(pid, "cpu") as recorded:
        time.sleep(seconds)
    return of_profile(parse(recorded.text))


def by_perf(pid: int, seconds: float, *scope: str) -> Modes:
    """Samples of perf record."""
    with tempfile.TemporaryDirectory(prefix="profile-") as folder:
        data = str(Path(folder) / "data")
        command = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(_HZ), "-o", data, *scope]
        subprocess.run([*command, "--", "sleep", f"{seconds:g}"], capture_output=True, check=True)
        script = ["perf", "script", "-i", data, "--pid", str(pid), "-F", "pid,ip"]
        words = subprocess.run(script, capture_output=True, text=True, check=True).stdout.split()
    addresses = [int(word, 16) for word in words[1::2]]
    return Modes(len(addresses), sum(address >= _KERNEL for address in addresses))


WAYS = {
    "opskit": by_opskit,
    "perf record -a": lambda pid, seconds: by_perf(pid, seconds, "-a"),
    "perf record -p": lambda pid, seconds: by_perf(pid, seconds, "-p", str(pid)),
    "async-profiler cpu": by_async_profiler,
}


def main() -> int:
    """Print a line for each way."""
    name, version, seconds = [*sys.argv[1:], *("jetty", "21", "5")[len(sys.argv) - 1 :]]
    print(f"{machine()}; {name}, JDK {version}, {_TURNS} windows of {seconds} s each")
    seen: dict[str, Counter[str]] = {way: Counter() for way in WAYS}
    with PROGRAMS[name].start(java(name, int(version)), ()) as program:
        time.sleep(_WARM_UP_S)
        process = psutil.Process(program.pid)
        for _ in range(_TURNS):
            for way, take in WAYS.items():
                before = process.cpu_times()
                modes = take(program.pid, float(seconds))
                after = process.cpu_times()
                seen[way].update(all=modes.all, kernel=modes.kernel)
                seen[way].update(user=after.user - before.user, system=after.system - before.system)
    for way, of in seen.items():
        accounted = of["system"] / (of["user"] + of["system"])
        print(f"{way:<20} {100 * of['kernel'] / of['all']:5.1f} % in the kernel, accounted {100 * accounted:5.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
