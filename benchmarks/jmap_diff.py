"""`opskit jmap-diff` against a plain Python script, on two histograms of 110,000 rows.

    python benchmarks/jmap_diff.py [RUNS]

The script loads two files into dictionaries, subtracts, sorts and prints. It splits lines and checks nothing. Four cases: all
classes changed or a fifth of them, as between two histograms of one JVM; each with and without Total lines. Without them opskit
checks the row numbers.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from common import OPSKIT, machine, ratio, side_by_side, table, verdict

ROWS = 110_000
WORDS = [
    "order",
    "cart",
    "user",
    "item",
    "cache",
    "session",
    "token",
    "http",
    "client",
    "pool",
    "worker",
    "queue",
    "event",
    "store",
    "index",
    "page",
    "node",
    "tree",
]
SCRIPT = """
import sys

def load(path):
    rows = {}
    with open(path) as lines:
        for line in lines:
            words = line.split()
            if len(words) > 3 and words[0].endswith(":"):
                rows[words[3]] = (int(words[1]), int(words[2]))
    return rows

before, after = load(sys.argv[1]), load(sys.argv[2])
nothing = (0, 0)
rows = []
for name in before.keys() | after.keys():
    then, now = before.get(name, nothing), after.get(name, nothing)
    if now[1] != then[1]:
        rows.append((now[1] - then[1], now[0] - then[0], name))
rows.sort(reverse=True)
for size, instances, name in rows:
    print("%s\\t%+d\\t%+d" % (name, instances, size))
"""


def names() -> list[str]:
    """Class names of a large application on JDK 17: a tenth JDK, a tenth accessors, some lambdas, the rest its own."""
    chance = random.Random(1)  # noqa: S311
    found = []
    for number in range(ROWS):
        one, other = chance.choice(WORDS), chance.choice(WORDS)
        if number % 10 == 0:
            found.append(f"java.util.{one.title()}{number}$Entry (java.base@17.0.5)")
        elif number % 10 == 1:
            found.append(f"jdk.internal.reflect.GeneratedMethodAccessor{number} (java.base@17.0.5)")
        elif number % 25 == 2:
            found.append(f"com.acme.{one}.{other.title()}{number}$$Lambda$77/0x0000000800{number:06x}")
        else:
            found.append(f"com.acme.{one}.{other}.{one.title()}{other.title()}{number}")
    return found


def write(path: Path, seed: int, share: float, *, total: bool) -> str:
    """Write a histogram in which this share of the classes grew by a random amount."""
    base, chance = random.Random(1), random.Random(seed)  # noqa: S311
    rows = []
    for name in names():
        count, size = base.randint(1, 10 ** base.randint(0, 6)), base.choice((16, 24, 32, 48))
        count += chance.randint(0, 50) if chance.random() < share else 0
        rows.append((count * size, count, name))
    rows.sort(key=lambda row: -row[0])
    lines = [" num     #instances         #bytes  class name (module)", "-" * 55]
    lines += [f"{number:4d}: {count:13d} {size:14d}  {name}" for number, (size, count, name) in enumerate(rows, 1)]
    if total:
        lines.append(f"Total {sum(row[1] for row in rows):13d} {sum(row[0] for row in rows):14d}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def compare(directory: Path, share: float, runs: int, *, total: bool) -> bool:
    """Measure one case; return whether the bound is kept."""
    print(
        f"two histograms of {ROWS:,} rows, {share:.0%} of them grown at random in each{'' if total else ', no Total line'}"
    )
    files = [write(directory / f"{share}-{seed}.txt", seed, share, total=total) for seed in (1, 2)]
    script = directory / "subtract.py"
    script.write_text(SCRIPT)
    costs = side_by_side(
        {"plain Python": [sys.executable, str(script), *files], "opskit jmap-diff": [OPSKIT, "jmap-diff", *files]}, runs
    )
    table(costs)
    return verdict("jmap-diff / plain Python", ratio(costs["opskit jmap-diff"], costs["plain Python"]), 1.0)


def main() -> int:
    """Measure all four cases; exit code 1 where a bound is missed."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    print(machine())
    with tempfile.TemporaryDirectory() as directory:
        kept = [compare(Path(directory), share, runs, total=total) for total in (True, False) for share in (1.0, 0.2)]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
