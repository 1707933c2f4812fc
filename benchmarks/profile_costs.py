"""What a CPU profile by `opskit jpmp PID --on-cpu` costs: opskit's CPU, lost samples, fds, the observed program, the wall time.

    sudo python benchmarks/profile_costs.py [SECONDS]

CPU: of a core, for each core that the JVM keeps busy, without the constant part (start, symbols, output): a long run less a short one.
"""

from __future__ import annotations

import contextlib
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import jvms
from common import OPSKIT, Cost, machine, measure, verdict
from profile_footer import Footer
from profile_programs import CROWD, PROGRAMS, STEADY, java, operations

from opskit.jvm.discover import read_perfdata
from opskit.proc.fs import ProcFS
from opskit.proc.kernel.cpu_samples import CpuSampler

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION, HZ = 21, 99
SHORT_S, WARM_UP_S, PAIRS = 5.0, 10, 10


class Spent(NamedTuple):
    """Seconds of CPU of opskit and of the JVM in the same window."""

    ours: Cost
    jvm_cpu_s: float


def command(pid: int, seconds: float, *more: str) -> list[str]:
    """Profile for so long."""
    how = ("--on-cpu", "--sampler", "unwind", "-F", str(HZ), "--duration", f"{seconds:g}s")
    return [OPSKIT, "jpmp", str(pid), *how, *(more or ("-f", "folded"))]


def cpu_s(pid: int) -> float:
    """Seconds of CPU of a process."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def warm(name: str) -> Iterator[jvms.Workload]:
    """A program of benchmarks/profile.py that has compiled its methods."""
    with PROGRAMS[name].start(java(name, VERSION), ()) as program:
        time.sleep(WARM_UP_S)
        yield program


def spent(pid: int, seconds: float) -> Spent:
    """One run."""
    before = cpu_s(pid)
    ours = measure(command(pid, seconds))
    return Spent(ours, cpu_s(pid) - before)


def unwinding(pid: int, seconds: float) -> tuple[float, float]:
    """(% of a core per busy core while it runs, constant CPU s)."""
    short, long = spent(pid, SHORT_S), spent(pid, seconds)
    share = (long.ours.cpu_s - short.ours.cpu_s) / (long.jvm_cpu_s - short.jvm_cpu_s)
    return 100 * share, short.ours.cpu_s - share * short.jvm_cpu_s


def draining(pid: int, seconds: float) -> float:
    """% of a core per busy core for samples that are only copied from the kernel."""
    begun, theirs = time.process_time(), cpu_s(pid)
    with CpuSampler(ProcFS(), pid, HZ) as sampler:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(sampler.pause_s)
            sampler.drain()
    return 100 * (time.process_time() - begun) / (cpu_s(pid) - theirs)


def costs(seconds: float) -> list[bool]:
    """CPU of draining and of unwinding, for deep Java stacks and for native leaves."""
    kept = []
    for name in ("h2", "jetty", "jni"):
        with warm(name) as program:
            drained = draining(program.pid, seconds)
            share, constant = unwinding(program.pid, seconds)
        print(f"{name}, JDK {VERSION}, {HZ} Hz: {constant:.2f} CPU s constant")
        kept.append(verdict("draining, % of a core per busy core", drained, 0.6))
        kept.append(verdict("draining and unwinding, % of a core per busy core", share, 3.5))
    return kept


def crowd() -> bool:
    """The share of samples that the kernel dropped with 100 busy threads."""
    with CROWD(java("crowd", VERSION), ()) as program:
        time.sleep(WARM_UP_S)
        done = subprocess.run(command(program.pid, 10), capture_output=True, text=True, check=False)
    footer = Footer(done.stderr)
    print(f"100 busy threads: {footer.samples} samples, {footer.lost} lost")
    return verdict("lost, of all", footer.lost / max(1, footer.samples + footer.lost), 0.01)


def events(pid: int) -> int:
    """The open fds of perf events of a process."""
    found = 0
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found += "perf_event" in os.readlink(fd)
    return found


def descriptors() -> bool:
    """The fds of perf events for a JVM of 1,000 threads, for each CPU."""
    jvm = jvms.start("sleep=1000", version=VERSION)
    try:
        with open(os.devnull, "wb") as null:
            running = subprocess.Popen(command(jvm.pid, 4), stdout=null, stderr=null)
        time.sleep(2.5)
        found = events(running.pid)
        running.wait()
    finally:
        jvm.stop()
    if not found:
        print("  no perf event was open: MISSED")
        return False
    return verdict("1,000 threads: fds of events for each CPU", found / (os.cpu_count() or 1), 2)


def rate(program: jvms.Workload, seconds: float) -> float:
    """Operations a second by the program's own count and clock."""
    done, begun = operations(program)
    time.sleep(seconds)
    now, ended = operations(program)
    return (now - done) / (ended - begun)


def throughput(seconds: float) -> bool:
    """The observed program's rate with and without a profile, by turns; the difference must not be told from noise."""
    ratios = []
    with STEADY(java("steady", VERSION), ()) as program:
        time.sleep(WARM_UP_S)
        for turn in range(PAIRS):
            both = {}
            for profiled in (turn % 2 == 0, turn % 2 != 0):
                running = (
                    subprocess.Popen(command(program.pid, seconds + 2), stdout=-3, stderr=-3) if profiled else None
                )
                time.sleep(1.5)  # opskit starts
                both[profiled] = rate(program, seconds)
                if running:
                    running.wait()
            ratios.append(both[True] / both[False])
    middle, error = statistics.mean(ratios), statistics.stdev(ratios) / math.sqrt(PAIRS)
    print(f"throughput with a profile, of that without: {middle:.4f} +- {2 * error:.4f} ({PAIRS} pairs)")
    return verdict("loss beyond two standard errors", max(0.0, 1 - middle - 2 * error), 0.0)


def pauses() -> bool:
    """Safepoints of an idle JVM while it is profiled: none."""
    jvm = jvms.start(
        "sleep=20", version=VERSION, options=("-XX:+UnlockDiagnosticVMOptions", "-XX:GuaranteedSafepointInterval=0")
    )
    try:
        time.sleep(3)
        fs = ProcFS()
        before = read_perfdata(fs, jvm.pid).number("sun.rt.safepoints")
        measure(command(jvm.pid, 5))
        after = read_perfdata(fs, jvm.pid).number("sun.rt.safepoints")
    finally:
        jvm.stop()
    print(f"safepoints of an idle JVM: {before} before, {after} after")
    return verdict("safepoints in 5 s", float((after or 0) - (before or 0)), 0)


def picture() -> bool:
    """Wall time until a flame graph of ten seconds is written."""
    with warm("h2") as program, tempfile.TemporaryDirectory() as folder:
        cost = measure(command(program.pid, 10, "-o", f"{folder}/x.svg"))
        size = Path(f"{folder}/x.svg").stat().st_size
    print(f"flame graph of 10 s: {size >> 10} KiB, {cost.cpu_s:.2f} CPU s, peak {cost.peak_bytes >> 20} MiB")
    return verdict("wall seconds", cost.wall_s, 11.5)


def main() -> int:
    """Measure, print; 1 where a bound was missed."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    print(machine())
    kept = [*costs(seconds), crowd(), descriptors(), throughput(min(seconds, 5)), pauses(), picture()]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
