"""DWARF expressions: those that occur in call frame information, and hostile ones."""

from __future__ import annotations

import random
import time

import pytest

from opskit.proc.elf.expressions import evaluate
from opskit.proc.unwind.cursor import PC, RBP, REGISTERS, RSP

REGISTERS_NOW: list[int | None] = [None] * REGISTERS
REGISTERS_NOW[RSP], REGISTERS_NOW[RBP], REGISTERS_NOW[PC] = 0x7000, 0x7100, 0x401026
WORDS = {0x7000: 0x1111, 0x70A0: 0x9000, 0x70F8: 0x7200}


def value(text, first=None, registers=REGISTERS_NOW):
    """The value of an expression in hexadecimal."""
    return evaluate(bytes.fromhex(text), registers, WORDS.get, first)


@pytest.mark.parametrize(("offset", "cfa"), [(0x0, 0x7008), (0x6, 0x7008), (0xA, 0x7008), (0xB, 0x7010), (0xF, 0x7010)])
def test_a_plt_entry_has_pushed_a_word_after_eleven_bytes(offset, cfa):
    """What the linker writes for .plt: rsp + 8 + ((rip & 15) >= 11) * 8."""
    registers = [*REGISTERS_NOW]
    registers[PC] = 0x401020 + offset
    assert value("77 08 80 00 3f 1a 3b 2a 33 24 22", registers=registers) == cfa


def test_a_signal_frame_and_a_realigned_stack():
    """Rsp in the saved context, `[rsp + 160]`; GCC's `[rbp - 8]`."""
    assert value("77 a0 01 06") == 0x9000
    assert value("76 78 06") == 0x7200


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("08 ff", 0xFF), ("09 ff", (1 << 64) - 1), ("0b ff7f", 0x7FFF), ("0e 0100000000000080", (1 << 63) + 1),
        ("10 e58e26", 624485), ("11 7f", (1 << 64) - 1), ("35 31 1c", 4), ("31 35 1c", (1 << 64) - 4), ("33 34 1e", 12),
        ("35 1f", (1 << 64) - 5), ("09 fb 19", 5), ("31 20", (1 << 64) - 2), ("3f 33 1a", 3), ("38 33 21", 11), ("3f 33 27", 12),
        ("38 31 25", 4), ("09 f8 31 26", (1 << 64) - 4), ("31 12 22", 2), ("31 32 13", 1), ("31 32 14 1c 1c", 1 - (2 - 1) & (1 << 64) - 1),
        ("31 32 33 15 02", 1), ("31 32 16", 1), ("31 32 33 17 13", 1), ("31 23 05", 6), ("31 28 0100 32 33", 3),
        ("30 28 0100 32 33", 3), ("2f 0100 32 33", 3), ("31 32 2d", 1), ("09 ff 30 2d", 1), ("31 31 29", 1), ("31 31 2e", 0), ("92 07 08", 0x7008),
        ("31 96", 1), ("31 38 06", None), ("73 00", None), ("06", None), ("ff", None), ("77", None), ("", None), ("2f fdff", None), ("2f ff7f", None),
    ],
)  # fmt: skip
def test_an_operation(text, found):
    """Signed and unsigned numbers of 64 bits; unknown registers, words and operations give nothing, nor do endless loops."""
    assert value(text) == found


def test_the_cfa_is_given_to_the_rule_of_a_register():
    """As the first value."""
    assert value("23 10", 0x7000) == 0x7010
    assert value("", 0x7000) == 0x7000


def test_hostile_expressions_end_soon():
    """Random bytes, loops, and shifts that would make large numbers."""
    choose = random.Random(3)  # noqa: S311
    begin = time.process_time()
    for _ in range(5000):
        evaluate(choose.randbytes(choose.randint(0, 40)), REGISTERS_NOW, WORDS.get, 1)
    assert value("31" + "0effffffffffffffff 24" * 200) is not None
    assert value("31 12 1e 2f fbff") is None
    assert time.process_time() - begin < 3
