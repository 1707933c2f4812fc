"""`opskit limits PID` against `ps -eLf`, which counts a user's threads.

python benchmarks/limits.py

1,000 processes and one with 2,000 threads. `ps` covers one of the dozen limits that opskit reads.
"""

from __future__ import annotations

import subprocess
import sys

from common import OPSKIT, machine, ratio, side_by_side, table, verdict

PROCESSES, THREADS = 1000, 2000
HOLD = f"""
import threading, time
threading.stack_size(65536)
for _ in range({THREADS - 1}):
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
print(flush=True)
time.sleep(3600)
"""


def main() -> int:
    """Measure, print, and exit with 1 where a bound is missed."""
    sleepers = [subprocess.Popen(["sleep", "3600"]) for _ in range(PROCESSES)]
    holder = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE)
    try:
        if holder.stdout:
            holder.stdout.readline()
        print(machine())
        costs = side_by_side(
            {
                "ps -eLf": ["ps", "-eLf"],
                "opskit limits PID -f text": [OPSKIT, "limits", str(holder.pid), "-f", "text"],
                "opskit limits PID --all -f json": [OPSKIT, "limits", str(holder.pid), "--all", "-f", "json"],
            },
            runs=10,
        )
    finally:
        for process in [*sleepers, holder]:
            process.kill()
            process.wait()
    table(costs)
    by_hand, text, everything = costs.values()
    kept = [
        verdict("opskit limits -f text / ps -eLf", ratio(text, by_hand), 1.2),
        verdict("opskit limits --all -f json / ps -eLf", ratio(everything, by_hand), 1.2),
    ]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
