"""How the dentry cache is drawn and told."""

from __future__ import annotations

from opskit.analysis.dentry import WATCHED, Facts, Sample, classify
from opskit.proc.files.slabinfo import Slab
from opskit.render.views import dentry as view


def sample(at_s, **sizes):
    return Sample(at_s, dict.fromkeys(WATCHED, 7), sizes)


def facts(**slabs):
    return Facts(None, classify([Slab(name, 1, 1, 1, pages, 1) for name, pages in slabs.items()], {}, 1), {})


def test_bars_now():
    """The largest slabs, plain sizes, empty ones left out."""
    chart = view.chart(facts(filp=2, dentry=3, task_struct=0), [], 10)
    assert list(chart.bars) == [("dentry", 3), ("filp", 2)]
    assert not chart.signed


def test_lines_are_chosen_by_their_peaks_and_dentry_is_always_there():
    """A slab that was large in between is drawn; so are the dentries, however few."""
    names = [f"slab{number}" for number in range(9)]
    samples = [
        sample(0.0, dentry=1, bump=5, **dict.fromkeys(names, 10)),
        sample(1.0, dentry=1, bump=99, **dict.fromkeys(names, 10)),
        sample(2.0, dentry=1, bump=0, **dict.fromkeys(names, 10)),
    ]
    chart = view.chart(facts(dentry=1), samples, None)
    assert chart.lines[0].name == "bump"
    assert list(chart.lines[0].points) == [(0.0, 5), (1.0, 99), (2.0, 0)]
    assert [line.name for line in chart.lines].count("dentry") == 1
    assert len(chart.lines) == 9


def test_a_watch_in_text_has_stable_columns():
    """A header and a row with as many words, a dash for what is not known."""
    growth = dict.fromkeys(WATCHED) | {"dentries": 1.6}
    head, row = view.watch_lines([sample(1.25)], growth)
    assert len(head.split()) == len(row.split()) == 1 + 2 * len(WATCHED)
    assert row.split()[0] == "1.2"
    assert row.split()[1 + len(WATCHED)] == "2"
    assert row.split()[-1] == "-"


def looker(pid, paths=()):
    return view.LookerRow(pid, "curl", "root", None, 3, 900, 450.0, 0.9, {"openat": 900}, paths, pid in (None, 43))


def test_the_culprits_sentences():
    """Who, how much, what for, and what to type; for processes that have ended, how many they were."""
    lines = view.culprit_lines([looker(42, ("/a", "/b"))], 2.0, 1000, 500)
    assert lines == [
        "curl (42) made 90 % of the 1,000 failed lookups in 2.0 s: 450 a second; negative entries grew by 500 meanwhile.",
        "It looks for names like /a, /b",
        "See all paths: strace -f -Z -e trace=%file -p 42",
    ]
    assert view.culprit_lines([looker(None)], 2.0, 1000, -5) == [
        "curl (3 processes, ended) made 90 % of the 1,000 failed lookups in 2.0 s: 450 a second; "
        "negative entries shrank by 5 meanwhile."
    ]
    assert view.culprit_lines([looker(43)], 2.0, 1000, None) == [
        "curl (43, ended) made 90 % of the 1,000 failed lookups in 2.0 s: 450 a second."
    ]
    assert "No lookup failed in 2.0 s" in view.culprit_lines([], 2.0, 0, None)[0]
