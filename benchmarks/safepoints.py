"""`opskit safepoints LOG` against grep and awk on logs of a million lines, and its peak memory on longer logs.

python benchmarks/safepoints.py      needs 900 MB in the temporary directory

Bounds: at most 4 times the CPU of `grep 'Total time' | awk` for logs of JDK 6 to 12, at most 6 times that of an awk that sums the same
fields for later ones; the peak memory does not grow with the log.
"""

from __future__ import annotations

import random
import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from common import OPSKIT, machine, ratio, side_by_side, table, verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LINES = 1_000_000
OLD_AWK = (
    '{ stopped += $9; ttsp += $14; n++ } END { if (n > 0) print "stopped.avg=" stopped / n ", ttsp.avg=" ttsp / n }'
)
NEW_AWK = (
    '{ for (i = 1; i < NF; i++) { if ($i == "Total:") stopped += $(i + 1); else if ($i == "safepoint:") ttsp += $(i + 1) }'
    ' n++ } END { if (n > 0) print "stopped.avg=" stopped / n / 1e9 ", ttsp.avg=" ttsp / n / 1e9 }'
)
NEW_AWK_FIXED = (  # field numbers of one dialect with one set of decorations
    "{ stopped += $(NF-1); ttsp += $(NF-7); n++ }"
    ' END { if (n > 0) print "stopped.avg=" stopped / n / 1e9 ", ttsp.avg=" ttsp / n / 1e9 }'
)
OPERATIONS = ("G1CollectForAllocation", "Cleanup", "ICBufferFull", "G1PauseRemark", "PrintThreads")


def stops(count: int) -> Iterator[tuple[float, float, float]]:
    """(uptime, stop, TTSP) in seconds."""
    chance = random.Random(5)  # noqa: S311
    uptime = 1.0
    for _ in range(count):
        stop = chance.lognormvariate(-7, 1.5)
        uptime += 0.05 + stop
        yield uptime, stop, stop * chance.random() / 2


def legacy(lines: int) -> Iterator[str]:
    """JDK 8 without timestamps."""
    for _, stop, ttsp in stops(lines):
        yield (
            f"Total time for which application threads were stopped: {stop:.7f} seconds, "
            f"Stopping threads took: {ttsp:.7f} seconds\n"
        )


def stamped(lines: int) -> Iterator[str]:
    """JDK 8 with uptimes."""
    for (uptime, _, _), line in zip(stops(lines), legacy(lines)):
        yield f"{uptime:.3f}: {line}"


def entering(lines: int) -> Iterator[str]:
    """JDK 9 to 12: four lines a safepoint."""
    for number, (uptime, stop, ttsp) in enumerate(stops(lines // 4)):
        head = f"[{uptime:.3f}s][info][safepoint    ] "
        yield (
            f"{head}Application time: 0.0500000 seconds\n"
            f"{head}Entering safepoint region: {OPERATIONS[number % len(OPERATIONS)]}\n"
            f"{head}Leaving safepoint region\n"
            f"{head}Total time for which application threads were stopped: {stop:.7f} seconds, "
            f"Stopping threads took: {ttsp:.7f} seconds\n"
        )


def nanos(lines: int) -> Iterator[str]:
    """JDK 17 and later."""
    for number, (uptime, stop, ttsp) in enumerate(stops(lines)):
        total, reaching = int(stop * 1e9), int(ttsp * 1e9)
        yield (
            f'[{uptime:.3f}s][info][safepoint   ] Safepoint "{OPERATIONS[number % len(OPERATIONS)]}", '
            f"Time since last: 50000000 ns, Reaching safepoint: {reaching} ns, At safepoint: {total - reaching} ns, "
            f"Total: {total} ns\n"
        )


def written(folder: Path, name: str, make: Callable[[int], Iterator[str]], lines: int) -> Path:
    """Write the log."""
    path = folder / name
    with path.open("w", encoding="ascii") as file:
        file.writelines(make(lines))
    return path


def pipeline(word: str, awk: str, path: Path) -> list[str]:
    """`grep | awk` as one command, so that its whole CPU is counted."""
    return ["sh", "-c", f"grep {shlex.quote(word)} {shlex.quote(str(path))} | awk {shlex.quote(awk)}"]


def main() -> int:
    """Print the figures beside their bounds; 1 where one is missed."""
    print(machine())
    kept = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dialects = (
            ("JDK 8", legacy, [("grep | awk", "Total time", OLD_AWK, 4.0)]),
            ("JDK 8 with uptimes", stamped, [("grep | awk", "Total time", OLD_AWK, 4.0)]),
            ("JDK 9 to 12, four lines each", entering, [("grep | awk", "Total time", OLD_AWK, 4.0)]),
            (
                "JDK 17 and later",
                nanos,
                [
                    ("grep | awk by key", "Reaching safepoint", NEW_AWK, 6.0),
                    ("grep | awk by fixed fields", "Reaching safepoint", NEW_AWK_FIXED, 6.0),
                ],
            ),
        )
        for title, make, others in dialects:
            path = written(folder, "log", make, LINES)
            commands = {"opskit safepoints": [OPSKIT, "safepoints", str(path), "-f", "text"]}
            for other, word, awk, _ in others:
                commands[other] = pipeline(word, awk, path)
            print(f"{title}: {LINES:,} lines, {path.stat().st_size / 1e6:.0f} MB")
            costs = side_by_side(commands, 5)
            table(costs)
            for other, _, _, bound in others:
                kept.append(verdict(f"of {other}", ratio(costs["opskit safepoints"], costs[other]), bound))
        for title, make in (("JDK 8", legacy), ("JDK 17 and later", nanos)):
            sizes = (LINES // 10, LINES, LINES * 4)
            peaks = []
            for lines in sizes:
                path = written(folder, "log", make, lines)
                (cost,) = side_by_side({"": [OPSKIT, "safepoints", str(path), "-f", "text"]}, 1)[""]
                peaks.append(cost.peak_bytes / 2**20)
            shown = ", ".join(f"{lines:,} lines {peak:.1f} MiB" for lines, peak in zip(sizes, peaks))
            print(f"{title}, peak memory: {shown}")
            kept.append(verdict("growth from 1 to 4 million lines, MiB", peaks[2] - peaks[1], 3.0))
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
