"""`opskit jpmp a.folded -o x.svg` against FlameGraph's flamegraph.pl and difffolded.pl: CPU, memory, size of the picture.

    python benchmarks/flamegraph.py [RUNS]

A typical service (2,000 stacks), and 100,000 distinct stacks of 16 to 61 frames. The Perl scripts are searched in $FLAMEGRAPH and
PATH; without them only the absolute bounds are checked.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

from common import OPSKIT, machine, measure, median_cpu, ratio, side_by_side, table, verdict

NAMES = [
    f"{package}.Class{number % 300}.method{number}"
    for number in range(3000)
    for package in [("com.example.shop", "java.util.concurrent", "org.example.web.servlet", "io.example.channel")[number % 4]]
]  # fmt: skip


def write(path: Path, stacks: int, seed: int, deepest: int) -> Path:
    """Collapsed stacks that branch like those of a service."""
    chance = random.Random(seed)  # noqa: S311
    seen: set[str] = set()
    while len(seen) < stacks:
        frames = [0]
        for depth in range(chance.randint(deepest // 4, deepest)):
            branches = 3 if depth % 3 == 0 else 1
            frames.append((frames[-1] * 31 + 7 * chance.randint(0, branches) + depth) % len(NAMES))
        seen.add(";".join(NAMES[frame] for frame in frames))
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{stack} {chance.randint(1, 20)}\n" for stack in sorted(seen))
    return path


def script(name: str) -> str | None:
    """The path of one of FlameGraph's scripts, or None."""
    folder = os.environ.get("FLAMEGRAPH")
    return str(Path(folder, name)) if folder else shutil.which(name)


def compare(folder: Path, stacks: int, deepest: int, runs: int, bounds: tuple[float, float, float]) -> bool:
    """One size; `bounds`: CPU s, memory and picture in MB."""
    cpu_s, memory, size = bounds
    now, then = (write(folder / f"{stacks}-{seed}.folded", stacks, seed, deepest) for seed in (1, 2))
    print(f"{stacks:,} distinct stacks, {now.stat().st_size / 1e6:.0f} MB")
    picture, change = folder / "x.svg", folder / "d.svg"
    commands = {
        "opskit jpmp -o x.svg": [OPSKIT, "jpmp", str(now), "-o", str(picture)],
        "opskit jpmp --diff -o d.svg": [OPSKIT, "jpmp", str(now), "--diff", str(then), "-o", str(change)],
    }
    flamegraph, difference = script("flamegraph.pl"), script("difffolded.pl")
    if flamegraph and difference:
        shell = '"$0" "$1" > "$2"'
        commands["flamegraph.pl"] = ["bash", "-c", shell, flamegraph, str(now), str(folder / "p.svg")]
        shell = '"$0" -n "$1" "$2" | "$3" > "$4"'
        commands["difffolded.pl -n | flamegraph.pl"] = [
            "bash", "-c", shell, difference, str(then), str(now), flamegraph, str(folder / "q.svg"),
        ]  # fmt: skip
    else:
        print("  flamegraph.pl and difffolded.pl were not found; set FLAMEGRAPH to their directory")
    costs = side_by_side(commands, runs) if runs > 1 else {name: [measure(line)] for name, line in commands.items()}
    table(costs)
    for name in ("x", "d", "p", "q"):
        path = folder / f"{name}.svg"
        if path.exists():
            print(f"  {path.name}: {path.stat().st_size / 1e6:.1f} MB")
    ours, both = costs["opskit jpmp -o x.svg"], costs["opskit jpmp --diff -o d.svg"]
    kept = [
        verdict("CPU s", median_cpu(ours), cpu_s),
        verdict("memory, MB", max(cost.peak_bytes for cost in ours) / 1e6, memory),
        verdict("picture, MB", picture.stat().st_size / 1e6, size),
    ]
    if "flamegraph.pl" in costs:
        kept.append(verdict("opskit / flamegraph.pl, CPU", ratio(ours, costs["flamegraph.pl"]), 1.0))
        kept.append(
            verdict("--diff / difffolded.pl …, CPU", ratio(both, costs["difffolded.pl -n | flamegraph.pl"]), 1.0)
        )
    return all(kept)


def main() -> int:
    """Both sizes."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(machine())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept = [
            compare(folder, 2_000, 40, runs, (0.5, 100, 15)),
            compare(folder, 100_000, 61, max(1, runs // 3), (10, 1000, 15)),
        ]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
