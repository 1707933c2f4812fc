"""Threads that take turns: one at a time, in order; one that hangs lends its turn; none is lost."""

from __future__ import annotations

import random
import threading
import time

import pytest

from opskit.checks.turns import _DUE, _NEW, Turns

FAR_S = 20.0


class Track:
    """What the threads did, and how many ran at once at most."""

    def __init__(self):
        self.done, self.inside, self.most = [], 0, 0

    def step(self, name):
        self.inside += 1
        self.most = max(self.most, self.inside)
        time.sleep(0)  # another thread would come in here
        self.inside -= 1
        self.done.append(name)


def finish(turns, within_s=FAR_S):
    return turns.wait(time.monotonic() + within_s)


def test_first_readings_then_scans_then_second_readings():
    """Those that sleep let the scans run; after the sleep they come before scans that have not begun."""
    turns, track, begin, hold = Turns(), Track(), threading.Event(), threading.Event()

    def rate(name):
        track.step(f"{name} first")
        turns.sleep(0.01)
        track.step(f"{name} second")

    def scan(name):
        hold.wait(FAR_S) if name == "scan 1" else None
        track.step(name)

    def wait_for(*precedences):
        while sorted(each[0] for each in turns._waiting) != [*precedences]:
            time.sleep(0.001)

    turns.start(lambda: begin.wait(FAR_S))
    while turns._free:
        time.sleep(0.001)
    for number, (work, name) in enumerate(((rate, "a"), (rate, "b"), (scan, "scan 1"), (scan, "scan 2")), 1):
        turns.start(lambda work=work, name=name: work(name))
        wait_for(*[_NEW] * number)
    begin.set()
    wait_for(_DUE, _DUE, _NEW)  # both sleeps are over, and scan 2 has not begun
    hold.set()
    assert finish(turns)
    assert track.done[:3] == ["a first", "b first", "scan 1"]
    assert sorted(track.done[3:5]) == ["a second", "b second"]
    assert (track.done[5:], track.most) == (["scan 2"], 1)


def test_a_long_scan_lets_a_due_reading_go_first():
    """`breathe`, called before each read, gives the turn to a thread whose sleep is over, and takes it again later."""
    turns, done = Turns(), []

    def rate():
        turns.sleep(0.02)
        done.append("second reading")

    def scan():
        while "second reading" not in done:
            turns.breathe()
        done.append("scan")

    turns.start(rate)
    turns.start(scan)
    assert finish(turns)
    assert done == ["second reading", "scan"]


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("opskit.checks.turns._QUIET_S", 0.03)
    monkeypatch.setattr("opskit.checks.turns._HANGS_S", 0.06)


def test_one_that_hangs_lends_its_turn_and_is_reported(impatient):
    """Others run beside it; `on_hang` names its thread; when it goes on there is still one turn."""
    hung, go_on, done = [], threading.Event(), []

    def report(thread):
        hung.append(thread)
        go_on.set() if len(done) == 2 else None

    turns = Turns(report)

    def hanging():
        go_on.wait(FAR_S)
        turns.breathe()
        done.append(threading.get_ident())

    turns.start(hanging)
    for _ in range(2):
        turns.start(lambda: done.append("other"))
    assert finish(turns)
    assert (done[:2], done[2]) == (["other", "other"], hung[0])
    assert (turns._free, turns._turns, turns._lent) == (1, {}, set())


def test_one_that_never_returns_does_not_keep_the_others(impatient):
    """At the moment given, `wait` says that not all have ended."""
    turns, never, done = Turns(), threading.Event(), []
    turns.start(lambda: never.wait(FAR_S))
    turns.start(lambda: done.append(1))
    assert not finish(turns, 0.15)
    assert done == [1]
    never.set()
    assert finish(turns)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("error", [SystemExit, MemoryError, RecursionError, KeyboardInterrupt, ValueError])
def test_a_turn_survives_every_exception(error):
    """It goes to the next thread."""
    turns, done = Turns(), []

    def crash():
        raise error

    turns.start(crash)
    turns.start(lambda: done.append(1))
    assert finish(turns)
    assert (done, turns._free) == ([1], 1)


def test_a_thread_without_a_turn():
    """Its sleep and its breath change nothing: one that a check started, or the main thread."""
    turns = Turns()
    turns.sleep(-1.0)
    turns.breathe()
    assert turns._free == 1


def test_no_thread_can_be_started(monkeypatch):
    """The error reaches the caller, and nothing is waited for."""

    def refuse(_self):
        raise RuntimeError("can't start new thread")

    turns = Turns()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError):
        turns.start(lambda: None)
    assert finish(turns)


def test_no_turn_is_lost_or_made_in_a_storm(monkeypatch):
    """40 threads sleep, breathe, hang a little and crash at random: at the end all have ended, and there is one turn."""
    monkeypatch.setattr("opskit.checks.turns._QUIET_S", 0.002)
    monkeypatch.setattr("opskit.checks.turns._BREATH_S", 0.0)
    turns, track, drawn = Turns(), Track(), random.Random(7)  # noqa: S311

    def work(plan):
        for what in plan:
            if what == "sleep":
                turns.sleep(0.001)
            elif what == "hang":
                time.sleep(0.006)
            else:
                turns.breathe()
        track.done.append(plan)

    plans = [drawn.choices(("sleep", "hang", "breathe"), (2, 1, 6), k=12) for _ in range(40)]
    for plan in plans:
        turns.start(lambda plan=plan: work(plan))
    assert finish(turns)
    assert (len(track.done), turns._free, turns._waiting, turns._lent) == (40, 1, [], set())
