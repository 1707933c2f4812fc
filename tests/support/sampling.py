"""Wait until a process takes samples, or has used CPU time: a fixed time is too long or, on a loaded machine, too short."""

from __future__ import annotations

import os
import time
from pathlib import Path

TICK_MS = 1000 // os.sysconf("SC_CLK_TCK")


def wait_for(condition, seconds=60.0):
    """Wait until it holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def wait_until_it_samples(pid):
    """Wait until a process has perf events open."""
    wait_for(lambda: "anon_inode:[perf_event]" in _fds(pid))


def wait_until_it_used(pid, cpu_ms):
    """Wait until a process has used so much more CPU time."""
    before_ms = _cpu_ms(pid)
    wait_for(lambda: _cpu_ms(pid) - before_ms >= cpu_ms)


def _fds(pid):
    found = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.add(os.readlink(fd))
        except FileNotFoundError:  # closed meanwhile
            continue
    return found


def _cpu_ms(pid):
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return TICK_MS * (int(words[11]) + int(words[12]))
