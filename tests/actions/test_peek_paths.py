"""Paths read from the memory of a process."""

from __future__ import annotations

import ctypes
import os
import struct

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
        (b"d\0\0\0", None),
        (b"ab", "ab"),
        (b"/a\x1b[31m", None),
        (b"/not-utf8-\xff", None),
        (b"", None),
    ],
)
def test_what_does_not_look_like_a_path_is_none(memory, path):
    """The thread has continued since the call: the memory may hold anything."""
    buffer = ctypes.create_string_buffer(memory)
    fd = os.open("/proc/self/mem", os.O_RDONLY)
    try:
        assert peek_paths._string_at(fd, ctypes.addressof(buffer)) == path
    finally:
        os.close(fd)


def record(kind, number, address=None):
    raw = struct.pack("=HHIQ", number, 0, 1, 0) + (
        struct.pack("=Q", address) if address is not None else struct.pack("=q", -2)
    )
    body = struct.pack("=I", len(raw)) + raw + bytes(4)
    return struct.pack("=IHH", kind, 0, 8 + len(body)) + body


def test_the_address_of_the_last_call_that_failed():
    """The entry right before the last recorded exit; None for records that are too short."""
    entered, left, lost = (lambda at: record(9, 7, at)), record(9, 8), record(2, 7, 5)
    assert peek_paths._last_address(entered(10) + left + entered(11) + entered(12) + left + entered(13), 7, 16) == 12
    assert peek_paths._last_address(left + entered(11) + lost, 7, 16) is None
    assert peek_paths._last_address(entered(11) + left, 7, 4000) is None
    assert peek_paths._last_address(b"", 7, 16) is None
