"""Libraries that replace the clock functions, and their shift."""

from __future__ import annotations

import pytest

from opskit.proc.fake_time import library_in, shift_s

LINE = "7f2a5ca48000-7f2a5ca58000 {} 00004000 fe:00 918 {}\n"


@pytest.mark.parametrize(
    ("rights", "path", "found"),
    [
        ("r-xp", "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", True),
        ("r-xp", "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1", True),
        ("r-xp", "/usr/lib/datefudge/datefudge.so", True),
        ("r--p", "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", False),  # read, not run
        ("r-xp", "/home/a/libfaketime-notes/prog", False),
        ("r-xp", "/usr/lib/libc.so.6", False),
    ],
)
def test_the_library_in_the_maps(rights, path, found):
    """It is mapped for execution."""
    text = LINE.format("r-xp", "/usr/bin/x") + LINE.format(rights, path)
    assert library_in(text) == (path if found else None)
    assert library_in("") is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("-7h", -25200), ("+3600", 3600), ("+1.5d", 129600), ("-2m x10", -120), ("@2020-12-24 20:30:00", None), ("", None), ("+", None),
     ("7h", None), ("+1y", 31536000), ("+1.2.3", None), ("2020-12-24 20:30:00", None)],
)  # fmt: skip
def test_the_shift(value, seconds):
    """Relative ones only."""
    assert shift_s(value) == seconds
