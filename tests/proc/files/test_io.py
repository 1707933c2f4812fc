"""/proc/PID/io: the real file, and files that are cut short."""

from __future__ import annotations

import os

import pytest

from opskit.errors import BadInput
from opskit.proc.files.io import ProcIo, parse_io
from opskit.proc.fs import ProcFS


def test_what_this_process_writes_is_counted(tmp_path):
    before = ProcFS().load(parse_io, os.getpid(), "io")
    (tmp_path / "file").write_bytes(b"x" * 12345)
    after = ProcFS().load(parse_io, os.getpid(), "io")
    assert after.written_bytes - before.written_bytes == 12345
    assert after.read_bytes > 0


def test_the_two_counters():
    assert parse_io("rchar: 5\nwchar: 0\nsyscr: 1\n") == ProcIo(5, 0)


@pytest.mark.parametrize(
    "text", ["", "rchar: 5\n", "rchar: 5\nwchar:\n", "rchar: 5\nwchar: -1\n", "rchar 5\nwchar 6\n"]
)
def test_a_file_without_them_is_refused(text):
    with pytest.raises(BadInput, match="no rchar and wchar"):
        parse_io(text)
