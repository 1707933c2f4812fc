"""CPU time and waits of a thread, from schedstat."""

from __future__ import annotations

import pytest

from opskit.errors import BadInput
from opskit.proc.files.schedstat import parse_schedstat


def test_schedstat_is_in_nanoseconds():
    """The first two numbers become ms; what is missing is unknown; other text raises BadInput."""
    assert parse_schedstat("10385712 62103 31\n") == (10.385712, 0.062103, 31)
    assert parse_schedstat("10385712\n") == (10.385712, None, None)
    for text in ("", "x 1 2\n"):
        with pytest.raises(BadInput):
            parse_schedstat(text)
