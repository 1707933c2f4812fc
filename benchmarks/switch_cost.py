"""`opskit cswitch --bench` beside the same in C (tests/native/switches.c): a system call, a process switch, the CPU time of a figure.

    python benchmarks/switch_cost.py [RUNS]

The bounds are 1.35 for a switch on one CPU (and 0.9 from below), 1.7 for a system call, 0.6 s of CPU time for a figure.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from common import OPSKIT, machine, verdict

SOURCE = Path(__file__).resolve().parent.parent / "tests" / "native" / "switches.c"
SIZES = {65536: 900, 1 << 20: 300}


def main() -> int:
    """Measure; exit code 1 where a bound is missed."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    print(machine())
    cpu = str(min(os.sched_getaffinity(0)))
    ratios: dict[str, list[float]] = {}
    cpu_s = []
    with tempfile.TemporaryDirectory() as place:
        program = f"{place}/switches"
        subprocess.run(["cc", "-O2", "-o", program, SOURCE], check=True)
        for _ in range(runs):
            words = [OPSKIT, "cswitch", "--bench", "--pin", "one", "--ws", ",".join(map(str, SIZES)), "-f", "json"]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            figures = json.loads(done.stdout)["bench"]["figures"]
            ours = {(row["what"], row["working_set_bytes"]): row["least_s"] * 1e9 for row in figures}
            cpu_s += [row["cpu_s"] for row in figures]
            call, switch = _in_c(program, cpu, 900)
            _add(ratios, "system call", ours["system-call", 0], call)
            _add(ratios, "switch on one CPU", ours["one-cpu", 0], switch)
            for size, batches in SIZES.items():
                _, switch = _in_c(program, cpu, batches, size, 10)
                _add(ratios, f"switch with {size >> 10} KiB", ours["one-cpu", size], switch)
    middle = {what: statistics.median(each) for what, each in ratios.items()}
    for what, value in middle.items():
        print(f"  {what}: {value:.2f} of the program in C")
    kept = [
        verdict("switch on one CPU / C", middle["switch on one CPU"], 1.35),
        verdict("C / switch on one CPU", 1 / middle["switch on one CPU"], 1.11),
        verdict("system call / C", middle["system call"], 1.7),
        verdict("CPU s of a figure, the most", max(cpu_s), 0.6),
    ]
    return 0 if all(kept) else 1


def _add(ratios: dict[str, list[float]], what: str, ours_ns: float, theirs_ns: float) -> None:
    print(f"  {what}: {ours_ns:.0f} ns, in C {theirs_ns:.0f} ns")
    ratios.setdefault(what, []).append(ours_ns / theirs_ns)


def _in_c(program: str, cpu: str, *words: int) -> tuple[float, float]:
    """The shortest system call and switch, in ns."""
    done = subprocess.run([program, cpu, cpu, *map(str, words)], capture_output=True, text=True, check=True)
    said = done.stdout.split()
    return float(said[1]), float(said[4])


if __name__ == "__main__":
    sys.exit(main())
