"""The loop that notes how late it is woken up."""

from __future__ import annotations

import time

import pytest

from opskit.proc.kernel import hiccups


@pytest.mark.parametrize(("share", "least", "most"), [(0.01, 590, 600), (0.06, 350, 450)])
def test_a_wake_up_that_costs_much_is_asked_for_half_as_often(monkeypatch, share, least, most):
    """A look each millisecond for a quarter of a second, then each 2 ms, then each 4 ms."""
    monkeypatch.setattr(hiccups.time, "thread_time", lambda: time.monotonic() * share)
    notes = hiccups._Notes()
    hiccups._sleep(time.monotonic_ns() + 600_000_000, notes)
    assert least <= sum(notes.counted.values()) <= most
