"""How fast headroom shrinks, and when none is left."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from opskit.analysis.limits.judge import HeadroomSample, LimitsResult, trend
from opskit.render.views.limits import trend_line


def line(found):
    return trend_line(LimitsResult(None, None, None, [], found, trend(found)))


def samples(*left, binding="pids.max"):
    return [HeadroomSample(10.0 * number, count, binding, None) for number, count in enumerate(left)]


def test_a_steady_loss():
    """Ten a sample of ten seconds: -60 a minute, and 70 are gone in 70 s."""
    found = trend(samples(100, 90, 80, 70))
    assert (round(found.per_min, 6), round(found.zero_in_s, 6)) == (-60, 70)
    assert line(samples(100, 90, 80, 70)) == (
        "after 30 s: 100 -> 70 threads left (-60.0 a minute); none left in 70.0 s at this rate"
    )


def test_what_does_not_shrink_does_not_run_out():
    """Level or growing."""
    assert trend(samples(5, 5, 5)).zero_in_s is None
    assert trend(samples(5, 9)).zero_in_s is None
    assert "does not run out" in line(samples(5, 9))
    assert trend(samples(5, 0)).zero_in_s == 0


def test_one_sample_has_no_rate():
    """Nor do looks that another limit bound."""
    assert trend(samples(5)) is None
    assert trend([]) is None
    assert trend([*samples(500, 400, binding="RLIMIT_AS"), HeadroomSample(30.0, 9, "pids.max", None)]) is None
    assert trend([HeadroomSample(0.0, None, None, None)]) is None


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=20))
def test_zero_is_never_foreseen_in_the_past(left):
    """Whatever was seen."""
    found = trend(samples(*left))
    assert found.zero_in_s is None or found.zero_in_s >= 0
