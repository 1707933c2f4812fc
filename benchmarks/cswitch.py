"""`opskit cswitch PID`: CPU beside pidstat(1) at 2,000 threads, and its figures beside the tracepoints of the scheduler.

    sudo python benchmarks/cswitch.py [cpu|accuracy]... [runs=N]

The traced programs are those of tests/native/threads.c.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import nativeprograms
import schedtrace
from common import OPSKIT, ratio, run_sections, side_by_side, table, verdict

from opskit.collect.cswitch.collect import Collector
from opskit.collect.cswitch.facts import Request
from opskit.host import Host
from opskit.proc.fs import ProcFS

if TYPE_CHECKING:
    from collections.abc import Iterator

THREADS = 2000
CPU, RATE, POINTS = 1.2, 0.05, 3.0
LEAST = 20  # switches a second: of fewer, one more or less counts too much
# Some threads run for a moment every 5 ms, the others sleep.
MANY = f"""
import threading, time
def work(pause_s):
    while True: time.sleep(pause_s)
threading.stack_size(65536)
for number in range({THREADS}): threading.Thread(target=work, args=(0.005 if number < 10 else 5,), daemon=True).start()
print(flush=True)
time.sleep(3600)
"""


@contextmanager
def running(*words: object) -> Iterator[int]:
    """The PID of a program that prints a line when it has begun."""
    process = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE)
    try:
        if process.stdout is not None:
            process.stdout.readline()
        yield process.pid
    finally:
        process.kill()
        process.wait()


def cpu(runs: int) -> bool:
    """Whole commands, a window of a second each, on a process with 2,000 threads."""
    with running(sys.executable, "-c", MANY) as pid:
        time.sleep(2)
        costs = side_by_side(
            {
                "pidstat -wt": ["pidstat", "-wt", "-p", str(pid), "1", "1"],
                "opskit cswitch PID -f text": [OPSKIT, "cswitch", str(pid), "-i", "1", "-f", "text"],
            },
            runs,
        )
    print(f"{THREADS} threads")
    table(costs)
    theirs, ours = costs.values()
    return verdict("cswitch / pidstat -wt", ratio(ours, theirs), CPU)


def accuracy(runs: int) -> bool:
    """Shares and rates of each thread beside the trace of the same window; the medians of some windows."""
    kept = []
    with tempfile.TemporaryDirectory() as there:
        program = nativeprograms.build("threads.c", Path(there) / "threads", "-O2")
        for words in (("burn", 4), ("burn", 8), ("steps", 4), ("pipe", 2), ("futex", 2)):
            with running("taskset", "-c", "0", program, *words) as pid:
                found = [_apart(pid, Path(there)) for _ in range(max(1, runs // 2))]
            points, rates = zip(*found)
            kept.append(verdict(f"{words[0]} {words[1]}, waits: points apart", statistics.median(points), POINTS))
            kept.append(verdict(f"{words[0]} {words[1]}, switches: apart", statistics.median(rates), RATE))
    return all(kept)


def _apart(pid: int, folder: Path) -> tuple[float, float]:
    """The largest distance of a wait, in points, and the relative one of all switches."""
    tids = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    with schedtrace.traced(tids, 0, folder) as trace, schedtrace.promptly():
        collector = Collector(Host(ProcFS()), Request(pid, 2.0))
        begun_s = time.monotonic()
        facts = collector.look()
        ended_s = begun_s + facts.window_s
    points = rates = 0.0
    for thread in facts.threads:
        true = trace.of(thread.tid, begun_s, ended_s)
        points = max(points, 100 * abs((thread.waiting or 0.0) - true.waiting))
        late = trace.of(thread.tid, begun_s + 0.2 * facts.window_s, ended_s)  # its switches are read from here on
        switches = late.voluntary + late.involuntary
        if switches >= LEAST:
            rates = max(rates, abs(((thread.voluntary or 0.0) + (thread.involuntary or 0.0)) / switches - 1))
    return points, rates


if __name__ == "__main__":
    sys.exit(run_sections({"cpu": cpu, "accuracy": accuracy}))
