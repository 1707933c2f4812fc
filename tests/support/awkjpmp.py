"""The shell script that jpmp is measured by: awk over thread dumps, sort | uniq -c | sort -rn."""

from __future__ import annotations

import re
import subprocess
from collections import Counter

# The published copy of the script has lost the tab before `at`.
AWK = r"""
BEGIN { s = "" }
/^"/ { if (s) print s; s = "" }
/^[\t ]+at / { sub(/\([^)]*\)?$/, "", $2); sub(/^java/, "j", $2);
if (s) s = s "," $2; else s = $2 }
END { if (s) print s }
"""


def script(path) -> str:
    """What the whole script prints for a file of dumps."""
    return subprocess.run(
        ["/bin/sh", "-c", 'awk "$1" "$2" | sort | uniq -c | sort -rnk1', "sh", AWK, str(path)],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
    ).stdout.decode("utf-8", "surrogateescape")


def folded(text: str) -> Counter[str]:
    """Its lines as stack -> count, without the parts that differ between runs of a JVM."""
    counts: Counter[str] = Counter()
    for line in text.splitlines():
        count, _, stack = line.strip().partition(" ")
        counts[",".join(_fold(frame) for frame in stack.split(","))] += int(count)
    return counts


def _fold(frame: str) -> str:
    frame = re.sub(r"\$\$Lambda\$?\d*/(0x)?[0-9a-f]+", "$$Lambda", frame)
    frame = re.sub(r"/0x[0-9a-f]+", "", frame)
    if "/" in frame:  # module and class loader, which today's dumps have within the parentheses
        frame = re.sub(r"^java", "j", frame.rpartition("/")[2])
    return frame
