"""Times on the command line, and which stops lie between two of them."""

from __future__ import annotations

import pytest

from opskit.analysis.moments import Moment, moment_of
from opskit.analysis.safepoints.stops import Window
from opskit.jvm.logs.timestamps import parse_stamp


@pytest.mark.parametrize(("text", "moment"), [
    ("90s", Moment(90.0, "uptime")),
    ("2h", Moment(7200.0, "uptime")),
    ("0", Moment(0.0, "uptime")),
    ("2026-01-31", Moment(1769817600.0, "local")),
    ("2026-01-31T10:05", Moment(1769853900.0, "local")),
    ("2026-01-31 10:05:00,5", Moment(1769853900.5, "local")),
    ("2026-01-31T10:05:00Z", Moment(1769853900.0, "utc")),
    ("2026-01-31T11:05+0100", Moment(1769853900.0, "utc")),
    ("yesterday", None),
    ("2026-13-01T00:00", None),
    ("2026-02-31", None),
    ("", None),
])  # fmt: skip
def test_a_time_is_an_uptime_or_a_date(text, moment):
    """A date without a zone is in the log's own; anything else is refused."""
    assert moment_of(text) == moment


def test_a_window_compares_on_the_clock_that_was_named():
    """Both ends belong to it; None where the stamp has no such clock."""
    stamp = parse_stamp(b"2026-01-31T10:05:00.000+0100: 4.000: ")
    assert Window(Moment(4.0, "uptime")).holds(stamp) is True
    assert Window(None, Moment(3.9, "uptime")).holds(stamp) is False
    assert Window(moment_of("2026-01-31T10:05"), moment_of("2026-01-31T09:05Z")).holds(stamp) is True
    assert Window(moment_of("2026-01-31T10:05")).holds(parse_stamp(b"4.000: ")) is None
    assert Window().holds(stamp) is True
