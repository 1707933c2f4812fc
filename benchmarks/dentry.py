"""How much `opskit dentry --culprit` slows the traced process down, against strace; CPU of `opskit dentry` against slabtop.

sudo python benchmarks/dentry.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time

from common import OPSKIT, machine, median_cpu, side_by_side, table, verdict

SECONDS = 3.0
RUNS = 5
# Looks up files that do not exist as fast as it can; prints the rate.
LOOP = """
import os, sys, time
folder, seconds = sys.argv[1], float(sys.argv[2])
end, count = time.monotonic() + seconds, 0
while time.monotonic() < end:
    for number in range(100):
        try:
            os.stat(f"{folder}/absent-{number}")
        except OSError:
            pass
    count += 100
print(count / seconds)
"""


def lookups_per_s(folder: str, tracer: list[str] | None) -> float:
    """Lookups per second of the loop while a tracer runs (PID stands for its PID)."""
    loop = subprocess.Popen([sys.executable, "-c", LOOP, folder, str(SECONDS)], stdout=subprocess.PIPE, text=True)
    watcher = None
    if tracer is not None:
        command = [word.replace("PID", str(loop.pid)) for word in tracer]
        watcher = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    out, _ = loop.communicate()
    if watcher is not None:
        watcher.wait()
    return float(out)


def main() -> int:
    """Measure, print, and exit with 1 where a bound is missed."""
    print(machine())
    tracers = {
        "alone": None,
        "opskit dentry --culprit": [OPSKIT, "dentry", "--culprit", str(SECONDS - 1), "-f", "text"],
        "strace -f -c": [
            "timeout",
            "-s",
            "INT",
            str(SECONDS - 0.5),
            "strace",
            "-f",
            "-c",
            "-e",
            "trace=%file",
            "-p",
            "PID",
        ],
    }
    speeds: dict[str, list[float]] = {name: [] for name in tracers}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for _ in range(RUNS):
            for name, tracer in tracers.items():
                speeds[name].append(lookups_per_s(folder, tracer))
                time.sleep(0.2)
    for name, rates in speeds.items():
        print(f"  {name:<34} {statistics.median(rates):12,.0f} failed lookups a second")
    alone, ours, strace = (statistics.median(rates) for rates in speeds.values())
    print(f"  slowed down: opskit {alone / ours:.2f} x, strace {alone / strace:.1f} x")
    kept = [
        verdict("slow-down by --culprit", alone / ours, 1.5),
        verdict("failed lookups under strace / under --culprit", strace / ours, 0.4),
    ]
    costs = side_by_side(
        {
            "opskit dentry -f text": [OPSKIT, "dentry", "-f", "text"],
            "slabtop -o": ["slabtop", "-o"],
            "opskit --help": [OPSKIT, "--help"],
        },
        runs=15,
    )
    table(costs)
    look, _, help_ = costs.values()
    kept.append(
        verdict("opskit dentry -f text / opskit --help (idle machine)", median_cpu(look) / median_cpu(help_), 2.3)
    )
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
