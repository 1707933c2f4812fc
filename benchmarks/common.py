"""Compare whole commands: CPU seconds (user+sys, children included), wall seconds, peak memory."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# The console script of the Python that runs the benchmark.
OPSKIT = str(Path(sys.executable).with_name("opskit"))


@dataclass(frozen=True)
class Cost:
    """One run of a command."""

    cpu_s: float
    wall_s: float
    peak_bytes: int


def measure(command: list[str]) -> Cost:
    """Run a command without output, and return the kernel's accounting of it and its children."""
    with open(os.devnull, "r+b") as null:
        begun = time.monotonic()
        process = subprocess.Popen(command, stdin=null, stdout=null, stderr=null)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(usage.ru_utime + usage.ru_stime, wall_s, usage.ru_maxrss * 1024)


def side_by_side(commands: dict[str, list[str]], runs: int) -> dict[str, list[Cost]]:
    """Run the commands alternately, A B C A B C …, after one round that is not counted."""
    for command in commands.values():
        measure(command)
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            costs[name].append(measure(command))
    return costs


def median_cpu(costs: list[Cost]) -> float:
    """The median of the CPU seconds."""
    return statistics.median(cost.cpu_s for cost in costs)


def ratio(ours: list[Cost], theirs: list[Cost]) -> float:
    """The median of the ratios of CPU seconds by pair, which cancels drift of the machine."""
    return statistics.median(a.cpu_s / b.cpu_s for a, b in zip(ours, theirs))


def machine() -> str:
    """Describe the machine."""
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "?")
    return f"{os.cpu_count()} x {model}, Linux {platform.release()}, Python {platform.python_version()}"


def table(costs: dict[str, list[Cost]]) -> None:
    """Print the medians."""
    for name, runs in costs.items():
        peak = max(cost.peak_bytes for cost in runs)
        wall = statistics.median(cost.wall_s for cost in runs)
        print(f"  {name:<34} cpu {median_cpu(runs):7.3f} s   wall {wall:7.3f} s   peak {peak / 2**20:6.1f} MiB")


def verdict(what: str, value: float, bound: float) -> bool:
    """Print a figure and its bound; return whether it is kept."""
    kept = value <= bound
    print(f"  {what}: {value:.3f} (bound {bound}) {'ok' if kept else 'MISSED'}")
    return kept


def run_sections(sections: Mapping[str, Callable[[int], bool]], runs: int = 7) -> int:
    """Run those that the command line names, or all; `runs=N` follows them. Return the exit code: 1 where a bound is missed."""
    chosen = [word for word in sys.argv[1:] if "=" not in word]
    runs = next((int(word.partition("=")[2]) for word in sys.argv[1:] if word.startswith("runs=")), runs)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed opskit has its byte code
    print(machine())
    kept = [sections[name](runs) for name in chosen or sections]
    print("all bounds are kept" if all(kept) else "a bound is MISSED")
    return 0 if all(kept) else 1
