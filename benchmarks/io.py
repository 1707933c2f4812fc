"""`opskit io PID`: CPU beside pidstat(1) at 2,000 threads and while watching, and its figures beside what programs know of themselves.

    sudo python benchmarks/io.py [cpu|watch|accuracy]... [runs=N]

The programs are those of tests/support/ioprograms.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import ioprograms
from common import OPSKIT, measure, ratio, run_sections, side_by_side, table, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

THREADS = 2000
CPU, WATCHING, ACCURACY = 1.4, 0.05, 0.05
# Each thread reads a little every 5 s; some read all the time.
MANY = f"""
import os, threading, time
def work(pause_s):
    fd = os.open("/proc/self/exe", os.O_RDONLY)
    while True:
        if not os.read(fd, 4096): os.lseek(fd, 0, 0)
        time.sleep(pause_s)
threading.stack_size(65536)
for number in range({THREADS}): threading.Thread(target=work, args=(0.002 if number < 5 else 5,), daemon=True).start()
print(flush=True)
time.sleep(3600)
"""


@contextlib.contextmanager
def running(*words: str) -> Iterator[int]:
    """The PID of a Python program that prints a line when it has begun."""
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, start_new_session=True)
    try:
        if process.stdout is not None:
            process.stdout.readline()
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def staged(case: str) -> Iterator[tuple[int, str]]:
    """The PID of a program of ioprograms.py, and its directory."""
    with tempfile.TemporaryDirectory() as there, running(ioprograms.__file__, case, there) as pid:
        yield pid, there


def cpu(runs: int) -> bool:
    """Whole commands, a window of a second each, on a process with 2,000 threads."""
    with running("-c", MANY) as pid:
        time.sleep(2)
        commands = {
            "pidstat -dt": ["pidstat", "-dt", "-p", str(pid), "1", "1"],
            "opskit io PID -f text": [OPSKIT, "io", str(pid), "-i", "1", "-f", "text"],
        }
        print(f"{THREADS} threads")
        costs = side_by_side(commands, runs)
        table(costs)
        theirs, ours = costs.values()
        return verdict("io / pidstat -dt", ratio(ours, theirs), CPU)


def watch(runs: int) -> bool:
    """CPU while watching, without what a start costs: of a reader that always runs, and of a log."""
    kept = []
    for case in ("read_bytes", "sync_records", "log"):
        with staged(case) as (pid, _):
            short, long = (
                measure([OPSKIT, "io", str(pid), "-w", "-i", "1", "-c", str(count), "-f", "text"])
                for count in (1, 1 + runs)
            )
        share = (long.cpu_s - short.cpu_s) / (long.wall_s - short.wall_s)
        kept.append(verdict(f"{case}: share of a CPU", share, WATCHING))
    return all(kept)


def accuracy(runs: int) -> bool:
    """Calls a second beside the program's own count; bytes stored for each that is written; what comes from disk where a half fits."""
    kept = []
    for _ in range(runs):
        with staged("read_bytes") as (pid, there):
            before, found, after = counted(there), judged(pid), counted(there)
            truth = (after[0] - before[0]) / (after[1] - before[1])
            rate = found["threads"][0]["reads_per_s"]
            kept.append(verdict(f"reads {rate:,.0f}/s, true {truth:,.0f}/s: apart", abs(rate / truth - 1), ACCURACY))
    with staged("sync_records") as (pid, _):
        total = judged(pid)["total"]
        stored = total["disk_written_bytes_per_s"] / total["written_bytes_per_s"]
        kept.append(
            verdict(
                f"a page for 100 bytes and the inode: {stored:.1f}, expected 41 to 43: apart", abs(stored - 42), 1.5
            )
        )
    return all(kept)


def judged(pid: int) -> dict:
    """The JSON object of `opskit io PID`."""
    done = subprocess.run(
        [OPSKIT, "io", str(pid), "-i", "2", "-f", "json"], capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        sys.exit(f"opskit io {pid} failed: {done.stderr}")
    answer: dict = json.loads(done.stdout)
    return answer


def counted(there: str) -> tuple[float, float]:
    """How many calls a program has made, and when; what was torn is read again."""
    place = Path(there, "count")
    while True:
        first, second = (place.read_bytes() if place.exists() else b"" for _ in range(2))
        if first == second and any(first):
            calls, at_s = struct.unpack("=dd", first)
            return calls, at_s


if __name__ == "__main__":
    sys.exit(run_sections({"cpu": cpu, "watch": watch, "accuracy": accuracy}))
