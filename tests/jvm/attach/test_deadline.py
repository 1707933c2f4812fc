"""An exchange ends in time, and names what the JVM did meanwhile."""

from __future__ import annotations

import os

import jvms
import pytest
from atonce import ForEach
from attaching import client, refused, triggers_of

from opskit.jvm.attach.deadline import busiest, meanwhile


@pytest.mark.parametrize(
    ("mode", "waited_for"),
    [
        ("stall", "no answer within"),
        ("trickle", "no end of the answer within"),
        ("queue", "no place in the queue"),
        ("never", "no listener within"),
    ],
)
def test_the_deadline_holds_for_the_whole_exchange(fake_jvm, mode, waited_for):
    """The client returns in time whatever is missing; bytes that trickle in do not move the deadline."""
    fake = fake_jvm(mode)
    with refused("timeout", waited_for):
        client(fake, 1.0).thread_dump()
    assert not any(map(os.path.lexists, triggers_of(fake)))


def test_a_burning_thread_is_named(fake_jvm):
    """The error names the busiest thread of a JVM that does not answer, by /proc alone."""
    fake = fake_jvm("burn")
    with refused("timeout", r'thread "hog-thread" \(tid \d+\) used') as caught:
        client(fake, 2.0).thread_dump()
    assert caught.value.facts["thread"] == "hog-thread"


def ask_a_hog(version):
    """The thread that the error names."""
    with jvms.running("hog", version=version, options=jvms.HOG_OPTIONS) as running:
        with refused("timeout", r'thread "hog" \(tid \d+\) used') as caught:
            client(running, 1.0).thread_dump()
        return caught.value.facts["thread"]


HOGS = ForEach(ask_a_hog, jvms.WHEELS, 2)


def test_a_jvm_that_reaches_no_safepoint(jvm_version):
    """The client returns in time and names the thread that prevents the safepoint."""
    assert HOGS.result(jvm_version) == "hog"


def test_who_burned():
    """The thread with most CPU time, if it used 5 % of a CPU; the explanation depends on its name."""
    before = {1: ("main", 100), 2: ("hog", 50)}
    after = {1: ("main", 101), 2: ("hog", 149), 3: ("new", 30)}
    assert busiest(before, after, 100) == (2, "hog", 0.99)
    assert busiest(before, before, 100) is None
    assert busiest({}, {}, 100) is None
    assert 'thread "hog" (tid 2)' in meanwhile((2, "hog", 0.99))
    assert "garbage collection" in meanwhile((2, "G1 Conc#0", 0.99))
    assert "VM operation" in meanwhile((2, "VM Thread", 0.99))
    assert "none of its threads" in meanwhile(None)
