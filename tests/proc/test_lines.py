"""Lines of the kernel's files: a name in one cannot forge another."""

from __future__ import annotations

import pytest

from opskit.proc.files.maps import parse_maps
from opskit.proc.files.mountinfo import parse_mountinfo
from opskit.proc.lines import lines_of

ENDS = ["\v", "\f", "\r", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


def test_the_lines_of_a_file():
    """With and without a newline at the end; empty text."""
    assert lines_of("a\nb\n") == lines_of("a\nb") == ["a", "b"]
    assert lines_of("\n") == [""]
    assert lines_of("") == []


@pytest.mark.parametrize("end", ENDS, ids=ascii)
def test_a_name_with_what_ends_a_line_for_python(end):
    """Mount points and mapped files may have such names."""
    [mount] = parse_mountinfo(f"36 35 98:0 / /a{end}b rw - ext3 /dev/root rw\n")
    assert mount.mount_point == f"/a{end}b"
    maps = f"00400000-00401000 r-xp 00000000 fe:00 13 /tmp/a{end}b\n"
    assert parse_maps(maps).maps == 1
