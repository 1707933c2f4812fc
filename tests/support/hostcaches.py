"""The caches of this machine, for tests of `opskit dentry`: the kernel's own numbers, drops, processes that look up absent files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

TRIES = 5
# Look up COUNT absent files (or for SECONDS) in FOLDER.
LOOK_FOR_ABSENT = """
import os, sys, time
folder, count, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
end = time.monotonic() + seconds
print("ready", flush=True)
number = 0
while number < count or time.monotonic() < end:
    try:
        os.stat(f"{folder}/absent-{number % max(count, 1000)}")
    except OSError:
        pass
    number += 1
print("done", flush=True)
"""


def needs_host_changes() -> None:
    """Skip unless tests may change the host itself."""
    if os.environ.get("OPSKIT_TEST_HOST") != "1":
        pytest.skip("changes the host: set OPSKIT_TEST_HOST=1")


def numbers_of_dentry_state():
    words = Path("/proc/sys/fs/dentry-state").read_text(encoding="ascii").split()
    return {"dentries": int(words[0]), "unused": int(words[1]), "negative": int(words[4])}


def dentry_slab_pages():
    for line in Path("/proc/slabinfo").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words[0] == "dentry":
            return int(words[-2]) * int(words[5])
    return None


def drops():
    """The kernel's counters of drops, by anyone."""
    text = Path("/proc/vmstat").read_text(encoding="ascii")
    return re.findall(r"^drop_\w+ \d+$", text, re.MULTILINE)


def without_a_drop(act):
    """The result of `act`, proven not to drop: in one of several runs the counters, which others may change, stay the same."""
    for _ in range(TRIES):
        before = drops()
        result = act()
        if drops() == before:
            return result
    pytest.fail(f"caches were dropped in each of {TRIES} runs")


def in_some_run(check):
    """Call `check` until its assertions hold: other processes move the machine's numbers meanwhile, but not in each run."""
    for left in reversed(range(TRIES)):
        try:
            return check()
        except AssertionError:
            if not left:
                raise
    return None


def in_namespace(script, *flags):
    return subprocess.run(
        ["unshare", "-m", *flags, "sh", "-c", script], capture_output=True, text=True, check=False, timeout=120
    )


def in_tracefs(script):
    """Words that a shell script prints in tracefs, which is mounted in a namespace of its own. perf(1) may have mounted it for all."""
    mount = "umount /sys/kernel/tracing 2>/dev/null; mount -t tracefs tracefs /sys/kernel/tracing"
    done = in_namespace(f"{mount} && cd /sys/kernel/tracing && {script}")
    if done.returncode:
        pytest.skip(f"needs tracefs: {done.stderr.strip()}")
    return done.stdout.split()


def needs_tracefs():
    """Skip where the kernel's tracer is not ours to use."""
    in_tracefs("ls instances")


def instances():
    """The tracing instances of opskit on this machine, seen in a mount namespace of our own."""
    return [name for name in in_tracefs("ls instances") if name.startswith("opskit-")]


def perf_events(*pids):
    """The number of perf events that these processes hold open."""
    count = 0
    for pid in pids:
        try:
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            continue
        count += links.count("anon_inode:[perf_event]")
    return count


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


TRACE = """
import json, sys
from opskit import interrupts
from opskit.actions.trace_lookups import trace_failed_lookups
from opskit.host import Host
interrupts.install()
found = trace_failed_lookups(Host.at(None, None), float(sys.argv[2]), (sys.argv[1],))
print(json.dumps({**found._asdict(), "lookers": [row._asdict() for row in found.lookers]}))
"""


def traced_lookups(events, seconds):
    """The failed lookups of some seconds, by one kind of events."""
    done = subprocess.run(
        [sys.executable, "-c", TRACE, events, str(seconds)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
