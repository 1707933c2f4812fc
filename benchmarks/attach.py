"""A thread dump through the attach layer, against jstack and jattach; and the pause that each causes in the JVM.

python benchmarks/attach.py          jstack and jcmd of the JVMs' own JDKs; jattach and another jstack if they are in PATH

The pause is the JVM's own count (sun.rt.safepointTime and safepointSyncTime of hsperfdata), read before and after each dump.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import jvms
from common import OPSKIT, machine, median_cpu, ratio, side_by_side, table, verdict

from opskit.jvm.attach.client import AttachClient
from opskit.jvm.discover import read_perfdata
from opskit.proc.fs import ProcFS

DUMPS = 200
THREADS = 120  # about 130 with the JVM's own


def stopped_ms(fs: ProcFS, pid: int) -> float:
    """Milliseconds that the JVM was stopped for safepoints since its start, time to safepoint included."""
    perf = read_perfdata(fs, pid)
    return 1000 * ((perf.ticks_s("sun.rt.safepointTime") or 0) + (perf.ticks_s("sun.rt.safepointSyncTime") or 0))


def warm_dumps(pid: int) -> tuple[float, float]:
    """(CPU s, wall s) of one dump within one process, the first one excluded: the median."""
    client = AttachClient(ProcFS(), pid)
    client.thread_dump()
    costs = []
    for _ in range(DUMPS):
        cpu, wall = time.process_time(), time.monotonic()
        client.thread_dump()
        costs.append((time.process_time() - cpu, time.monotonic() - wall))
    return statistics.mean(cpu for cpu, _ in costs), statistics.median(wall for _, wall in costs)


def stops(pid: int, commands: dict[str, list[str]], runs: int = 20) -> dict[str, float]:
    """The median pause in ms for a dump by each command and by the attach layer, measured alternately."""
    fs = ProcFS()
    client = AttachClient(fs, pid)
    client.thread_dump()
    found: dict[str, list[float]] = {"layer": [], **{name: [] for name in commands}}
    for _ in range(runs):
        before = stopped_ms(fs, pid)
        client.thread_dump()
        found["layer"].append(stopped_ms(fs, pid) - before)
        for name, command in commands.items():
            before = stopped_ms(fs, pid)
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            found[name].append(stopped_ms(fs, pid) - before)
    return {name: statistics.median(values) for name, values in found.items()}


def main() -> int:
    """Measure, print, and exit with 1 where a bound is missed."""
    own_jstack = str(Path(jvms.java(17)).with_name("jstack"))
    jcmd = str(Path(jvms.java(25)).with_name("jcmd"))
    print(machine())
    kept = []
    running = jvms.start(f"sleep={THREADS}", version=17)
    try:
        pid = str(running.pid)
        commands = {"jstack": [own_jstack, pid], "opskit jpmp PID 1": [OPSKIT, "jpmp", pid, "1"]}
        if shutil.which("jstack"):
            commands["jstack in PATH"] = ["jstack", pid]
        if shutil.which("jattach"):
            commands["jattach PID threaddump"] = ["jattach", pid, "threaddump"]
        costs = side_by_side(commands, runs=15)
        table(costs)
        cpu_s, wall_s = warm_dumps(running.pid)
        print(f"  {'2nd dump on, one process':<34} cpu {cpu_s:9.5f} s   wall {wall_s:9.5f} s")
        jstack = costs["jstack"]
        kept.append(verdict("2nd dump / jstack, CPU", cpu_s / median_cpu(jstack), 1 / 20))
        kept.append(verdict("2nd dump / jstack, wall", wall_s / statistics.median(c.wall_s for c in jstack), 1 / 20))
        kept.append(
            verdict("opskit process with one dump / jstack, CPU", ratio(costs["opskit jpmp PID 1"], jstack), 0.35)
        )
    finally:
        running.stop()
    running = jvms.start(f"sleep={THREADS}", version=25)
    try:
        found = stops(running.pid, {"jcmd": [jcmd, str(running.pid), "Thread.print"]})
        print(
            f"  pause for a dump, JDK 25, {THREADS} threads: layer {found['layer']:.2f} ms, jcmd {found['jcmd']:.2f} ms"
        )
        kept.append(verdict("stop by the layer / by jcmd", found["layer"] / found["jcmd"], 1.0))
    finally:
        running.stop()
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
