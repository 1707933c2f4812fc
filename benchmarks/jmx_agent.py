"""What code in the JVM costs it: opskit's agent, a Jolokia that is attached, and the JDK's own management agent.

    python benchmarks/jmx_agent.py [left]... [runs=N]

Each route reads every MBean of the JVM (`*:*`) once, then nine times more; the JDK's agent is only started. Each has a JVM of its own.
The JVMs come from PyPI and Jolokia from Maven Central, as in the tests; attaching it and the JDK's agent needs a JDK on the PATH.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import jvms
import maven
from common import OPSKIT, run_sections, verdict
from jmx import _state as state

if TYPE_CHECKING:
    from collections.abc import Callable

JOLOKIA = "org.jolokia:jolokia-agent-jvm:2.1.2:javaagent"
VERSIONS = (17, 25)
REPEATS = 9
MOST_RSS_BYTES, MIB = 64 << 20, 1 << 20


class Route(NamedTuple):
    """`begin` makes the JVM ready, `read` reads every MBean; empty: nothing."""

    begin: list[str]
    read: list[str]


def routes(pid: int) -> dict[str, Route]:
    """By name, for the JVM of this PID."""
    jar = next(path for path in maven.jars(JOLOKIA).split(":") if path.endswith("javaagent.jar"))
    java, jcmd = shutil.which("java") or "java", shutil.which("jcmd") or "jcmd"
    agent = [OPSKIT, "jmx", str(pid), "--agent", "--yes", "*:*", "-f", "text"]
    jolokia = [OPSKIT, "jmx", str(pid), "--jolokia", "auto", "*:*", "-f", "text"]
    return {
        "opskit's agent": Route([], agent),
        "Jolokia 2.1.2, attached": Route([java, "-jar", jar, "--port", "0", "start", str(pid)], jolokia),
        "ManagementAgent.start_local": Route([jcmd, str(pid), "ManagementAgent.start_local"], []),
    }


def _run(command: list[str]) -> None:
    if command:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            sys.exit(f"{command}: {done.stderr.strip()[-300:]}")


def _left(name: str, version: int) -> list[tuple[float, ...]]:
    """What changed in the JVM after the first read, and after all: CPU s, classes, threads, safepoints, RSS, ports."""
    with jvms.running("sleep=2", version=version, options=("-Xmx256m",)) as workload:
        _run([shutil.which("jcmd") or "jcmd", str(workload.pid), "VM.version"])  # the listener is not what is measured
        before = state(workload.pid)
        route = routes(workload.pid)[name]
        _run(route.begin)
        _run(route.read)
        found = [state(workload.pid)]
        for _ in range(REPEATS):
            _run(route.read)
        found.append(state(workload.pid))
        return [tuple(now - then for now, then in zip(each, before)) for each in found]


def left(runs: int) -> bool:
    """The changes in JVMs of two versions; the agent keeps no port, and its memory is bounded."""
    print("| JDK | route | | CPU s | classes | threads | RSS MiB | ports |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")
    good = True
    for version in VERSIONS:
        for name in routes(0):
            found = sorted((_left(name, version) for _ in range(runs)), key=lambda each: each[0][4])[runs // 2]
            for when, (cpu_s, classes, threads, _, rss, ports) in zip(("once", "ten times"), found):
                print(
                    f"| {version} | {name} | {when} | {cpu_s:.2f} | {classes:+,} | {threads:+} | {rss / MIB:+.1f} | {ports:+} |"
                )
            if name == "opskit's agent":
                good &= verdict(f"RSS after the agent, JDK {version}", found[0][4], MOST_RSS_BYTES)
                good &= verdict(f"ports after the agent, JDK {version}", found[1][5], 0)
    return good


SECTIONS: dict[str, Callable[[int], bool]] = {"left": left}

if __name__ == "__main__":
    sys.exit(run_sections(SECTIONS, 3))
