"""`opskit irqs` against `opskit --help`: CPU of the whole command, beside the threads of the machine; and its softirq share beside what a spinner loses.

    sudo python benchmarks/irqs.py [RUNS]

The bound of the ratio is 1.6; of the share 6 points, under a flood of datagrams that RPS gives to the spinner's CPU.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import floodstage
from common import OPSKIT, machine, ratio, side_by_side, table, verdict

RATIO_BOUND, POINTS_BOUND = 1.6, 6.0


def off_by(staged: floodstage.Stage) -> float:
    """By how many points the share is off the loss, of the time that the spinner has on the CPU."""
    begin_ns = time.monotonic_ns()
    done = subprocess.run([OPSKIT, "irqs", "-i", "2", "-f", "json"], capture_output=True, text=True, check=False)
    document = json.loads(done.stdout)
    row = next(row for row in document["cpus"] if row["cpu"] == staged.cpu)
    [thread] = [each for each in document["pinned"] if each["pid"] == staged.spinner.pid]
    loss = staged.lost(begin_ns, time.monotonic_ns())
    print(f"  softirq {row['softirq']:.1%}, the spinner lost {loss:.1%}, waited {thread['lost']:.1%}")
    return float(100 * abs(row["softirq"] - loss))


def main() -> int:
    """Measure; exit code 1 where a bound is missed."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    print(machine())
    base = "opskit --help"
    commands = {base: [OPSKIT, "--help"]}
    commands.update(
        {f"opskit irqs -f {form}": [OPSKIT, "irqs", "-i", "0.3", "-f", form] for form in ("text", "table", "json")}
    )
    costs = side_by_side(commands, runs)
    table(costs)
    kept = [verdict("irqs -f text / --help", ratio(costs["opskit irqs -f text"], costs[base]), RATIO_BOUND)]
    if os.geteuid() == 0:
        with tempfile.TemporaryDirectory() as folder, floodstage.flood(Path(folder), 90_000) as staged:
            time.sleep(0.5)
            kept.append(
                verdict("points off, median", statistics.median(off_by(staged) for _ in range(5)), POINTS_BOUND)
            )
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
