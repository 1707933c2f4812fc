"""Write the table of docs/commands/limits.md: predicted and started threads.

sudo python docs/predicted_beside_real.py     (root: it makes cgroups and processes of other users)
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

import limitcases  # noqa: E402

PAGE = ROOT / "docs" / "commands" / "limits.md"
MARKED = re.compile(r"<!-- predicted beside real -->\n.*?<!-- /predicted beside real -->\n", re.DOTALL)


def row(case: limitcases.Case) -> str:
    """Ask opskit about one child, then start threads in it until one fails."""
    options = ("--stack", str(case.stack)) if case.stack else ()
    with limitcases.child(case) as process:
        said = limitcases.predicted(process.pid, *options)
        real = limitcases.fill(process)
    return f"| {case.words} | `{said['binding']}` | {said['threads_left']:,} | {real:,} |"


def main() -> None:
    """Run every case and rewrite the table."""
    lines = [
        "<!-- predicted beside real -->",
        f"Linux {'.'.join(os.uname().release.split('.')[:2])}, glibc {os.confstr('CS_GNU_LIBC_VERSION').split()[1]}, "
        f"{os.cpu_count()} CPUs, {limitcases.memory_bytes() >> 30} GiB of RAM and swap; Python's threads unless said otherwise:",
        "",
        "| a process with | limit | predicted | started |",
        "| --- | --- | ---: | ---: |",
        *(row(case) for case in limitcases.cases()),
        "<!-- /predicted beside real -->",
        "",
    ]
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(MARKED.sub(lambda _: "\n".join(lines), text), encoding="utf-8")


if __name__ == "__main__":
    main()
