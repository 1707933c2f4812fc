"""The shares in /proc/PID/smaps_rollup."""

from __future__ import annotations

from pathlib import Path

import pytest

from opskit.errors import BadInput
from opskit.proc.files.smaps import Proportional, parse_proportional

HEAD = (
    "557ec7fdc000-7ffcd5dc3000 ---p 00000000 00:00 0                          [rollup]\nRss:                1748 kB\n"
)


def test_the_shares():
    """The total, and its parts since Linux 5.9."""
    parts = "Pss:  281 kB\nPss_Dirty: 112 kB\nPss_Anon: 112 kB\nPss_File: 160 kB\nPss_Shmem: 9 kB\nSwapPss: 5 kB\n"
    assert parse_proportional(HEAD + parts) == Proportional(281 << 10, 112 << 10, 160 << 10, 9 << 10)
    assert parse_proportional(HEAD + "Pss:  281 kB\n") == Proportional(281 << 10, None, None, None)
    assert parse_proportional(HEAD) is parse_proportional("") is None
    with pytest.raises(BadInput):
        parse_proportional(HEAD + "Pss: much\n")


def test_of_this_process():
    """The parts sum to the total, but for rounding to KiB."""
    found = parse_proportional(Path("/proc/self/smaps_rollup").read_text())
    assert abs(found.total_bytes - found.anonymous_bytes - found.file_bytes - found.shmem_bytes) <= 4096
