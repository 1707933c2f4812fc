"""Steps and the rate, of a clock that a test sets, and of the real one with OPSKIT_TEST_HOST=1."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from setclock import SetClock

from opskit.collect.clock import steps as module
from opskit.collect.clock.steps import StepWatch
from opskit.host import Host
from opskit.proc.fs import ProcFS


@pytest.fixture
def clocks(monkeypatch):
    def make(*given, **options):
        made = SetClock(*given, **options)
        monkeypatch.setattr(module, "read_pair", made.read)
        return made

    return make


def test_a_step_ends_the_wait(clocks):
    """It is seen within a tenth of a second, with its size and time."""
    made = clocks([(101.23, 10_000_000)])
    watch = StepWatch(made.host)
    watch.watch(102.0)
    assert made.now_s == pytest.approx(101.3)
    [step] = watch.steps
    assert (step.by_s, step.at_s) == (0.01, pytest.approx(1.3))
    watch.watch(102.0)
    assert (made.now_s, len(watch.steps)) == (pytest.approx(102.0), 1)


def test_steps_back_and_forth(clocks):
    """Both are listed."""
    watch = StepWatch(clocks([(100.5, -3600 * 10**9), (101.5, 3600 * 10**9)]).host)
    for _ in range(3):
        watch.watch(102.0)
    assert [step.by_s for step in watch.steps] == [-3600.0, 3600.0]


def test_small_steps_add_up(clocks):
    """Ten of 0.2 ms are one of more than 1 ms."""
    watch = StepWatch(clocks([(100 + number / 2, 200_000) for number in range(1, 11)]).host)
    while watch.watched_s < 6:
        watch.watch(106.0)
    assert [round(step.by_s, 6) for step in watch.steps] == [0.0012]


def test_what_is_no_step(clocks):
    """Below a millisecond: the noise of the reads."""
    made = clocks([(101.0, 900_000)])
    watch = StepWatch(made.host)
    watch.watch(105.0)
    assert not watch.steps
    assert made.now_s >= 105.0


@pytest.mark.parametrize(("is_due", "by_s", "is_leap"), [(True, -1, True), (True, -1.5, False), (False, -1, False)])
def test_a_leap_second(clocks, is_due, by_s, is_leap):
    """A step of a second where one was announced."""
    watch = StepWatch(clocks([(101.0, round(by_s * 1e9))]).host)
    watch.is_leap = is_due
    watch.watch(102.0)
    assert [step.in_leap_second for step in watch.steps] == [is_leap]


def test_the_rate_needs_ten_seconds(clocks):
    """Then it is that of the last minute."""
    made = clocks(ppm=120.0)
    watch = StepWatch(made.host)
    watch.watch(109.0)
    assert watch.rate() is None
    watch.watch(111.0)
    assert watch.rate().ppm == pytest.approx(120.0, abs=0.1)
    watch.watch(300.0)
    assert watch.rate().ppm == pytest.approx(120.0, abs=0.1)
    assert 55 < watch.rate().window_s < 62


def test_a_thousand_steps_are_bounded(clocks):
    """The last hundred are kept."""
    watch = StepWatch(clocks([(100 + number, 10**9) for number in range(1, 300)]).host)
    while watch.watched_s < 300:
        watch.watch(400.0)
    assert (len(watch.steps), watch.total) == (100, 299)


def test_a_clock_that_is_set_all_the_time(clocks):
    """Ten looks a second, however often it is set."""
    made = clocks([(100 + number / 100, 10**9) for number in range(1, 1000)])
    watch = StepWatch(made.host)
    looks = 0
    while made.now_s < 105:
        watch.watch(120.0)
        looks += 1
    assert looks == pytest.approx(50, abs=1)


@given(st.lists(st.integers(-(10**12), 10**12), max_size=5))
def test_the_steps_sum_up(sets):
    """To the whole change, but for what is below a millisecond."""
    made = SetClock([(101.0 + number, by_ns) for number, by_ns in enumerate(sets)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "read_pair", made.read)
        watch = StepWatch(made.host)
        while watch.watched_s < 8:
            watch.watch(108.0)
    assert sum(step.by_s for step in watch.steps) == pytest.approx(sum(sets) / 1e9, abs=0.0011)


@pytest.mark.xdist_group("clock")
@pytest.mark.skipif(
    not os.environ.get("OPSKIT_TEST_HOST"), reason="sets the clock of this machine; OPSKIT_TEST_HOST=1 allows it"
)
def test_a_real_step_of_ten_milliseconds(root_only):
    """It is seen within 0.2 s, and put back."""

    def set_by(seconds):
        time.clock_settime_ns(time.CLOCK_REALTIME, time.clock_gettime_ns(time.CLOCK_REALTIME) + round(seconds * 1e9))

    def step_later():
        time.sleep(0.33)
        set_by(0.01)
        return time.monotonic()

    for _ in range(3):
        watch = StepWatch(Host(ProcFS()))
        with ThreadPoolExecutor(1) as pool:
            setting = pool.submit(step_later)
            watch.watch(time.monotonic() + 3)
            seen_s = time.monotonic()
        set_by(-0.01)
        watch.watch(time.monotonic() + 0.5)
        assert [round(step.by_s, 3) for step in watch.steps] == [0.01, -0.01]
        if seen_s - setting.result() < 0.2:
            return
    pytest.fail("each time it was seen later than after 0.2 s")
