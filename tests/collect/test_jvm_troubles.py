"""JVMs that wait for a safepoint."""

from __future__ import annotations

import pytest

from opskit.collect import jvm_troubles


@pytest.mark.parametrize(
    ("slept", "waited_s", "found"),
    [(210, 0.0, True), (60, 0.0, False), (60, 0.8, True), (15, 0.99, False)],
    ids=["polls", "busy with other work", "polls on a crowded CPU", "hardly runs"],
)
def test_a_vm_thread_polls_as_often_as_it_gets_a_cpu(monkeypatch, slept, waited_s, found):
    """It sleeps for a millisecond each time; where it waits for a CPU for most of a second, it polls seldom."""
    monkeypatch.setattr(jvm_troubles, "sleeps", lambda *_: 1000 + slept)
    monkeypatch.setattr(jvm_troubles, "_waited_s", lambda *_: 5.0 + waited_s)
    monkeypatch.setattr(jvm_troubles, "_has_moved", lambda *_: False)

    class Jvm:
        pid = 4

    suspect = jvm_troubles._Suspect(Jvm(), 9, 1000, 5.0)
    assert jvm_troubles._still_waits(None, suspect, 1.0) is found
