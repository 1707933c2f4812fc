"""Runs of opskit that measure in child processes, and those processes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

_STARTS_S, _ENDS_S = 30.0, 10.0


def measuring(*words, children, out=subprocess.PIPE):
    """A run of opskit and the PIDs of its children, as soon as it has so many."""
    running = subprocess.Popen([sys.executable, "-m", "opskit", *words], stdout=out, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + _STARTS_S
    while len(found := _children_of(running.pid)) < children:
        if time.monotonic() > deadline or running.poll() is not None:
            break
        time.sleep(0.01)
    return running, found


def gone(pids):
    """Whether none of them runs, at the latest after some seconds."""
    deadline = time.monotonic() + _ENDS_S
    while any(_is_alive(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _children_of(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_alive(pid):
    """Whether it has not ended; a zombie has."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
