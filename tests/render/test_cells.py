"""Cells that several views share."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from opskit.quantities import percent, plain
from opskit.render.cells import or_dash, rate_at, rate_field, rate_text, row_limit, share_field

ROW = SimpleNamespace(part=SimpleNamespace(calls=1_903_808.274, switches=0.456, share=0.81234, unknown=None))


def test_text_prints_large_rates_in_full():
    """No exponent: awk and people see each digit."""
    assert plain(rate_at("part.calls")(ROW)) == "1903808"
    assert plain(rate_at("part.switches")(ROW)) == "0.46"
    assert plain(rate_at("part.unknown")(ROW)) == "-"


@pytest.mark.parametrize(
    ("per_s", "said"), [(None, "-"), (0.0, "0"), (0.04, "0.0"), (4.51, "4.5"), (9.97, "10"), (13270.6, "13,271")]
)
def test_rates_of_a_table(per_s, said):
    """One digit after the point where the number is small."""
    assert rate_text(per_s) == said


def test_fields_of_a_part():
    """The value is rounded for JSON; what is unknown is null there, and a dash in a cell."""
    share, unknown = share_field("share", "share", "part.share"), rate_field("unknown_per_s", "u/s", "part.unknown")
    assert (share.value(ROW), share.human(ROW)) == (0.8123, "81 %")
    assert (unknown.value(ROW), unknown.human(ROW)) == (None, "-")
    assert [or_dash(percent)(value) for value in (None, 0.0)] == ["-", "0 %"]


@pytest.mark.parametrize(
    ("top", "most", "limit"), [(None, 10, 10), (None, None, None), (0, 10, None), (3, 10, 3), (30, 10, 30)]
)
def test_how_many_rows(top, most, limit):
    """-n 0 is all; without -n it is up to the view."""
    assert row_limit(top, most) == limit
