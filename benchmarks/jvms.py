"""`opskit jvms -f text` against `jps -lv` with four JVMs on the machine (11, 17, 21, 25): CPU seconds.

python benchmarks/jvms.py          needs jps of a JDK in PATH; the JVMs come from PyPI, as in the tests
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import jvms
from common import OPSKIT, machine, ratio, side_by_side, table, verdict

BOUND = 0.45
MEMORY_BYTES = 60e6


def main() -> int:
    """Measure, print, and exit with 1 where a bound is missed."""
    if not shutil.which("jps"):
        sys.exit("needs jps, of any JDK, in PATH")
    print(machine())
    running = [jvms.start("sleep=50", version=version, options=("-Xmx128m", "-Dkey=value")) for version in jvms.WHEELS]
    try:
        costs = side_by_side(
            {
                "jps -lv": ["jps", "-lv"],
                "opskit jvms -f text": [OPSKIT, "jvms", "-f", "text"],
                "opskit jvms -f json": [OPSKIT, "jvms", "-f", "json"],
                "opskit jvms -f table": [OPSKIT, "jvms", "-f", "table"],
            },
            runs=20,
        )
    finally:
        for jvm in running:
            jvm.stop()
    table(costs)
    theirs, text, *others = costs.values()
    kept = [verdict("opskit jvms -f text / jps -lv, CPU", ratio(text, theirs), BOUND)]
    peak = max(cost.peak_bytes for runs in (text, *others) for cost in runs)
    kept.append(verdict("peak of opskit in any format, MB", peak / 1e6, MEMORY_BYTES / 1e6))
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
