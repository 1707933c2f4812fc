"""The clock of a capture: it goes from sample to sample, and never counts one twice."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opskit.collect.schedule import schedule_of_capture
from opskit.collect.windows import Windows, uneven_moments
from opskit.errors import NoMoreSamples, NotSupported
from opskit.proc.recorded.clock import TapeClock
from opskit.proc.recorded.tape import Mark, Origin, Tape
from opskit.recorded_host import RecordedHost

gaps = st.lists(st.floats(0.01, 30), min_size=1, max_size=12)
seconds = st.floats(0.001, 60)


def marks_of(between):
    times = [1000.0]
    for gap in between:
        times.append(times[-1] + gap)
    return tuple(Mark(1_700_000_000 + each, each) for each in times)


def host_of(*between):
    return RecordedHost(Tape(Origin(), marks_of(between)), path="x.tar.gz")


@settings(max_examples=50, deadline=None)
@given(gaps, st.lists(seconds, max_size=20))
def test_sleeps_go_forward_to_recorded_times(between, sleeps):
    """The clock shows recorded times alone, never goes back, and ends with an error behind the last sample."""
    marks = marks_of(between)
    clock = TapeClock(list(marks))
    for each in sleeps:
        before = clock.mark
        try:
            clock.sleep(each)
        except NoMoreSamples:
            assert before == len(marks) - 1
            break
        assert clock.mark >= before
        assert clock.monotonic() == marks[clock.mark].monotonic_s
        assert clock.now().timestamp() == pytest.approx(marks[clock.mark].wall_s, abs=1e-5)


@settings(max_examples=50, deadline=None)
@given(gaps, seconds)
def test_a_first_sleep_goes_on(between, sleep_s):
    """The first sleep of a command leads to another sample, the one that is nearest to its end."""
    clock = TapeClock(list(marks_of(between)))
    clock.sleep(sleep_s)
    times = [mark.monotonic_s for mark in marks_of(between)][1:]
    assert abs(clock.monotonic() - 1000 - sleep_s) == min(abs(each - 1000 - sleep_s) for each in times)


@settings(max_examples=50, deadline=None)
@given(gaps, seconds, st.floats(0.001, 5))
def test_looks_within_a_window_are_at_different_samples(between, window_s, step_s):
    """However often a collector wants to look, each look is at a sample of its own, and the last one ends the window."""
    host = host_of(*between)
    end_s = host.end_of(window_s)
    looks = [host.monotonic() for _ in uneven_moments(host, step_s, end_s)]
    assert looks == sorted(set(looks))
    assert host.monotonic() == end_s > 1000


@settings(max_examples=50, deadline=None)
@given(gaps, seconds)
def test_windows_of_a_watch_follow_each_other(between, window_s):
    """The windows end at samples until there is none; none is empty."""
    host = host_of(*between)
    windows, begun = Windows(host, window_s, watch=True), [host.monotonic()]
    with suppress(NoMoreSamples):
        while True:
            host.sleep(windows.end_s(begun[-1]) - host.monotonic())
            begun.append(host.monotonic())
            windows.look_done(begun[-1])
    assert begun == sorted(set(begun))
    assert begun[-1] == marks_of(between)[-1].monotonic_s


@settings(max_examples=50, deadline=None)
@given(gaps)
def test_a_watch_shows_each_sample_once(between):
    """Without -i every sample is shown, then the watch ends."""
    host, seen = host_of(*between), []
    with suppress(NoMoreSamples):
        for number, late_s in schedule_of_capture(host, 0.0, None):
            seen.append((number, late_s, host.clock.mark))
    assert seen == [(each + 1, 0.0, each) for each in range(len(between) + 1)]


@settings(max_examples=50, deadline=None)
@given(gaps, seconds, st.integers(1, 5))
def test_a_watch_with_an_interval_shows_no_sample_twice(between, interval_s, count):
    """-i chooses among the samples; -c ends the watch earlier."""
    host, seen = host_of(*between), []
    try:
        for _ in schedule_of_capture(host, interval_s, count):
            seen.append(host.clock.mark)
    except NoMoreSamples:
        assert seen[-1] == len(between)
    assert seen == sorted(set(seen))
    assert len(seen) <= count


def test_looks_that_have_a_window_of_their_own_are_not_moved_on():
    """A watch sleeps only where the look itself did not."""
    host, seen = host_of(1, 1, 1), []
    with suppress(NoMoreSamples):
        for _ in schedule_of_capture(host, 0.0, None):
            host.sleep(host.end_of(1.0) - host.monotonic())
            seen.append(host.clock.mark)
    assert seen == [1, 2, 3]


def test_one_sample_has_no_rates():
    """The message names the file, and says what is needed."""
    host = host_of()
    for ask in (lambda: host.sleep(1), lambda: host.end_of(1), lambda: host.prove_moving("-w")):
        with pytest.raises(NotSupported, match=r"the capture x.tar.gz has 1 sample: rates need two; capture with -c 2"):
            ask()


def test_the_end_of_a_capture_is_named():
    """Behind the last of several samples the message says how to get more."""
    host = host_of(1.0)
    host.sleep(1)
    with pytest.raises(NoMoreSamples, match=r"has 2 samples and ends here: capture more of them with -c"):
        host.sleep(1)


def test_a_capture_of_a_copy_says_so():
    """A copy has no rates, however many samples are asked of it."""
    host = RecordedHost(Tape(Origin(is_live=False), marks_of([1.0])), path="x.tar.gz")
    with pytest.raises(NotSupported, match=r"-w: x.tar.gz is a capture of a copy, which has no rates"):
        host.prove_moving("-w")


def test_short_looks_need_samples_that_close():
    """A second look after 10 ms is not made with the sample of a second later."""
    assert not host_of(1.0).can_look_after(0.01)
    assert host_of(0.03).can_look_after(0.01)
    assert not host_of().can_look_after(10)


def test_a_thread_has_its_own_time():
    """It begins where the thread is that opened the capture, and moves that one no further."""
    clock, seen = TapeClock(list(marks_of([1, 1, 1]))), []
    clock.sleep(1)

    def run():
        seen.append(clock.mark)
        clock.sleep(1)
        seen.append(clock.mark)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert (seen, clock.mark) == ([1, 2], 1)
    clock.rewind()
    assert clock.mark == 0


@pytest.mark.parametrize(("between", "gap_s"), [((), 0.0), ((1.0,), 1.0), ((1.0, 5.0, 2.0), 2.0)])
def test_the_gap_between_samples(between, gap_s):
    """The median, which a late sample does not change."""
    assert host_of(*between).sample_gap_s == gap_s
