"""What perf(1) sees of threads by the tracepoints sched_switch and sched_wakeup: the truth beside the scheduler's own counters."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LINE = re.compile(r"\s*(\d+\.\d+):\s+sched:(\w+):\s+(.*)")
_SWITCH = re.compile(r"prev_pid=(\d+) .*prev_state=(\S+) ==> .*next_pid=(\d+)")
_WOKEN = re.compile(r"pid=(\d+)")
_PERF = ("unshare", "-m", "perf")  # it mounts tracefs, which would stay


class Seen(NamedTuple):
    """Of a thread: shares of the window, and switches a second."""

    running: float
    waiting: float
    voluntary: float
    involuntary: float


class Trace:
    """Events of threads: (at_s, "in" | "out" | "preempted" | "woken"), by TID, oldest first."""

    def __init__(self) -> None:
        self.events: dict[int, list[tuple[float, str]]] = {}

    def add(self, at_s: float, name: str, text: str) -> None:
        """Read a line of perf script."""
        if name != "sched_switch":
            found = _WOKEN.search(text)
            if found:
                self.events.setdefault(int(found[1]), []).append((at_s, "woken"))
            return
        found = _SWITCH.search(text)
        if found:
            leaves = "preempted" if found[2].startswith("R") else "out"
            self.events.setdefault(int(found[1]), []).append((at_s, leaves))
            self.events.setdefault(int(found[3]), []).append((at_s, "in"))

    def of(self, tid: int, begun_s: float, ended_s: float) -> Seen:
        """What a thread did between two moments of CLOCK_MONOTONIC."""
        spent, count = {"in": 0.0, "wait": 0.0, "out": 0.0}, {"out": 0, "preempted": 0}
        events = self.events.get(tid, [])
        state = {"in": "wait", "woken": "out"}.get(events[0][1], "in") if events else "out"
        since = begun_s
        for at_s, what in events:
            if at_s > ended_s:
                break
            if at_s >= begun_s:
                spent[state] += at_s - since
                since = at_s
                if what in count:
                    count[what] += 1
            if what == "woken":
                state = state if state == "in" else "wait"
            else:
                state = {"in": "in", "out": "out", "preempted": "wait"}[what]
        spent[state] += ended_s - since
        passed_s = ended_s - begun_s
        return Seen(
            spent["in"] / passed_s, spent["wait"] / passed_s, count["out"] / passed_s, count["preempted"] / passed_s
        )


@contextmanager
def traced(tids: list[int], cpu: int, folder: Path) -> Iterator[Trace]:
    """Trace these threads, which are pinned to a CPU, while the block runs; then the trace has its events."""
    if os.geteuid() != 0 or not shutil.which("perf"):
        pytest.skip("needs root and perf")
    switched = " || ".join(f"prev_pid == {tid} || next_pid == {tid}" for tid in tids)
    woken = " || ".join(f"pid == {tid}" for tid in tids)
    target, trace = folder / "perf.data", Trace()
    command = [
        *_PERF, "record", "-q", "-C", str(cpu), "-k", "CLOCK_MONOTONIC", "-m", "4M", "-o", str(target),
        "-e", "sched:sched_switch", "--filter", switched, "-e", "sched:sched_wakeup", "--filter", woken,
    ]  # fmt: skip
    (heard, say), (ack, acked) = os.pipe(), os.pipe()
    perf = subprocess.Popen(
        [*command, "-D", "-1", "--control", f"fd:{heard},{acked}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, pass_fds=(heard, acked),
    )  # fmt: skip
    os.close(heard)
    os.close(acked)
    try:
        os.write(say, b"enable\n")
        if not os.read(ack, 16):
            pytest.skip(f"perf cannot trace the scheduler: {perf.stderr.read().strip()}")
        yield trace
        time.sleep(0.05)
    finally:
        perf.send_signal(2)
        try:
            perf.communicate(timeout=20)
        finally:
            perf.kill()
            os.close(say)
            os.close(ack)
    text = subprocess.run(
        [*_PERF, "script", "-i", str(target), "-F", "time,event,trace", "--ns"],
        capture_output=True, text=True, errors="replace", check=True,
    ).stdout  # fmt: skip
    for line in text.splitlines():
        found = _LINE.match(line)
        if found:
            trace.add(float(found[1]), found[2], found[3])


@contextmanager
def promptly() -> Iterator[None]:
    """Run at once when it is due, beside busy programs too: else their windows and ours do not end at the same moment."""
    policy, param = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(20))
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, param)
