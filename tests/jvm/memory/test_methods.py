"""Line tables of Java methods."""

from __future__ import annotations

import pytest

from opskit.jvm.memory.methods import Method, lines_of
from opskit.jvm.memory.unsigned5 import Coding

NEW, OLD = Coding(1, 191), Coding(0, 192)
# bci 0 is line 240: 255, then the signed numbers 0 and 240; bci 5: line 241; bci 9: line 239 by 255, 4, -2.
TABLE = {NEW: bytes((255, 1, 225, 5, 41, 255, 9, 4, 0)), OLD: bytes((255, 0, 224, 4, 41, 255, 8, 3, 0))}


@pytest.mark.parametrize("coding", [NEW, OLD])
def test_a_line_table(coding):
    """Short distances in one byte, others behind 255."""
    lines = lines_of(TABLE[coding], coding, 20)
    assert lines == [(0, 240), (5, 241), (9, 239)]
    method = Method("a.B.c", "B.java", (0, 20), lines)
    assert [method.line(bci) for bci in (0, 4, 5, 8, 9, 19)] == [240, 240, 241, 241, 239, 239]


def test_the_wrong_coding_makes_no_sense():
    """Signs change, so that a line or a bytecode is outside of the method."""
    assert lines_of(TABLE[OLD], NEW, 20) is None
    assert lines_of(TABLE[NEW], OLD, 20) is None


@pytest.mark.parametrize("data", [b"", b"\xff", b"\xff\x01", b"\x29", bytes((255, 1, 1)), b"\x29" * 100])
def test_damaged_tables(data):
    """Without an end, or beyond the method's code."""
    assert lines_of(data, NEW, 20) is None


def test_a_table_that_goes_back_and_forth():
    """It has more entries than a method has bytecodes."""
    there_and_back = b"\x29" + bytes((255, 10, 2))  # 5 bytecodes and 1 line on, and back again
    assert lines_of(there_and_back * 100 + b"\0", NEW, 20)[-1][0] == 5
    assert lines_of(there_and_back * 40_000 + b"\0", NEW, 20) is None


def test_a_method_without_lines():
    """A line is unknown, not 0."""
    assert Method("a.B.c", None, (0, 0), ()).line(0) is None
