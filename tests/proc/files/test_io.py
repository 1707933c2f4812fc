"""/proc/PID/io: the real file, and files that are cut short."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.errors import BadInput
from opskit.proc.files.io import ProcIo, parse_io
from opskit.proc.fs import ProcFS


def test_what_this_process_writes_is_counted(tmp_path):
    before = ProcFS().load(parse_io, os.getpid(), "io")
    (tmp_path / "file").write_bytes(b"x" * 12345)
    after = ProcFS().load(parse_io, os.getpid(), "io")
    assert after.written_bytes - before.written_bytes == 12345
    assert after.read_bytes > 0


def test_the_counters():
    assert parse_io("rchar: 5\nwchar: 0\nsyscr: 1\n") == ProcIo(5, 0, 1)
    assert ProcIo(9, 8, 7, 6, 5, 4, 3).since(ProcIo(1, 9, 1)) == ProcIo(8, 0, 6, 6, 5, 4, 3)


@pytest.mark.parametrize(
    "text", ["", "rchar: 5\n", "rchar: 5\nwchar:\n", "rchar: 5\nwchar: -1\n", "rchar 5\nwchar 6\n"]
)
def test_a_file_without_them_is_refused(text):
    with pytest.raises(BadInput, match="no rchar and wchar"):
        parse_io(text)


KEYS = ("rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes")


@given(st.lists(st.integers(0, 2**64 - 1), min_size=7, max_size=7), st.permutations(range(7)))
def test_the_order_of_the_lines_is_free(numbers, order):
    """The kernel's order is read faster, and says the same."""
    lines = [f"{key}: {number}\n" for key, number in zip(KEYS, numbers)]
    in_order = parse_io("".join(lines))
    assert in_order == ProcIo(*numbers)
    assert parse_io("".join(lines[at] for at in order)) == in_order
    assert parse_io("".join(lines) + "new_key: 7\n") == in_order
