"""What a child sends, and a signal that interrupts its reader."""

from __future__ import annotations

import sys

import pytest

from opskit.interrupts import Guard
from opskit.proc.kernel.children import Child, start_child, wait_for

LARGE = "x" * 100_000  # more than a part


def interrupt_at(line):
    """Raise KeyboardInterrupt before so many lines of `receive` have run, as a signal does."""
    seen = 0

    def count(frame, event, _):
        nonlocal seen
        if frame.f_code is not Child.receive.__code__:
            return None
        seen += event == "line"
        if seen == line:
            sys.settrace(None)
            raise KeyboardInterrupt
        return count

    sys.settrace(count)


def talk(send):
    for number in range(3):
        send({"number": number})
        send({"number": number, "text": LARGE})


def receive_all(child):
    while True:
        assert wait_for([child], 20)
        child.receive()


def test_a_reader_that_is_interrupted_can_leave():
    """At each of its lines, also between two parts of a message: what has come before is no concern of who leaves."""
    line, is_interrupted = 0, True
    while is_interrupted:
        line, is_interrupted = line + 1, False
        with Guard():
            child = start_child(talk, patient=True)
            try:
                interrupt_at(line)
                for _ in range(3):
                    assert wait_for([child], 20)
                    child.receive()
            except KeyboardInterrupt:
                is_interrupted = True
            finally:
                sys.settrace(None)
                assert child.leave(has_ended=True) == 0
    assert line > 20


@pytest.mark.parametrize("line", range(1, 12))
def test_the_next_message_after_an_interrupted_one(line):
    """It is whole; the interrupted one may be lost."""
    with Guard():
        child = start_child(lambda send: [send({"number": number}) for number in range(3)])
        try:
            interrupt_at(line)
            with pytest.raises(KeyboardInterrupt):
                receive_all(child)
            assert wait_for([child], 20)
            assert child.receive() in ({"number": 0}, {"number": 1}, {"number": 2})
        finally:
            sys.settrace(None)
            child.end()
