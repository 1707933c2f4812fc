"""The looks that a watch keeps: bounded, the newest whole."""

from __future__ import annotations

import memfacts

from opskit.analysis.mem.samples import add_sample


def test_a_long_watch_keeps_the_first_and_the_newest_looks():
    """The number is bounded, their order stays, and only the last one has its mapped files."""
    looks = []
    for at in range(5000):
        add_sample(looks, memfacts.facts(at_s=float(at)))
    times = [look.at_s for look in looks]
    assert times[0] == 0.0
    assert times[-400:] == [float(at) for at in range(4600, 5000)]
    assert times == sorted(times)
    assert 500 < len(looks) <= 1000
    assert looks[-1].parts == memfacts.PARTS
    assert not any(look.parts for look in looks[:-1])
