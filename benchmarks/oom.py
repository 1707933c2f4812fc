"""`opskit oom LOG` against grep and awk on a syslog of 50 MB with eleven reports, and on one of reports alone.

python benchmarks/oom.py      needs 110 MB in the temporary directory

grep and awk only find lines; they are the floor. Bounds: 1.5 CPU s for the first log, the peak memory below 80 MiB.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from common import OPSKIT, machine, median_cpu, ratio, side_by_side, table, verdict

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from kernellogs import FORMS, Process, cgroup_report

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE, RUNS = 50_000_000, 5
CPU_BOUND_S, PEAK_BOUND_MIB = 1.5, 80
AWK = "/invoked oom-killer|Killed process|oom-kill:/ { n++ } END { print n }"


def report(number: int) -> str:
    """One kill, as syslog has it."""
    return FORMS["syslog"](cgroup_report("5.10", Process(1000 + number % 30_000, "java", 50_000)))


def mostly_others() -> Iterator[str]:
    """Requests of an application, and few kills."""
    lines = [
        f"Nov 24 16:00:{n % 60:02d} web1 app[{n % 9000}]: GET /orders/{n * 7919 % 100000} 200 {n % 300} ms user={n}\n"
        for n in range(60_000)
    ]
    block = "".join(lines)
    count = SIZE // len(block) + 1
    return (block + report(number) for number in range(count))


def reports_alone() -> Iterator[str]:
    """Nothing but kills."""
    count = SIZE // len(report(0)) + 1
    return map(report, range(count))


def main() -> int:
    """Measure both logs."""
    print(machine())
    kept = True
    with tempfile.TemporaryDirectory() as folder:
        for name, make in (("50 MB of requests, few kills", mostly_others), ("50 MB of kills", reports_alone)):
            path = Path(folder) / "messages"
            with path.open("w") as file:
                file.writelines(make())
            costs = side_by_side(
                {
                    "grep -c": ["sh", "-c", f"grep -c 'Killed process' {path} | cat"],
                    "awk": ["awk", AWK, str(path)],
                    "opskit oom": [OPSKIT, "oom", str(path)],
                },
                RUNS,
            )
            print(name)
            table(costs)
            print(
                f"  of grep {ratio(costs['opskit oom'], costs['grep -c']):.1f}, of awk {ratio(costs['opskit oom'], costs['awk']):.1f}"
            )
            if make is mostly_others:
                peak = max(cost.peak_bytes for cost in costs["opskit oom"]) / 2**20
                kept &= verdict("CPU s", median_cpu(costs["opskit oom"]), CPU_BOUND_S)
                kept &= verdict("peak MiB", peak, PEAK_BOUND_MIB)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
