"""Signals that end a run, in the moments where Python drops what a handler raises."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest
from atonce import ForEach

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


OVERTAKEN = """
import os, signal, sys
from opskit import interrupts

def overtake(frame, event, _):
    if frame.f_code is interrupts._handle.__code__:
        sys.settrace(None)
        os.kill(os.getpid(), signal.SIGINT)  # before the first line of the handler

interrupts.install()
try:
    sys.settrace(overtake)
    os.kill(os.getpid(), signal.SIGHUP)
    for _ in range(1000):
        pass
except KeyboardInterrupt:
    sys.settrace(None)
interrupts.end_by_signal()
"""


def test_a_second_signal_does_not_hide_the_first():
    """Ctrl-C comes before the handler of SIGHUP has noted anything: the run ends by SIGHUP all the same."""
    done = subprocess.run([sys.executable, "-c", OVERTAKEN], capture_output=True, text=True, timeout=30, check=False)
    assert (done.stderr, done.returncode) == ("", -signal.SIGHUP)


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


WATCHES = (
    "fds -w",
    "fds PID -w",
    "fds --deleted -w",
    "tcp -w",
    "clock -w",
    "cswitch PID -w",
    "cswitch -w",
    "irqs -w",
    "io -w",
    "io PID -w",
)
LOOKS = ("tcp", "cswitch", "irqs", "io")
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def ended(words, number):
    """(exit code, stdout, stderr) of a run that got the signal after 1.5 s, and how long it then lasted."""
    running = subprocess.Popen(
        [sys.executable, "-m", "opskit", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(1.5)
    running.send_signal(number)
    begun = time.monotonic()
    out, err = running.communicate(timeout=30)
    return running.returncode, out, err, time.monotonic() - begun


def a_watch(case):
    words, number = case
    with subprocess.Popen(["sleep", "60"]) as holder:
        pid = str(holder.pid)
        try:
            return ended(
                [*(pid if word == "PID" else word for word in words.split()), "-i", "0.2", "-f", "json"], number
            )
        finally:
            holder.kill()


WATCHED = ForEach(a_watch, [(words, number) for words in WATCHES for number in SIGNALS])
LOOKED = ForEach(lambda command: ended([command, "-i", "30"], signal.SIGINT), LOOKS)


@pytest.mark.xdist_group("interrupts")
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("words", WATCHES)
def test_a_watch_that_is_interrupted_shows_what_there_is(words, number):
    """Descriptors, connections, waits: whole JSON of the looks so far, or nothing before the first; no traceback."""
    code, out, err, _ = WATCHED.result((words, number))
    assert code == (130 if number == signal.SIGINT else -number)
    assert "Traceback" not in err
    assert not out or json.loads(out)["findings"] is not None


@pytest.mark.xdist_group("interrupts")
@pytest.mark.parametrize("command", LOOKS)
def test_one_look_that_is_interrupted(command):
    """Within its window: exit code 130 at once, and nothing is left."""
    code, _, err, lasted_s = LOOKED.result(command)
    assert (code, "Traceback" in err) == (130, False)
    assert lasted_s < 20
