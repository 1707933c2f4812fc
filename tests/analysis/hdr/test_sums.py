"""Sums of intervals: series by file and tag, merged, in windows and periods; what is not added, and limits on hostile logs."""

from __future__ import annotations

import math
import resource
import subprocess
import sys
from pathlib import Path

import hdrlogs
import pytest
from hdrlogs import BEGIN_S, header, histogram, line
from hypothesis import given, settings
from hypothesis import strategies as st

from opskit.analysis.hdr import sums as module
from opskit.analysis.hdr.result import PERCENTS
from opskit.analysis.hdr.sums import Choice, Sums
from opskit.analysis.moments import moment_of
from opskit.errors import BadInput, UsageError
from opskit.jvm.logs.hdr.lines import Bad, Log
from opskit.jvm.logs.hdr.spectrum import Spectrum


def summed(*logs, **choice):
    """The sums of logs: each is its text, under the names a, b, c."""
    sums = Sums(Choice(**choice))
    for name, text in zip("abc", logs):
        for found in Log(name).read([text]):
            assert not isinstance(found, Bad), found
            sums.add(found)
    return sums


def rows(sums):
    """File, tag, intervals and total of each series."""
    return [(each.files, each.tag, each.intervals, each.values.total) for each in sums.series()]


def log(*lines, start_s=BEGIN_S):
    """A log's text."""
    return header(start_s) + b"".join(lines)


ONE, TWO = histogram([0, 1]), histogram([0, 0, 2])
TAGGED = log(line(ONE, 0, tag="A"), line(TWO, 0, tag="B"), line(ONE, 1), line(ONE, 1, tag="A"))


def test_a_series_for_each_file_and_tag():
    """In the order of their first interval."""
    expected = [(("a",), "A", 2, 2), (("a",), "B", 1, 2), (("a",), None, 1, 1), (("b",), None, 1, 1)]
    assert rows(summed(TAGGED, log(line(ONE)))) == expected


def test_ignore_tags_and_merge():
    """One series for each file; one over all of them."""
    assert rows(summed(TAGGED, log(line(ONE)), ignore_tags=True)) == [(("a",), None, 4, 5), (("b",), None, 1, 1)]
    assert rows(summed(TAGGED, log(line(ONE)), merge=True)) == [(("a", "b"), None, 5, 6)]


def test_tags_are_chosen_by_an_expression():
    """It is searched in the tag; no tag is an empty one. What else there is stays known."""
    sums = summed(TAGGED, tags="^[AC]|^$")
    assert [row[1:] for row in rows(sums)] == [("A", 2, 2), (None, 1, 1)]
    assert (sums.intervals, sums.other_tags, sums.tags) == (3, 1, ["A", "B", None])
    with pytest.raises(UsageError, match=r"'\(' is not a regular expression"):
        Sums(Choice(tags="("))


@pytest.mark.parametrize(
    ("since", "until", "total"),
    [
        ("2", None, 4), (None, "2", 2), ("2s", "4s", 2), ("2023-11-14T22:13:22Z", None, 4), ("2023-11-14T22:13:23", None, 3),
        ("2023-11-14T23:13:23+0100", None, 3), (None, "2023-11-14", 0),
    ],
)  # fmt: skip
def test_window(since, until, total):
    """By the time since the log's start or by date; an interval counts that begins within."""
    text = log(*(line(ONE, second) for second in range(6)))
    sums = summed(text, since=since and moment_of(since), until=until and moment_of(until))
    assert (sums.intervals, sums.outside) == (total, 6 - total)


def test_a_date_needs_dates():
    """A log without them is refused, not left out silently."""
    with pytest.raises(BadInput, match="a:1: the log has no date to compare with"):
        summed(line(ONE, 1), since=moment_of("2023-11-14"))


def test_times_and_throughput():
    """The time covered is that of the intervals, not of the gaps between them."""
    (series,) = summed(log(line(TWO, 0, 1), line(TWO, 5, 1))).series()
    assert (series.dated, series.begin_s, series.end_s) == (True, BEGIN_S, BEGIN_S + 6)
    assert (series.covered_s, series.per_s) == (2.0, 2.0)
    (empty,) = summed(log(line(TWO, 0, 0))).series()
    assert empty.per_s is None


def test_throughput_of_what_is_merged():
    """Two logs of the same second cover one second; a log without dates that begins anew covers more."""
    (series,) = summed(log(line(TWO, 0), line(TWO, 1)), log(line(TWO, 0.5)), merge=True).series()
    assert (series.covered_s, series.per_s) == (2.0, 3.0)
    (series,) = summed(line(TWO, 0) + line(TWO, 1) + line(TWO, 0), ignore_tags=True).series()
    assert (series.dated, series.covered_s) == (False, 3.0)


@pytest.mark.parametrize("other", [{"digits": 2}, {"lowest": 1000}, {"lowest": 1023}, {"span": 1000}])
def test_different_cells_are_never_added(other):
    """Each layout is a series of its own, and it is said why, whatever was asked for."""
    text = log(line(ONE, 0, tag="A"), line(histogram([0, 0, 3], **other), 0, tag="B"))
    sums = summed(text, ignore_tags=True)
    assert [row[2:] for row in rows(sums)] == [(1, 1), (1, 3)]
    (apart,) = sums.apart
    assert apart.layouts[0] == "3 digits"
    assert apart.why.startswith("counts of different cells cannot be added (3 digits: A; ")
    assert apart.why.endswith(": B)")
    assert not summed(text).apart


def test_layouts_are_named():
    """What differs stands in the sentence, and which files have it."""
    low, decimal = histogram([1], lowest=1000), histogram([1] * 1100, span=2, ratio=0.75)
    sums = summed(log(line(ONE)), log(line(low)), log(line(decimal)), merge=True)
    assert sums.apart[0].why == (
        "counts of different cells cannot be added (3 digits: no tag of a; 3 digits from 1000 up: no tag of b; "
        "3 digits, decimal values in steps of 1.5: no tag of c)"
    )


def test_decimal_values_of_other_ratios_are_added():
    """A cell is the same value, whatever power of two the ratio is."""
    fine, coarse = histogram([0] * 2048 + [1], span=4, ratio=0.5), histogram([0] * 1024 + [1], span=4, ratio=1.0)
    assert summed(log(line(fine))).series()[0].values.least == 1024.0
    (series,) = summed(log(line(fine, 0), line(coarse, 1))).series()
    assert (series.values.total, series.values.least, len(series.curve)) == (2, 1024.0, 1)
    assert isinstance(series.values.least, float)


def test_decimal_values_too_far_apart():
    """The library's histogram cannot hold them; the interval is left out and said."""
    near, far = histogram([0] * 1024 + [1], span=2, ratio=1.0), histogram([0] * 1024 + [1], span=2, ratio=2.0**200)
    sums = summed(log(line(near, 0), line(near, 1), line(far, 2)))
    assert rows(sums) == [(("a",), None, 2, 2)]
    assert sums.left == ["1 interval left out: the values are too far apart for one histogram"]


def test_periods():
    """Rows of --by; each begins at a multiple of it and has what began within."""
    text = log(*(line(histogram([0] * second + [1]), second) for second in range(25)), start_s=1_700_000_000)
    (series,) = summed(text, by_s=10.0).series()
    assert [(row.begin_s - 1_700_000_000, row.covered_s, row.values.total, row.values.most) for row in series.periods] == [
        (0, 10, 10, 9), (10, 10, 10, 19), (20, 5, 5, 24)
    ]  # fmt: skip
    assert series.periods[-1] == series.periods[:][2]
    assert series.values.total == 25
    assert all(isinstance(value, int) for value in series.periods[0].values.percentiles)


def test_periods_of_empty_and_late_intervals():
    """An interval without values has a row; clocks of machines may differ by some intervals."""
    text = log(line(histogram([0]), 0), *(line(ONE, second) for second in (3, 5, 4, 6, 3)), start_s=0)
    (series,) = summed(text, by_s=1.0, merge=True).series()
    assert [(row.begin_s, row.values.total, row.values.mean) for row in series.periods] == [
        (0, 0, None), (3, 2, 1.0), (4, 1, 1.0), (5, 1, 1.0), (6, 1, 1.0)
    ]  # fmt: skip


@pytest.mark.parametrize("start_s", [None, 1_700_000_000.0])
def test_periods_of_a_fraction(start_s):
    """An interval at 0.3 s begins in the fourth 0.1 s, though 0.3 / 0.1 is less than 3."""
    text = log(*(line(ONE, tenth / 10, 0.1) for tenth in range(30)), start_s=start_s)
    (series,) = summed(text, by_s=0.1).series()
    assert [(row.begin_s, row.values.total) for row in series.periods] == [
        ((start_s or 0.0) + tenth / 10, 1) for tenth in range(30)
    ]
    assert summed(text, since=moment_of("0.3s"), until=moment_of("0.5s")).intervals == 2


def test_too_many_periods(monkeypatch):
    """The option is named."""
    monkeypatch.setattr("opskit.analysis.hdr.total._MOST_PERIODS", 10)
    with pytest.raises(UsageError, match=r"more than 10 periods of 0.5 s; give a longer --by"):
        summed(log(*(line(ONE, second) for second in range(30))), by_s=0.5)


@given(st.dictionaries(st.integers(0, 3000), st.integers(1, 5000), min_size=1, max_size=60))
@settings(max_examples=60, deadline=None)
def test_figures_by_definition(counts):
    """Total, ends, mean, deviation, percentiles and curve as one works them out from the cells; 3 digits are exact up to 2,047."""
    dense = [counts.get(cell, 0) for cell in range(max(counts) + 1)]
    (series,) = summed(log(line(histogram(dense)))).series()
    values, total = series.values, sum(counts.values())
    width = {cell: 1 if cell < 2048 else 2 for cell in counts}
    lowest = {cell: cell if cell < 2048 else (cell - 1024) * 2 for cell in counts}
    middle = {cell: lowest[cell] + width[cell] // 2 for cell in counts}
    mean = sum(middle[cell] * count for cell, count in counts.items()) / total
    assert (values.total, values.least, values.mean) == (total, lowest[min(counts)], mean)
    assert values.most == lowest[max(counts)] + width[max(counts)] - 1
    spread = math.sqrt(sum((middle[cell] - mean) ** 2 * count for cell, count in counts.items()) / total)
    assert values.deviation == pytest.approx(spread)
    ordered = sorted(counts)
    for percent, value in zip(PERCENTS, values.percentiles):
        seen = 0
        for cell in ordered:
            seen += counts[cell]
            if seen * 100 >= percent * total * (1 - 1e-12):
                assert value == lowest[cell] + width[cell] - 1
                break
    assert [step.value for step in series.curve] == [lowest[cell] + width[cell] - 1 for cell in ordered]
    assert series.curve[-1] == (values.most, 1.0, total)
    assert list(series.curve[:2]) == list(series.curve)[:2]


@pytest.mark.parametrize(("factor", "unit"), [(1e6, "ns"), (1e3, "us"), (1.0, "ms"), (1e-3, "s"), (3.0, None)])
def test_likely_unit(factor, unit):
    """Interval_Max is in ms by convention: what the values must be in then."""
    lines = [line(histogram([0] * 2000 + [1]), second, most=2000 / factor) for second in range(3)]
    assert summed(log(*lines)).likely_unit == unit


def test_no_likely_unit():
    """Intervals that disagree have none, and an empty log fits all."""
    assert summed(log(line(ONE, 0, most=0.001), line(ONE, 1, most=1))).likely_unit is None
    assert summed(log(line(histogram([0])))).likely_unit is None


def test_printed_histograms_are_not_added():
    """They are series of their own, and it is said that they cannot be added."""
    printed = Spectrum(
        "wrk", 9, "wrk2", "Recorded", "ms", 100, 9.0, 2.0, 1.0, ((1.0, 0.5, 50), (9.0, 1.0, 100)), ((90.0, 7.0),), 10.0
    )
    sums = summed(log(line(ONE)), merge=True)
    assert sums.add(printed)
    log_series, series = sums.series()
    assert (log_series.unit, series.unit, series.tag, series.files) == (None, "ms", "Recorded", ("wrk",))
    assert series.values == (100, None, 9.0, 2.0, 1.0, (1.0, 7.0, 9.0, 9.0, 9.0))
    assert (series.per_s, series.curve) == (10.0, [(1.0, 0.5, 50), (9.0, 1.0, 100)])
    assert "wrk: percentiles cannot be added" in sums.apart[0].why
    chosen = summed(log(line(ONE, 0, tag="Recorded")), tags="x")
    assert not chosen.add(printed)
    assert (chosen.other_tags, chosen.tags) == (2, ["Recorded"])
    with pytest.raises(
        BadInput, match="wrk: what a load generator printed has no times: leave out --since and --until"
    ):
        summed(log(line(ONE)), since=moment_of("0s")).add(printed)


def test_too_many_series(monkeypatch):
    """Intervals of more tags are left out, and it is said how many."""
    monkeypatch.setattr(module, "_MOST_SERIES", 5)
    sums = summed(log(*(line(ONE, 0, tag=f"t{number}") for number in range(9))))
    assert len(sums.series()) == 5
    assert sums.left == ["4 intervals left out: there are more than 5 series; choose with --tag, or use --ignore-tags"]


def test_too_many_counts():
    """Counts that would exceed 2^63 are left out whole."""
    sums = summed(log(*(line(histogram([1 << 62]), second) for second in range(3))))
    assert rows(sums) == [(("a",), None, 1, 1 << 62)]
    assert "2 intervals left out" in sums.left[0]


HOSTILE = """
import sys
sys.path.insert(0, sys.argv[1])
from hdrlogs import histogram, line
from opskit.analysis.hdr.sums import Sums
from opskit.jvm.logs.hdr.lines import Bad, Log
sums = Sums()
for found in Log("x").read([line(histogram(b"\\x02" * 4_300_000, digits=5, highest=1 << 62))]):
    if not isinstance(found, Bad):
        sums.add(found)
print(len(sums.left), [each.values.total for each in sums.series()])
"""


def test_a_histogram_of_millions_of_cells():
    """5 digits up to 2^62, each cell used: at most a few seconds and 150 MiB, and a sentence instead of the sums."""

    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (200 << 20, 200 << 20))
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))

    done = subprocess.run(
        [sys.executable, "-c", HOSTILE, str(Path(hdrlogs.__file__).parent)],
        capture_output=True, text=True, check=True, preexec_fn=limit,
    )  # fmt: skip
    assert done.stdout == "1 []\n"
