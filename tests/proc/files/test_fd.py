"""fdinfo: `key: value` lines."""

from __future__ import annotations

import pytest

from opskit.errors import BadInput
from opskit.proc.files.fd import parse_epoll, parse_fdinfo


def test_the_fields():
    assert parse_fdinfo("pos:\t0\nflags:\t02004002\nmnt_id:\t15\n") == {"pos": "0", "flags": "02004002", "mnt_id": "15"}


def test_lines_without_a_colon_are_left_out():
    assert parse_fdinfo("pos:\t7\ntfd 3\n") == {"pos": "7"}


@pytest.mark.parametrize("text", ["", "\n", "pos\t0\n"])
def test_no_field_at_all_is_refused(text):
    with pytest.raises(BadInput, match="no `key: value` line"):
        parse_fdinfo(text)


def test_what_an_epoll_watches():
    """The fds with their events, with or without the inode; lines of another form are left out."""
    text = (
        "pos:\t0\nflags:\t02\n"
        "tfd:        5 events:       1d data: ffffffffffffffff  pos:0 ino:61af sdev:7\n"
        "tfd: 12345678 events: 80000019 data:                5\n"
        "tfd:        x events:       1d data: 1\ntfd:\ntfd: 3 events: zz\n"
    )
    assert parse_epoll(text) == [(5, 0x1D, 0x61AF), (12345678, 0x80000019, None)]
    assert parse_epoll("") == []
