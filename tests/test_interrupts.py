"""Signals that end a run, in the moments where Python drops what a handler raises."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

SWALLOWED = """
import os, sys, time, weakref
from opskit import interrupts

class Finalized:
    def __del__(self):
        os.kill(os.getpid(), int(sys.argv[1]))
        time.sleep(0.01)  # the handler runs here

class Referred:
    pass

def callback(_):
    Finalized.__del__(None)

interrupts.install()
try:
    if sys.argv[2] == "finalizer":
        Finalized()
    else:
        it = Referred()
        kept = weakref.ref(it, callback)
        del it
    time.sleep(60)
except KeyboardInterrupt as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize("place", ["finalizer", "weakref callback"])
@pytest.mark.parametrize(
    ("number", "raised"),
    [(signal.SIGTERM, "Terminated"), (signal.SIGHUP, "Terminated"), (signal.SIGINT, "KeyboardInterrupt")],
)
def test_a_signal_in_a_finalizer_raises_after_it(place, number, raised):
    """The signal is neither lost nor printed as a traceback."""
    done = subprocess.run(
        [sys.executable, "-c", SWALLOWED, str(int(number)), place],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == (f"{raised}\n", "", 0)


@pytest.mark.parametrize("again", ["pass", "os.kill(os.getpid(), int(sys.argv[1]))"])
def test_a_hook_that_takes_longer_than_its_timer(again):
    """The timer, or the signal itself once more, comes while the hook still runs: it is not lost there."""
    slow = f"""
import _signal, os, sys, time
real, calls = _signal.setitimer, []
def setitimer(*given):
    real(*given)
    if not calls:
        calls.append(given)
        time.sleep(0.02)
        {again}
_signal.setitimer = setitimer
"""
    done = subprocess.run(
        [sys.executable, "-c", slow + SWALLOWED, str(int(signal.SIGTERM)), "finalizer"],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("Terminated\n", "", 0)


def test_other_errors_of_a_finalizer_are_still_printed():
    """Only the signals are taken from the standard hook."""
    program = "from opskit import interrupts\nclass A:\n    def __del__(self): 1 / 0\ninterrupts.install()\nA()\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "ZeroDivisionError" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "words",
    [
        ("fds", "-w"),
        ("fds", "PID", "-w"),
        ("fds", "--deleted", "-w"),
        ("tcp", "-w"),
        ("clock", "-w"),
        ("cswitch", "PID", "-w"),
        ("cswitch", "-w"),
        ("irqs", "-w"),
        ("io", "-w"),
        ("io", "PID", "-w"),
    ],
    ids=" ".join,
)
def test_a_watch_that_is_interrupted_shows_what_there_is(words, number):
    """Descriptors, connections, waits: whole JSON of the looks so far, or nothing before the first; no traceback."""
    holder = subprocess.Popen(["sleep", "60"])
    words = [str(holder.pid) if word == "PID" else word for word in words]
    running = subprocess.Popen(
        [sys.executable, "-m", "opskit", *words, "-i", "0.2", "-f", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )  # fmt: skip
    try:
        time.sleep(1.5)
        running.send_signal(number)
        out, err = running.communicate(timeout=30)
    finally:
        holder.kill()
        holder.wait()
    assert running.returncode == (130 if number == signal.SIGINT else -number)
    assert "Traceback" not in err
    assert not out or json.loads(out)["findings"] is not None


@pytest.mark.parametrize("command", ["tcp", "cswitch", "irqs", "io"])
def test_one_look_that_is_interrupted(command):
    """Within its window: exit code 130 at once, and nothing is left."""
    running = subprocess.Popen(
        [sys.executable, "-m", "opskit", command, "-i", "30"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(1.5)
    running.send_signal(signal.SIGINT)
    begun = time.monotonic()
    _, err = running.communicate(timeout=30)
    assert (running.returncode, "Traceback" in err) == (130, False)
    assert time.monotonic() - begun < 20
