"""`opskit fds --deleted` against `lsof -nP +L1`, at 1,000 processes of which 100 hold a deleted file.

    sudo python benchmarks/fds_deleted.py [RUNS]

The bound is lsof's CPU and the start of Python. lsof does not look for System V segments,
files in flight and full disks, which opskit does.
"""

from __future__ import annotations

import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile

from common import OPSKIT, machine, median_cpu, side_by_side, table, verdict

PROCESSES, HOLDERS = 1000, 100


def start(directory: str) -> list[subprocess.Popen[bytes]]:
    """Processes with three fds and an inherited environment each; every tenth has a deleted log of 64 KiB too."""
    started = []
    for number in range(PROCESSES):
        log = None
        if number % (PROCESSES // HOLDERS) == 0:
            path = f"{directory}/{number}.log"
            log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(log, bytes(1 << 16))
            os.unlink(path)
        started.append(subprocess.Popen(["sleep", "600"], pass_fds=() if log is None else (log,)))
        if log is not None:
            os.close(log)
    return started


def found(command: list[str], directory: str) -> int:
    """How many of the files a command names."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return len({*re.findall(rf"{directory}/\d+\.log", done.stdout)})


def main() -> int:
    """Measure; exit code 1 where the bound is missed."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    print(machine())
    python, lsof, ours = "python -c pass", "lsof -nP +L1", "opskit fds --deleted -f text"
    commands = {
        python: [sys.executable, "-c", "pass"],
        lsof: ["lsof", "-nP", "+L1"],
        ours: [OPSKIT, "fds", "--deleted", "-f", "text"],
    }
    with tempfile.TemporaryDirectory() as directory:
        processes = start(directory)
        try:
            costs = side_by_side(commands, runs)
            named = [found(commands[name], directory) for name in (lsof, ours)]
        finally:
            for process in processes:
                process.send_signal(signal.SIGKILL)
            for process in processes:
                process.wait()
    table(costs)
    print(f"  deleted files found: lsof {named[0]}, opskit {named[1]}, there are {HOLDERS}")
    allowed = [theirs.cpu_s + median_cpu(costs[python]) for theirs in costs[lsof]]
    share = statistics.median(cost.cpu_s / most for cost, most in zip(costs[ours], allowed))
    kept = verdict("--deleted / (lsof -nP +L1 + start of Python)", share, 1.0)
    return 0 if kept and named[1] == HOLDERS else 1


if __name__ == "__main__":
    sys.exit(main())
