"""Interpreted frames on made-up stacks. Real ones: test_java.py."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import pytest

from opskit.jvm.memory.methods import Method
from opskit.jvm.unwind.interpreted import Interpreted
from opskit.proc.unwind.cursor import RBP, REGISTERS, RSP, Cursor

SP, METHOD, BYTECODES = 0x7F00_0000_0000, 0x7F10_0000_0000, 0x7F10_0000_1000
LOW, BOTTOM = 0x7F20_0000_0000, SP + 16
METHODS = {METHOD: Method("a.B.c", "B.java", (BYTECODES, BYTECODES + 20), [(0, 40), (10, 41)])}
INDEX = SimpleNamespace(methods=METHODS, low=LOW, high=LOW + 4096)


def stepped(interpreted, first, second):
    """The frame of an interpreted method; the words at its lower end."""
    registers = [None] * REGISTERS
    registers[RSP], registers[RBP] = SP, SP + 64
    words = first, second, 0, 0, 0, METHOD, 0, SP + 80, SP + 128, LOW + 8
    cursor = Cursor(registers, struct.pack("<10Q", *words))
    cursor.signalled = False
    assert interpreted.step(cursor)
    return cursor.frames[0]


@pytest.mark.parametrize("at_first", [True, False], ids=["JDK 9 and later", "JDK 8"])
def test_the_line_of_each_frame(at_first):
    """By the bytecode's address. In JDK 8 it is one word further up, above the lower end of the monitors."""
    interpreted = Interpreted(INDEX)
    lines = [
        stepped(interpreted, *((bcp, BOTTOM) if at_first else (BOTTOM, bcp))).line
        for bcp in (BYTECODES + 3, BYTECODES + 12, BYTECODES + 3, BYTECODES + 20)
    ]
    assert lines == [40, 41, 40, None]
