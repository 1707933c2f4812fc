"""/proc/meminfo."""

from __future__ import annotations

import pytest

from opskit.errors import BadInput
from opskit.proc.files.meminfo import parse_meminfo


def test_meminfo():
    """Bytes; counts stay counts; a number that was cut off is no smaller number."""
    assert parse_meminfo("MemTotal: 16 kB\nHugePages_Free:  7") == {"MemTotal": 16384, "HugePages_Free": 7}
    assert parse_meminfo("MemTotal: 16 kB") == {"MemTotal": 16384}
    for text in ("MemTotal: 16 kB\nSlab:      1", "MemTotal: 16 kB\nSlab:      12 k"):
        with pytest.raises(BadInput, match="meminfo:2: cut short"):
            parse_meminfo(text)
