"""`opskit clock`: CPU of the whole command against its bound, and the offset that it finds beside that of a server on the loopback device.

python benchmarks/clock.py
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import ntpserver
from common import OPSKIT, machine, median_cpu, side_by_side, table, verdict

CPU_BOUND_S, OFFSET_BOUND_MS = 0.15, 1.0
OFFSET_S = 25200.123


def main() -> int:
    """Measure, print, and exit with 1 where a bound is missed."""
    print(machine())
    with ntpserver.right(OFFSET_S) as (port, _):
        server = f"127.0.0.1:{port}"
        costs = side_by_side(
            {
                "opskit --help": [OPSKIT, "--help"],
                "opskit clock -f text": [OPSKIT, "clock", "-f", "text"],
                "opskit clock -f table": [OPSKIT, "clock", "-f", "table"],
                "opskit clock --server -f text": [OPSKIT, "clock", "--server", server, "-f", "text"],
            },
            runs=20,
        )
        offs = []
        for _ in range(20):
            done = subprocess.run(
                [OPSKIT, "clock", "--server", server, "-f", "json"], capture_output=True, text=True, check=False
            )
            offs.append(abs(json.loads(done.stdout)["server"]["offset_s"] - OFFSET_S))
    table(costs)
    kept = [verdict(f"{name}: CPU s", median_cpu(runs), CPU_BOUND_S) for name, runs in costs.items() if "clock" in name]
    kept.append(
        verdict("offset on the loopback device: ms off, median", 1e3 * statistics.median(offs), OFFSET_BOUND_MS)
    )
    kept.append(verdict("offset on the loopback device: ms off, worst", 1e3 * max(offs), OFFSET_BOUND_MS))
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
