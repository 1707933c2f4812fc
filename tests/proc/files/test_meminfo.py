"""/proc/meminfo."""

from __future__ import annotations

import pytest

from opskit.errors import BadInput
from opskit.proc.files.meminfo import parse_meminfo
from opskit.proc.fs import ProcFS


def test_meminfo():
    """Bytes; counts stay counts; a number that is cut off is refused."""
    assert parse_meminfo("MemTotal: 16 kB\nHugePages_Free:  7") == {"MemTotal": 16384, "HugePages_Free": 7}
    assert parse_meminfo("MemTotal: 16 kB") == {"MemTotal": 16384}
    for text in ("MemTotal: 16 kB\nSlab:      1", "MemTotal: 16 kB\nSlab:      12 k"):
        with pytest.raises(BadInput, match="meminfo:2: cut short"):
            parse_meminfo(text)


@pytest.mark.parametrize("text", ["MemTotal 16 kB\n", "MemTotal: many kB\n", "MemTotal:\n"])
def test_other_text_is_refused(text):
    """With the line's number."""
    with pytest.raises(BadInput, match="meminfo:1: not `Key: number kB`"):
        parse_meminfo(text)


def test_this_machine():
    """Bytes, not KiB."""
    assert ProcFS().load(parse_meminfo, "meminfo")["MemTotal"] > 64 << 20
