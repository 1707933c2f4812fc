"""What the hardware clock keeps."""

from __future__ import annotations

import pytest

from opskit.proc.config.adjtime import parse_rtc_zone


@pytest.mark.parametrize(
    ("text", "keeps"),
    [
        ("0.0 0 0.0\n0\nUTC\n", "UTC"),
        ("0.0 0 0.0\n0\nLOCAL", "LOCAL"),
        ("0.0 0 0.0\n", None),
        ("", None),
        ("\n\nutc\n", None),
    ],
)
def test_the_third_line(text, keeps):
    """UTC or LOCAL; anything else is unknown."""
    assert parse_rtc_zone(text) == keeps
