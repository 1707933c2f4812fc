"""A machine with many processes and JVMs, for benchmarks. The JVMs come from PyPI, as in the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import jvms
from common import OPSKIT

if TYPE_CHECKING:
    from collections.abc import Iterator


def _processes() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdigit()]


def _running_jvms() -> int:
    done = subprocess.run([OPSKIT, "jvms", "-f", "json"], capture_output=True, text=True, check=False)
    return done.stdout.count('"pid":')


@contextmanager
def machine_of(processes: int, jvms_at_least: int) -> Iterator[int]:
    """At least so many processes and JVMs; the PID of a JVM of ours."""
    running = [jvms.start("sleep=50", options=("-Xmx128m",)) for _ in range(max(1, jvms_at_least - _running_jvms()))]
    sleepers = [subprocess.Popen(["sleep", "3600"]) for _ in range(processes - len(_processes()))]
    print(f"{len(_processes())} processes, {_running_jvms()} JVMs")
    try:
        yield running[0].pid
    finally:
        for jvm in running:
            jvm.stop()
        for process in sleepers:
            process.kill()
            process.wait()
