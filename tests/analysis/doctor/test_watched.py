"""What came and went in a watch of doctor."""

from __future__ import annotations

from doctorresults import AT_S, DEADLOCK, PIPE, THREADS, THROTTLED, TTSP, found, process, seen

from opskit.analysis.doctor.judge import judge
from opskit.analysis.doctor.watched import Tracker, key_of


def follow(*samples, shown_s=60.0, step_s=10.0):
    """The states after these samples: each a tuple of findings, or a Seen."""
    tracker = Tracker(shown_s)
    states = []
    for at, sample in enumerate(samples):
        one = sample if hasattr(sample, "checked") else seen(*sample)
        states.append(tracker.update(judge(one._replace(at_s=AT_S + at * step_s))))
    return states


def codes(items):
    return [(each.finding if hasattr(each, "finding") else each).code for each in items]


def test_the_first_sample_has_nothing_new():
    """What it finds may stand for longer, and is never marked."""
    first, second = follow((DEADLOCK,), (DEADLOCK,))
    assert (first.came, first.went, first.new, first.gone) == ((), (), frozenset(), ())
    assert second.new == frozenset()
    assert second.since_s[key_of(DEADLOCK)] == AT_S
    assert [(each.samples, each.times, each.gone_s) for each in second.history] == [(2, 1, None)]


def test_one_comes_and_another_goes():
    """With the times of the samples that saw it; after a while neither is marked."""
    _, second, third = follow((DEADLOCK,), (PIPE,), (PIPE,), step_s=40.0)
    assert (codes(second.came), codes(second.went)) == ([PIPE.code], [DEADLOCK.code])
    assert second.new == {key_of(PIPE)}
    assert [(each.finding, each.since_s, each.gone_s) for each in second.gone] == [(DEADLOCK, AT_S, AT_S + 40)]
    assert (third.came, third.went, codes(third.gone)) == ((), (), [DEADLOCK.code])
    *_, last = follow((DEADLOCK,), (PIPE,), (PIPE,), (PIPE,), step_s=40.0)
    assert (last.new, last.gone) == (frozenset(), ())
    assert sorted(codes(last.history)) == sorted([PIPE.code, DEADLOCK.code])


def test_the_same_finding_with_other_numbers():
    """Code and entity make it the same; the summary is the last one."""
    more = THROTTLED._replace(summary="25393 (billing) is throttled in 71 % of the periods", share=0.71)
    _, second = follow((THROTTLED,), (more,))
    assert (second.came, second.went, second.gone) == ((), (), ())
    assert [each.finding.share for each in second.history] == [0.71]


def test_one_that_flickers():
    """It is in the list or gone, never both, and it stands since its first time."""
    states = follow((THREADS,), (), (THREADS,), (), (THREADS,))
    for at, state in enumerate(states):
        is_there = at % 2 == 0
        assert (key_of(THREADS) in state.since_s, codes(state.gone)) == (is_there, [] if is_there else [THREADS.code])
        assert len(state.history) == 1
    assert states[-1].since_s[key_of(THREADS)] == AT_S
    assert (states[-1].history[0].times, codes(states[-1].came)) == (3, [THREADS.code])


def test_one_that_comes_back_after_long_is_new():
    """Its time counts from then on."""
    *_, last = follow((THREADS,), (), (), (THREADS,), step_s=50.0)
    assert last.new == {key_of(THREADS)}
    assert last.since_s[key_of(THREADS)] == AT_S + 150


def test_an_effect_is_not_gone():
    """A problem whose cause is found later is explained by it. What was only an effect is not listed as gone."""
    _, second, third = follow((TTSP,), (TTSP, THROTTLED), ())
    assert (codes(second.came), second.went) == ([THROTTLED.code], ())
    assert sorted(codes(third.went)) == sorted([THROTTLED.code, TTSP.code])
    _, second = follow((TTSP, THROTTLED), ())
    assert codes(second.went) == [THROTTLED.code]


def test_what_was_not_checked_is_not_gone():
    """Its check came too late this time: nothing is known about it."""
    late = seen(names=("pipes", "limits"))
    _, second, third = follow((DEADLOCK,), late, ())
    assert (second.went, second.gone) == ((), ())
    assert codes(third.went) == [DEADLOCK.code]


def test_very_many_are_forgotten():
    """Those that went first; those that stand stay."""
    many = [found("major-faults", process(pid)) for pid in range(100_000, 110_040)]
    first, last = follow(many, many[-1:])
    assert (len(first.since_s), len(last.since_s)) == (10_040, 1)
    assert len(last.history) <= 10_000
