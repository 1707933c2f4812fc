"""Offsets of time namespaces."""

from __future__ import annotations

import pytest

from opskit.errors import BadInput
from opskit.proc.files.timens_offsets import parse_timens_offsets


def test_offsets_with_their_sign():
    """Seconds and nanoseconds; a negative number of seconds has a positive rest."""
    assert parse_timens_offsets("monotonic           0         0\nboottime            0         0\n") == (0, 0)
    assert parse_timens_offsets("monotonic      86400         0\nboottime        -10 500000000\n") == (86400, -9.5)


@pytest.mark.parametrize(
    "text", ["", "monotonic 0 0\n", "monotonic x 0\nboottime 0 0\n", "monotonic 1\nboottime 0 0\n"]
)
def test_other_text(text):
    """Raises BadInput."""
    with pytest.raises(BadInput):
        parse_timens_offsets(text)
