"""Which process a core file is of."""

from __future__ import annotations

import struct

import pytest
from corefiles import core_bytes

from opskit.proc.elf.core_notes import is_core, notes_at, pid_in

CORE = core_bytes(4242)


def test_the_pid_is_in_the_second_note():
    """After that of the thread that crashed."""
    assert is_core(CORE)
    assert pid_in(CORE[notes_at(CORE) :]) == 4242


@pytest.mark.parametrize(
    "data", [b"", CORE[:63], b"\x7fELF\x01" + CORE[5:], CORE[:16] + b"\x02" + CORE[17:], bytes(100)]
)
def test_other_files_have_no_notes(data):
    """Empty, cut, of 32 bits, a program."""
    assert notes_at(data) is None


def test_damaged_headers_end_the_search():
    """A header beyond the bytes, headers of size 0, a length beyond the end, a negative PID."""
    assert notes_at(CORE[:70]) is None
    assert notes_at(CORE[:54] + struct.pack("<HH", 0, 65535) + CORE[58:]) is None
    notes = CORE[notes_at(CORE) :]
    assert pid_in(notes[:40]) is None
    assert pid_in(struct.pack("<III", 0xFFFFFFFF, 0xFFFFFFFF, 3) + notes) is None
    assert pid_in(core_bytes(-5)[120:]) is None
