"""`opskit jmx PID`: CPU seconds above those of `opskit --version`, beside jstat, and with a pattern.

python benchmarks/jmx.py [text|formats] [runs=N]     needs jstat of a JDK in PATH; the JVMs come from PyPI, as in the tests
"""

from __future__ import annotations

import shutil
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import jvms
from common import OPSKIT, ratio, run_sections, side_by_side, table, verdict

if TYPE_CHECKING:
    from common import Cost

ABOVE_S, OF_JSTAT = 0.1, 1.0
OPTIONS = ("-Xmx256m", "-XX:+UseG1GC")
VERSION, ONE = "opskit --version", "java.lang:type=Memory HeapMemoryUsage.used"


def above(ours: list[Cost], theirs: list[Cost]) -> float:
    """The median of the differences of CPU seconds by pair."""
    return statistics.median(a.cpu_s - b.cpu_s for a, b in zip(ours, theirs))


def of_text(runs: int) -> bool:
    """Everything as text, of each JDK."""
    if not shutil.which("jstat"):
        sys.exit("needs jstat, of any JDK, in PATH")
    kept = []
    for version in jvms.WHEELS:
        with jvms.running("sleep=50", "allocate=20000000", version=version, options=OPTIONS) as jvm:
            costs = side_by_side(
                {
                    VERSION: [OPSKIT, "--version"],
                    "jstat -gc": ["jstat", "-gc", str(jvm.pid)],
                    f"opskit jmx, JDK {version}": [OPSKIT, "jmx", str(jvm.pid), "-f", "text"],
                },
                runs,
            )
        table(costs)
        base, jstat, ours = costs.values()
        kept.append(verdict(f"opskit jmx above {VERSION}, s", above(ours, base), ABOVE_S))
        kept.append(verdict("opskit jmx / jstat -gc", ratio(ours, jstat), OF_JSTAT))
    return all(kept)


def of_formats(runs: int) -> bool:
    """One number, and the other formats."""
    with jvms.running("sleep=50", options=OPTIONS) as jvm:
        words = {"one number": (ONE,), **{each: ("-f", each) for each in ("json", "prometheus", "csv", "table")}}
        commands = {f"opskit jmx, {name}": [OPSKIT, "jmx", str(jvm.pid), *more] for name, more in words.items()}
        costs = side_by_side({VERSION: [OPSKIT, "--version"], **commands}, runs)
    table(costs)
    del costs["opskit jmx, table"]  # it imports rich
    base, *others = costs.values()
    return verdict(f"the most above {VERSION}, s", max(above(each, base) for each in others), ABOVE_S)


if __name__ == "__main__":
    sys.exit(run_sections({"text": of_text, "formats": of_formats}))
