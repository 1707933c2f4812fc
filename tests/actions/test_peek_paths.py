"""What is read out of a process's memory as a path."""

from __future__ import annotations

import ctypes
import os

import pytest

from opskit.actions import peek_paths


@pytest.mark.parametrize(
    ("memory", "path"),
    [
        (b"/etc/no such file", "/etc/no such file"),
        (b"lib/x86_64/libfoo.so.1", "lib/x86_64/libfoo.so.1"),
        ("/tmp/für".encode(), "/tmp/für"),
        (b'"""The memory is used for something else by now."""', None),
        (b"two words", None),
        (b"/a\x1b[31m", None),
        (b"/not-utf8-\xff", None),
        (b"", None),
    ],
)
def test_what_does_not_look_like_a_path_is_none(memory, path):
    """The thread has run on since it asked: what lies there may be anything."""
    buffer = ctypes.create_string_buffer(memory)
    fd = os.open("/proc/self/mem", os.O_RDONLY)
    try:
        assert peek_paths._string_at(fd, ctypes.addressof(buffer)) == path
    finally:
        os.close(fd)
