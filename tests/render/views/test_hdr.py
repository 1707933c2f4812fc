"""How latency logs are shown: goldens in every format, the first screen, narrow terminals, hostile names."""

from __future__ import annotations

import csv as csv_reader
import io
import json
from functools import cache

import pytest
from hdrseries import facts, latencies, series, side
from schemafiles import keeps_to_schema

from opskit.analysis.hdr.judge import judge
from opskit.render.formats import csv, markdown, table, text
from opskit.render.formats import json as as_json
from opskit.render.report import About
from opskit.render.views.hdr import report as view
from opskit.render.views.hdr.fields import begin_text, interval_text, ratio_text, value_text

WRITERS = {"csv": csv, "json": as_json, "markdown": markdown, "table": table, "text": text}


@cache
def some(seed, scale=200_000, stalls=1000, number=2000):
    return tuple(latencies(number, seed, scale, stalls))


def three(**more):
    """A log with three tags."""
    return [
        series(some(1), "READ-rt", **more), series(some(2, 100_000), "READ-st", **more),
        series(some(3, 400_000, 100_000), "WRITE-rt", **more),
    ]  # fmt: skip


def tags():
    return judge(side(*three(), likely_unit="ns"))


def known():
    return judge(side(*three(), likely_unit="ns"), unit="ns")


def periods():
    return judge(side(*three(by_s=20.0)[:2], by_s=20.0), unit="ns")


def compared():
    old = [series(some(4, 100_000), "READ-rt", files=("old.hdr",)), series(some(5), "SCAN", files=("old.hdr",))]
    return judge(side(*three()[:1]), side(*old), "ns")


def troubled():
    """A bad line, a last line that is cut, service time alone."""
    read = facts(["throttle.hdr"], [("throttle.hdr", 17, "the data is not base64")], ["throttle.hdr"])
    return judge(side(three()[1], facts=read, likely_unit="ns"))


RESULTS = {"tags": tags, "periods": periods, "diff": compared, "troubled": troubled}


def made(result, format_="table", **shown):
    about = About("HOST", "2026-01-02T03:04:05Z", "VERSION", "opskit hdr", view.target(result))
    return view.report(about, result, view.Shown(raw=format_ == "text", json=format_ == "json", **shown))


def written(result, format_="table", **shown):
    return WRITERS[format_].render(made(result, format_, **shown))


def screen(result, width=80, height=24, **shown):
    return table.render(made(result, **shown), width, height)


@pytest.mark.parametrize("format_", WRITERS)
@pytest.mark.parametrize("name", RESULTS)
def test_goldens(name, format_, golden):
    """Three tags without a unit, intervals, a comparison, a log with faults: in every format."""
    golden(f"hdr-{name}.{format_}", written(RESULTS[name](), format_))


@pytest.mark.parametrize("name", RESULTS)
def test_the_first_screen(name, golden):
    """80 x 24 has the verdict, the findings and the main columns, a line a row."""
    out = screen(RESULTS[name]())
    assert len(out.splitlines()) <= 24
    golden(f"hdr-screen-{name}.txt", out)


def test_a_narrow_terminal_keeps_the_main_columns():
    """Tag, count, p50, p99, p99.9 and max at 80 columns, also of plain numbers and long tags; all of them at 120."""
    long = [series(some(1, 30_000_000), "a-tag-with-a-rather-long-name-" * 4), series(some(2), "b")]
    wide = [series([each * 1e5 for each in some(1)], "READ-response-time"), series(some(2), "WRITE-response-time")]
    for result in (tags(), known(), judge(side(*long)), judge(side(*wide))):
        narrow, wide = (
            next(line for line in screen(result, width).splitlines() if line.startswith("tag")).split()
            for width in (80, 120)
        )
        assert {"tag", "count", "p50", "p99", "p99.9", "max"} <= {*narrow}
        assert wide == ["tag", "count", "per", "s", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"]
        assert max(map(len, [line for line in screen(result, 80).splitlines() if "─" in line])) <= 80


def test_with_a_unit_values_are_durations():
    """JSON has the unit and the log's own numbers."""
    out = written(known())
    assert "highest p99: WRITE-rt 1.2 ms" in out
    assert "--unit" not in out
    document = json.loads(written(known(), "json"))
    assert (document["unit"], document["likely_unit"]) == ("ns", None)
    assert document["series"][0]["p50"] == json.loads(written(tags(), "json"))["series"][0]["p50"]


def test_without_a_unit_one_line_says_what_to_type():
    """Nothing is guessed silently: what the values probably are, or that they fit nothing."""
    note = "values are as the log has them; if Interval_Max is in ms, as by convention, they are ns: --unit ns"
    assert note in written(tags())
    assert json.loads(written(tags(), "json"))["notes"] == [note]
    assert "the column Interval_Max fits no unit; give the one of the program" in written(judge(side(*three())))


def test_json_has_every_field_of_a_series():
    """Valid by the schema; the curve at the levels of a .hgrm file, with -v every cell."""
    document = json.loads(written(periods(), "json", verbose=True))
    keeps_to_schema(document, "hdr")
    first = document["series"][0]
    assert (first["tag"], first["files"], first["digits"], first["count"]) == ("READ-rt", ["throttle.hdr"], 3, 2000)
    assert [each["begin"] for each in first["periods"]] == [f"2023-11-14T22:13:{second}Z" for second in (20, 40)] + [
        "2023-11-14T22:14:00Z"
    ]
    assert sum(each["count"] for each in first["periods"]) == 2000
    assert first["curve"][-1] == {"percentile": 100.0, "value": first["max"], "total": 2000}
    assert first["steps"][-1] == {"value": first["max"], "share": 1.0, "total": 2000}
    assert json.loads(written(periods(), "json"))["series"][0]["steps"] is None


def test_a_comparison_has_both_numbers_and_their_ratio():
    """Tags of one side alone are shown too."""
    document = json.loads(written(compared(), "json"))
    pair, alone = document["diff"]
    row = next(row for row in pair["values"] if row["value"] == "p50")
    assert row["ratio"] == pytest.approx(row["now"] / row["other"])
    assert (alone["tag"], alone["files"], alone["values"][0]["now"]) == ("SCAN", None, None)
    assert alone["other"]["tag"] == "SCAN"
    rows = list(csv_reader.DictReader(io.StringIO(written(compared(), "csv"))))
    assert len(rows) == 2 * 9
    assert written(compared()).splitlines()[1].startswith("READ-rt: p99 643 us, other 330 us (x1.94), ")


def test_a_comparison_without_a_common_tag_says_which_there_are():
    """Nothing is compared silently with something else."""
    now, other = side(*three()), side(series(some(1), "x", files=("old",)), series(some(1), "y", files=("old",)))
    assert "no tag is on both sides: READ-rt, READ-st, WRITE-rt; OTHER: x, y" in written(judge(now, other))


def test_a_sum_is_named_by_its_logs():
    """Of people's tables; text has its columns."""
    result = judge(side(series(some(1), files=("a/one.hdr", "two.hdr"))), unit="ns")
    assert "one.hdr and 1 more   2,000" in written(result)
    assert written(result, "text").splitlines()[1].startswith("TAG  COUNT")


def test_several_logs_are_told_apart_by_their_names():
    """Without tags the log is the name; the verdict names it."""
    result = judge(side(series(some(1), files=("/a/one.hdr",)), series(some(2, 900_000), files=("/a/two.hdr",))))
    out = written(result)
    assert "highest p99: two.hdr " in out
    assert "log       count" in out
    assert "tag" not in out.splitlines()[2]


def test_the_worst_interval_is_named():
    """A terminal may show the first ones alone."""
    assert "worst interval of READ-rt: 2023-11-14T22:13:20Z, p99 696 us, max 50 ms" in made(periods()).verdict
    undated = judge(side(series(some(1), by_s=20.0, dated=False, begin_s=0.0), by_s=20.0))
    assert made(undated).verdict[1] == "worst interval: 0.000 s after the start, p99 696,319, max 50,167,807"


def test_verbose_shows_more_of_each_series():
    """Its intervals, its precision, its time, the least value and the standard deviation."""
    out = written(known(), verbose=True)
    head = next(line for line in out.splitlines() if "intervals" in line)
    assert head.split() == ["tag", "intervals", "digits", "begin", "end", "min", "std", "dev"]
    assert "MIN_NS  STD_DEV_NS" in written(known(), "text", verbose=True)


def test_differing_precision_is_said():
    """A note, of which tags it is."""
    result = judge(side(series(some(1), "a"), series(some(1), "b", digits=2)))
    assert "the precision differs: 3 digits (a); 2 digits (b)" in made(result).footer


def test_many_tags_are_cut_with_the_largest_first():
    """-n, and a terminal's height."""
    result = judge(side(*(series(some(1)[: 10 + at], f"t{at}") for at in range(40))), unit="ns")
    out = screen(result)
    assert len(out.splitlines()) <= 24
    assert out.splitlines()[4].startswith("t39 ")
    assert "more; -n 0 shows all" in out
    assert [line[:3] for line in written(result, top=2).splitlines()[4:6]] == ["t39", "t38"]


def test_hostile_names_are_escaped_in_every_format():
    """No terminal or table acts on them."""
    result = judge(side(series(some(1), "\x1b[31m|a\n,b", files=("\x1b]0;x\x07.hdr",)), series(some(1), "")))
    for format_ in WRITERS:
        out = written(result, format_)
        assert "\x1b" not in out, format_
        assert "\x07" not in out, format_
    assert "(empty tag)" in written(result)


def test_a_log_without_values_says_so():
    """Empty intervals are no error."""
    assert written(judge(side(series([])))).splitlines()[1] == "no values in 60 intervals"


def test_what_was_left_out_is_counted():
    """By the window in a note, by the tag in JSON."""
    result = judge(side(*three(), outside=1, other_tags=1200), unit="ns")
    assert made(result).footer == ["1 interval lies before --since or after --until"]
    document = json.loads(written(result, "json"))
    assert (document["intervals_outside"], document["intervals_of_other_tags"]) == (1, 1200)


def test_how_numbers_are_shown():
    """With a unit as durations, without as they are."""
    assert value_text(1_234_567, "ns") == "1.2 ms"
    assert value_text(1_234_567.0, None) == "1,234,567"
    assert value_text(5_016_521_801_727, None) == "5.017e+12"
    assert value_text(12.3456789, None) == "12.346"
    assert value_text(None, "ns") == "-"
    assert [ratio_text(each) for each in (None, 0.5, 1.0, 250.0, 0.0123)] == ["-", "x0.50", "x1.00", "x250", "x0.012"]
    assert [interval_text(each) for each in (0.5, 10.0, 60.0, 90.0, 7200.0)] == [
        "500 ms",
        "10 s",
        "1 min",
        "90 s",
        "2 h",
    ]
    assert begin_text(1.5, dated=False) == "1.500"
    assert begin_text(1_700_000_000.25, dated=True) == "2023-11-14T22:13:20.250Z"
    assert begin_text(1e18, dated=True) == "1000000000000000000.000"
