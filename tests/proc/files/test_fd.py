"""fdinfo: `key: value` lines."""

from __future__ import annotations

import pytest

from opskit.errors import BadInput
from opskit.proc.files.fd import parse_fdinfo


def test_the_fields():
    assert parse_fdinfo("pos:\t0\nflags:\t02004002\nmnt_id:\t15\n") == {"pos": "0", "flags": "02004002", "mnt_id": "15"}


def test_lines_without_a_colon_are_left_out():
    assert parse_fdinfo("pos:\t7\ntfd 3\n") == {"pos": "7"}


@pytest.mark.parametrize("text", ["", "\n", "pos\t0\n"])
def test_no_field_at_all_is_refused(text):
    with pytest.raises(BadInput, match="no `key: value` line"):
        parse_fdinfo(text)
