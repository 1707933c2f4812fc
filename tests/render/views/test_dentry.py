"""How the dentry cache is drawn and shown."""

from __future__ import annotations

from dentrytrees import facts_of

from opskit.analysis.dentry.judge import Result, judge
from opskit.analysis.dentry.lookups import Looker, Lookups
from opskit.analysis.dentry.usage import WATCHED, Sample
from opskit.render.formats.text import block_lines
from opskit.render.report import About
from opskit.render.views import dentry as view

ABOUT = About("host", "2026-01-02T03:04:05Z", "1", "opskit dentry")


def sample(at_s, **sizes):
    return Sample(at_s, dict.fromkeys(WATCHED, 7), sizes)


def result(**slabs):
    return judge(facts_of(None, [(name, 1, pages) for name, pages in slabs.items()]))


def test_bars_now():
    """The largest slabs, plain sizes, empty ones left out."""
    chart = view.report(ABOUT, result(filp=2, dentry=3, task_struct=0), None).chart()
    assert list(chart.bars) == [("dentry", 3 * 4096), ("filp", 2 * 4096)]
    assert not chart.signed


def test_lines_are_chosen_by_their_peaks_and_dentry_is_always_there():
    """A slab that was large in between is drawn; so are the dentries, however few."""
    names = [f"slab{number}" for number in range(9)]
    samples = (
        sample(0.0, dentry=1, bump=5, **dict.fromkeys(names, 10)),
        sample(1.0, dentry=1, bump=99, **dict.fromkeys(names, 10)),
        sample(2.0, dentry=1, bump=0, **dict.fromkeys(names, 10)),
    )
    chart = view.report(ABOUT, result(dentry=1)._replace(samples=samples), 0).chart()
    assert chart.lines[0].name == "bump"
    assert list(chart.lines[0].points) == [(0.0, 5), (1.0, 99), (2.0, 0)]
    assert [line.name for line in chart.lines].count("dentry") == 1
    assert len(chart.lines) == 9


def test_a_watch_in_text_has_stable_columns():
    """A header and a row with as many words, a dash for an unknown value."""
    growth = dict.fromkeys(WATCHED) | {"dentries": 1.6}
    watched = result(dentry=1)._replace(samples=(sample(1.25),), growth=growth)
    head, row = view.report(ABOUT, watched, None).text()
    assert len(head.split()) == len(row.split()) == 1 + 2 * len(WATCHED)
    assert row.split()[0] == "1.2"
    assert row.split()[1 + len(WATCHED)] == "2"
    assert row.split()[-1] == "-"


def test_an_ended_process_has_a_number_for_awk_and_a_word_for_people():
    """`43` and `43 ended`; `-` and `ended` for several processes in one row."""
    lookers = [Looker(pid, "curl", None, None, 1, 9, 1.5, 0.5, {"openat": 9}, ended=True) for pid in (43, None)]
    seen = Lookups(1.0, 18, 18, "perf", False, tuple(lookers))
    block = view.report(ABOUT, Result(result(dentry=1).usage, [], lookups=seen), None).blocks[0]
    assert [block.columns[0].human(row) for row in lookers] == ["43 ended", "ended"]
    assert [line.split()[:4] for line in block_lines(block)][1:] == [["43", "9", "2", "50.0"], ["-", "9", "2", "50.0"]]
