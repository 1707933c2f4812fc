"""Samples on a fixed schedule."""

from __future__ import annotations

from itertools import islice

from opskit.collect.schedule import schedule


class Clock:
    """A host whose time passes only where it sleeps or works."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    def end_at(self, end_s):
        return end_s


def test_samples_are_taken_at_start_plus_n_intervals():
    """A late one is said to be late, and the slots that it took are skipped."""
    clock, found = Clock(), []
    for number, late in schedule(clock, 2.0, 4):
        found.append((number, round(clock.now - 100, 1), round(late, 1)))
        clock.sleep(5.0 if number == 2 else 0.5)
    assert found == [(1, 0.0, 0.0), (2, 2.0, 0.0), (3, 7.0, 1.0), (4, 8.0, 0.0)]


def test_an_interval_of_zero_is_no_pause():
    """One after the other, and none is late, however long each takes."""
    clock, found = Clock(), []
    for number, late in islice(schedule(clock, 0.0, None), 3):
        found.append((number, late))
        clock.sleep(5.0)
    assert found == [(1, 0.0), (2, 0.0), (3, 0.0)]
    assert clock.now == 115.0
