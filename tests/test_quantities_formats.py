"""Numbers as people and programs read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.quantities import percent, twelve_digits


def test_what_is_left_of_rounding_is_not_told():
    """In floats wherever they stand; nothing else is touched."""
    noisy = {"sum": 0.1 + 0.2, "rows": [{"at": 0.0025662980000000016, "name": "x", "n": 10**17}, None, True]}
    assert twelve_digits(noisy) == {"sum": 0.3, "rows": [{"at": 0.002566298, "name": "x", "n": 10**17}, None, True]}


@given(st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False))
def test_the_value_stays(value):
    """To a millionth of a millionth."""
    assert twelve_digits(value) == pytest.approx(value, rel=1e-11)


@pytest.mark.parametrize(
    ("share", "shown"),
    [(None, "unknown"), (0.0, "0 %"), (0.0001, "under 0.1 %"), (0.003, "0.3 %"), (0.49, "49 %"), (0.994, "99 %"),
     (0.9951, "99.5 %"), (0.99999, "99.9 %"), (1.0, "100 %"), (1.2, "120 %")],
)  # fmt: skip
def test_shares(share, shown):
    """Neither nothing nor all unless it is."""
    assert percent(share) == shown
