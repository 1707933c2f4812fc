"""`opskit capture`, `--from` and `compare`: CPU seconds and peak memory at 1,000 processes and 4 JVMs.

    python benchmarks/capture.py [capture] [replay] [compare] [when] [runs=N]

`capture`: two samples, beside a shell that copies the same kinds of files into a tar (no rates, no verdicts, no JVM memory). `replay`:
each command on a capture. `compare`: two captures of the machine. `when`: the CPU use while it waits.
Processes and JVMs are started up to these numbers, and ended.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from common import OPSKIT, measure, median_cpu, run_sections, side_by_side, table, verdict
from stage import machine_of

if TYPE_CHECKING:
    from collections.abc import Iterator

PROCESSES, JVMS = 1000, 4
CAPTURE_CPU_S, CAPTURE_PEAK_MB, CAPTURE_MB = 2.5, 60.0, 2.0
REPLAY_CPU_S, REPLAY_PEAK_MB, COMPARE_CPU_S, WAIT_SHARE = 0.8, 80.0, 2.0, 0.01
COMMANDS = (
    "doctor", "pipes --by-process", "tcp", "cswitch", "irqs", "io", "limits --all", "fds", "dentry", "mem", "oom", "clock", "jvms",
    "hsperf-check", "crash",
)  # fmt: skip
# What an engineer without opskit saves: the same kinds of files once, without links, fds, sockets and memory.
SHELL = r"""
cd "$1" && mkdir copy && for pid in $(ls /proc | grep '^[0-9]'); do
  mkdir copy/$pid
  for name in stat status cmdline cgroup limits maps io schedstat; do cat /proc/$pid/$name > copy/$pid/$name 2>/dev/null; done
  ls -l /proc/$pid/fd > copy/$pid/fd 2>/dev/null
done
for name in stat vmstat meminfo interrupts softirqs net/snmp net/netstat mounts slabinfo; do cat /proc/$name > copy/${name##*/} 2>/dev/null; done
tar czf copy.tar.gz copy; rm -r copy
"""


@contextmanager
def _captures(number: int) -> Iterator[tuple[list[str], int]]:
    with machine_of(PROCESSES, JVMS) as pid, tempfile.TemporaryDirectory() as place:
        paths = [f"{place}/{each}.tar.gz" for each in range(number)]
        for path in paths:
            measure([OPSKIT, "capture", "-o", path])
        yield paths, pid


def capture(runs: int) -> bool:
    """The bounds of a capture."""
    with machine_of(PROCESSES, JVMS), tempfile.TemporaryDirectory() as place:
        words = {
            "opskit capture -c 2": [OPSKIT, "capture", "-o", f"{place}/x.tar.gz"],
            "a loop of cat, and tar": ["sh", "-c", SHELL, "sh", place],
        }
        costs = side_by_side(words, runs)
        size = os.stat(f"{place}/x.tar.gz").st_size
    table(costs)
    ours = costs["opskit capture -c 2"]
    return all([
        verdict("CPU seconds, median", median_cpu(ours), CAPTURE_CPU_S),
        verdict("peak of the largest process, MB", max(one.peak_bytes for one in ours) / 1e6, CAPTURE_PEAK_MB),
        verdict("compressed, MB", size / 1e6, CAPTURE_MB),
    ])  # fmt: skip


def replay(runs: int) -> bool:
    """Each command on a capture."""
    with _captures(1) as ((path,), _):
        costs = side_by_side({each: [OPSKIT, "--from", path, *each.split()] for each in COMMANDS}, runs)
    table(costs)
    return all([
        verdict("CPU seconds of the dearest, median", max(map(median_cpu, costs.values())), REPLAY_CPU_S),
        verdict("peak, MB", max(one.peak_bytes for many in costs.values() for one in many) / 1e6, REPLAY_PEAK_MB),
    ])  # fmt: skip


def compare(runs: int) -> bool:
    """Two captures of one machine."""
    with _captures(2) as (paths, _):
        costs = side_by_side({"opskit compare": [OPSKIT, "compare", *paths]}, runs)
    table(costs)
    return verdict("CPU seconds, median", median_cpu(costs["opskit compare"]), COMPARE_CPU_S)


def when(_runs: int) -> bool:
    """The CPU use of 20 s of waiting, without the start."""
    kept = []
    with machine_of(PROCESSES, JVMS), tempfile.TemporaryDirectory() as place:
        for text in ("cpu>100", "psi.memory>99", "heap>=100", "stopped>=100"):
            words = [OPSKIT, "capture", "-o", str(Path(place, "x.tar.gz")), "--when", text]
            short, long = (measure(["timeout", str(wait_s), *words]).cpu_s for wait_s in (2, 22))
            kept.append(verdict(f"share of a CPU while it waits for {text}", (long - short) / 20, WAIT_SHARE))
    return all(kept)


if __name__ == "__main__":
    sys.exit(run_sections({"capture": capture, "replay": replay, "compare": compare, "when": when}, runs=5))
