"""`opskit pipes` against find | sort | uniq -c, lsof and lsfd, on 200,000 pipe file descriptors in 200 processes.

    sudo python benchmarks/pipes.py [RUNS]

Two cases: 500 pipes shared by all processes, and 500 pipes for each process.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys

from common import OPSKIT, machine, ratio, side_by_side, table, verdict

PROCESSES, PIPES = 200, 500
FIND = "find /proc/[0-9]*/fd -lname 'pipe:*' 2>/dev/null -printf '%l\\n' | sort | uniq -c"


def holders(*, shared: bool) -> list[int]:
    """Start the processes; return their PIDs."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    kept = [os.pipe() for _ in range(PIPES)] if shared else []
    pids = []
    ready = os.pipe()
    for _ in range(PROCESSES):
        pid = os.fork()
        if pid == 0:
            kept += [] if shared else [os.pipe() for _ in range(PIPES)]
            os.write(ready[1], b".")
            signal.pause()
        pids.append(pid)
    for _ in range(PROCESSES):
        os.read(ready[0], 1)
    for pair in kept if shared else []:
        os.close(pair[0])
        os.close(pair[1])
    return pids


def compare(*, shared: bool, runs: int) -> bool:
    """Measure one case; return whether all bounds are kept."""
    print(f"{PROCESSES} processes, {PIPES} pipes {'shared by all' if shared else 'for each process'}")
    pids = holders(shared=shared)
    commands = {
        "find | sort | uniq -c": ["bash", "-c", FIND],
        "opskit pipes -f text": [OPSKIT, "pipes", "-f", "text"],
        "opskit pipes --by-process -f text": [OPSKIT, "pipes", "--by-process", "-f", "text"],
        "opskit pipes --ends -f text": [OPSKIT, "pipes", "--ends", "-f", "text"],
    }
    commands |= {"lsof -nw": ["lsof", "-nw"]} if shutil.which("lsof") else {}
    commands |= {"lsfd": ["lsfd"]} if shutil.which("lsfd") else {}
    try:
        costs = side_by_side(commands, runs)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    table(costs)
    plain, by_process, ends = list(costs.values())[1:4]
    bound = 0.65 if shared else 0.75
    find = costs["find | sort | uniq -c"]
    kept = [
        verdict("pipes / find", ratio(plain, find), bound),
        verdict("pipes --by-process / find", ratio(by_process, find), bound),
        verdict("peak memory, MB", max(cost.peak_bytes for cost in [*plain, *by_process, *ends]) / 1e6, 150),
    ]
    for other in ("lsof -nw", "lsfd"):
        if other in costs:
            kept.append(verdict(f"pipes / {other}", ratio(plain, costs[other]), 0.25))
            kept.append(verdict(f"pipes --by-process / {other}", ratio(by_process, costs[other]), 0.25))
    if "lsfd" in costs:
        kept.append(verdict("pipes --ends / lsfd", ratio(ends, costs["lsfd"]), 0.5))
    return all(kept)


def main() -> int:
    """Measure both cases; exit code 1 where a bound is missed."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(machine())
    kept = [compare(shared=True, runs=runs), compare(shared=False, runs=runs)]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
