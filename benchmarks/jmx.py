"""`opskit jmx` against a JMX client over the local attach mechanism and against jcmd: CPU, and what stays in the JVM.

    python benchmarks/jmx.py [cost|start]... [runs=N]

The JVMs come from PyPI, as in the tests. The client (benchmarks/java/JmxClient.java) needs a JDK's javac and jcmd on the PATH.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import jvms
from common import OPSKIT, measure, median_cpu, run_sections, side_by_side, verdict

from opskit.host import Host
from opskit.jvm.discover import read_perfdata
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE = Path(__file__).resolve().parent / "java" / "JmxClient.java"
CPU_ABOVE_VERSION_S, OF_A_CLIENT = 0.100, 0.5
MIB = 1 << 20
VERSIONS = (11, 17, 21, 25)
LISTENS = "0A"


class Left(NamedTuple):
    """What a tool used itself, and what it changed in the JVM."""

    own_cpu_s: float
    cpu_s: float
    classes: int
    threads: int
    safepoints: int
    rss_bytes: int
    ports: int


def _state(pid: int) -> tuple[float, int, int, int, int, int]:
    host = Host.at(None, None)
    perf, stat = read_perfdata(host.fs, pid), host.fs.load(parse_stat, pid, "stat")
    loaded = sum(perf.number(f"java.cls.{name}") or 0 for name in ("loadedClasses", "sharedLoadedClasses"))
    sockets = set(host.fs.fd_targets(pid))
    rows = [
        line.split() for name in ("tcp", "tcp6") for line in host.fs.maybe(str.splitlines, pid, "net", name, default=[])
    ]
    ports = sum(len(row) > 9 and row[3] == LISTENS and f"socket:[{row[9]}]".encode() in sockets for row in rows)
    rss = host.fs.load(parse_status, pid, "status").bytes_of("VmRSS") or 0
    cpu_s = (stat.user_ticks + stat.system_ticks) / host.clock_ticks
    return cpu_s, loaded, stat.threads, perf.number("sun.rt.safepoints") or 0, rss, ports


def _left(command: Callable[[int], list[str]]) -> Left:
    """Of one run against a JVM of its own."""
    options = ("-Xmx128m", "-XX:+UseG1GC", "-XX:+UnlockDiagnosticVMOptions", "-XX:GuaranteedSafepointInterval=0")
    with jvms.running("sleep=20", version=17, options=options) as jvm:
        before = _state(jvm.pid)
        cost = measure(command(jvm.pid))
        after = _state(jvm.pid)
    return Left(cost.cpu_s, *(now - then for then, now in zip(before, after)))  # type: ignore[arg-type]  # in this order


def cost(runs: int) -> bool:
    """Each tool against a JVM of its own; the medians."""
    with tempfile.TemporaryDirectory() as directory:
        tools: dict[str, Callable[[int], list[str]]] = {
            "opskit jmx": lambda pid: [OPSKIT, "jmx", str(pid), "-f", "json"]
        }
        if shutil.which("javac"):
            subprocess.run(["javac", "-d", directory, str(SOURCE)], check=True)
            tools["JMX client, local attach"] = lambda pid: ["java", "-cp", directory, "JmxClient", str(pid)]
        if shutil.which("jcmd"):
            tools["jcmd PerfCounter.print"] = lambda pid: ["jcmd", str(pid), "PerfCounter.print"]
            tools["jcmd GC.heap_info"] = lambda pid: ["jcmd", str(pid), "GC.heap_info"]
        tools["opskit jmx --agent"] = lambda pid: [
            OPSKIT,
            "jmx",
            str(pid),
            "--agent",
            "--yes",
            "java.lang:*",
            "java.nio:*",
        ]
        medians = {name: _median([_left(tool) for _ in range(runs)]) for name, tool in tools.items()}
    for name, left in medians.items():
        print(
            f"  {name:<26} own cpu {left.own_cpu_s:6.3f} s   JVM: cpu {left.cpu_s:5.2f} s, classes {left.classes:+5}, threads"
            f" {left.threads:+3}, safepoints {left.safepoints:+3}, RSS {left.rss_bytes / MIB:+6.1f} MiB, ports {left.ports:+}"
        )
    ours = medians["opskit jmx"]
    kept = verdict("classes, safepoints, ports", ours.classes + ours.safepoints + ours.ports, 0)
    theirs = medians.get("JMX client, local attach")
    return (
        kept
        if theirs is None
        else verdict("CPU of a JMX client", ours.own_cpu_s / theirs.own_cpu_s, OF_A_CLIENT) and kept
    )


def _median(found: list[Left]) -> Left:
    return Left(*(statistics.median(values) for values in zip(*found)))


def start(runs: int) -> bool:
    """CPU above that of `opskit --version`, for each JVM."""
    kept = True
    for version in VERSIONS:
        with jvms.running("sleep=20", version=version, options=("-Xmx128m",)) as jvm:
            commands = {"opskit --version": [OPSKIT, "--version"], "opskit jmx": [OPSKIT, "jmx", str(jvm.pid)]}
            costs = side_by_side(commands, runs)
            above = median_cpu(costs["opskit jmx"]) - median_cpu(costs["opskit --version"])
            kept &= verdict(f"JDK {version}: CPU s above opskit --version", above, CPU_ABOVE_VERSION_S)
    return kept


if __name__ == "__main__":
    os.chdir("/")
    sys.exit(run_sections({"cost": cost, "start": start}))
