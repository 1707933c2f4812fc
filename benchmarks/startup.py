"""`opskit --help` against `python -c "import click"`: CPU seconds, median of 20.

python benchmarks/startup.py
"""

from __future__ import annotations

import sys

from common import OPSKIT, machine, ratio, side_by_side, table, verdict


def main() -> int:
    """Measure, print, and exit with 1 where a bound is missed."""
    print(machine())
    costs = side_by_side(
        {
            'python -c "import click"': [sys.executable, "-c", "import click"],
            "opskit --help": [OPSKIT, "--help"],
            "opskit pipes -f text": [OPSKIT, "pipes", "-f", "text"],
            "opskit pipes -f table": [OPSKIT, "pipes", "-f", "table"],
        },
        runs=20,
    )
    table(costs)
    click, help_, text, rich = costs.values()
    kept = [
        verdict("opskit --help / import click", ratio(help_, click), 1.1),
        verdict("opskit pipes -f text / opskit --help (idle machine)", ratio(text, help_), 1.25),
        verdict("opskit pipes -f table / opskit --help (idle machine)", ratio(rich, help_), 2.2),
    ]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
