"""What is said of latency logs: lines that could not be used, service time alone, pairs of two logs, what was not chosen."""

from __future__ import annotations

import pytest
from hdrseries import facts, latencies, series, side

from opskit.analysis.hdr.judge import judge, pairs, ratio
from opskit.analysis.hdr.sums import Apart
from opskit.errors import BadInput

FEW = latencies(200)


def codes(result):
    return [(each.code, each.severity) for each in result.findings]


def test_a_good_log_has_no_findings():
    """Response and service time side by side."""
    result = judge(side(series(FEW, "READ-rt"), series(FEW, "READ-st"), likely_unit="ns"))
    assert result.findings == []
    assert (result.unit, result.likely_unit) == (None, "ns")


def test_bad_lines_are_a_warning_with_place_and_reason():
    """Five of them are named, the others counted; the next command shows the first one."""
    bad = [("a b.hdr", number, "the data is not base64") for number in range(17, 24)]
    [found] = judge(side(series(FEW), facts=facts(["a b.hdr"], bad))).findings
    assert (found.code, found.severity) == ("hdr-bad-lines", "warning")
    assert found.summary.startswith("7 lines of 65 could not be used")
    assert found.evidence.startswith("a b.hdr:17: the data is not base64; a b.hdr:18: ")
    assert found.evidence.endswith("a b.hdr:21: the data is not base64; … 2 more")
    assert found.next == "sed -n 17p 'a b.hdr' | cut -c -160"


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("x.hdr.gz", "zcat x.hdr.gz | sed -n 3p | cut -c -160"),
        ("-x.hdr", "sed -n 3p -- -x.hdr | cut -c -160"),
        ("standard input", None),
    ],
)
def test_how_to_look_at_a_bad_line(name, command):
    """Also in a compressed file; not on standard input, which is gone."""
    [found] = judge(side(series(FEW), facts=facts([name], [(name, 3, "cut")]))).findings
    assert found.next == command


def test_a_log_that_is_still_written_is_a_note():
    """Exit code 0."""
    result = judge(side(series(FEW), facts=facts(cut=["throttle.hdr"])))
    assert codes(result) == [("hdr-log-cut", "note")]


def test_service_time_alone_is_said():
    """Once for all tags that have no partner; in capitals too. Words that only end alike are no service time."""
    result = judge(side(*(series(FEW, tag) for tag in ("READ-st", "WRITE-st", "WRITE-rt", "SCAN-ST", "best"))))
    [found] = result.findings
    assert (found.code, found.severity) == ("hdr-service-time-alone", "note")
    assert "READ-st, SCAN-ST have service time alone" in found.summary
    assert "service time hides queueing (coordinated omission): look at the -rt tag" in found.summary
    assert found.evidence.startswith("no READ-rt, SCAN-RT in 60 intervals")
    assert found.next is None


def test_the_response_time_that_tag_leaves_out():
    """The next command shows it."""
    [found] = judge(side(series(FEW, "READ-st"), tags=["READ-rt", "READ-st"], other_tags=60)).findings
    assert found.next == "opskit hdr --tag '^READ\\-rt$' throttle.hdr"


def test_service_times_of_tags_that_are_not_shown_are_not_judged():
    """--tag has chosen another one."""
    assert judge(side(series(FEW, "WRITE-rt"), tags=["READ-st", "WRITE-rt"])).findings == []


def test_a_sum_of_service_and_response_times_is_said():
    """They are two measures of one request."""
    tags = ["READ-st", "READ-rt", "W-st", "W-rt"]
    assert judge(side(series(FEW), tags=tags, chosen=["READ-rt", "W-rt"], merged=True)).findings == []
    [found] = judge(side(series(FEW), tags=tags, chosen=tags, merged=True)).findings
    assert found.code == "hdr-times-mixed"
    assert found.next == "opskit hdr --tag '-rt$' --merge throttle.hdr"
    capital = [tag.upper() for tag in tags]
    [found] = judge(side(series(FEW), tags=capital, chosen=capital, merged=True)).findings
    assert found.next == "opskit hdr --tag '(?i)-rt$' --merge throttle.hdr"


def test_series_that_cannot_be_added_are_said():
    """Their cells differ."""
    apart = Apart(
        ("a.hdr", "b.hdr"), None, ("3 digits", "2 digits"), "3 digits and 2 digits are not added: their cells differ"
    )
    [found] = judge(side(series(FEW), apart=[apart])).findings
    assert (found.code, found.severity, found.entity.name) == ("hdr-precision-differs", "note", "a.hdr b.hdr")


def test_incomplete_sums_are_a_warning():
    """They are shown, with what is missing."""
    [found] = judge(side(series(FEW), left=["3 intervals left out: there are more than 1,000 series"])).findings
    assert (found.code, found.severity) == ("hdr-intervals-left-out", "warning")
    assert found.evidence == "3 intervals left out: there are more than 1,000 series"


def test_units():
    """--unit, or that of all files; a file that says another one is refused."""
    assert judge(side(series(FEW, unit="ms"), likely_unit="ns")).unit == "ms"
    assert judge(side(series(FEW)), unit="us").unit == "us"
    assert judge(side(series(FEW, unit="ms"), series(FEW, "x")), unit="ms").unit == "ms"
    with pytest.raises(
        BadInput, match=r"wrk\.txt: its values are in ms, those of throttle\.hdr are in an unknown unit"
    ):
        judge(side(series(FEW, "x"), series(FEW, unit="ms", files=("wrk.txt",))))
    with pytest.raises(BadInput, match="has no intervals: no --by"):
        judge(side(series(FEW, unit="ms"), by_s=1.0))
    assert judge(side(series(FEW), likely_unit="ns"), side(series(FEW), likely_unit="us")).likely_unit is None
    with pytest.raises(BadInput, match="its values are in ms, as it says itself; leave out --unit ns"):
        judge(side(series(FEW, unit="ms")), unit="ns")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"outside": 60}, "x.hdr: 60 intervals, and none between --since and --until: they lie outside"),
        ({"other_tags": 60}, "x.hdr: 60 intervals, and --tag matches none of its tags: (no tag), READ"),
        ({"outside": 40, "other_tags": 20}, "they lie outside (20 of other tags)"),
    ],
)
def test_nothing_that_was_chosen_is_an_error(more, message):
    """It says what there is instead."""
    with pytest.raises(BadInput) as raised:
        judge(side(facts=facts(["x.hdr"]), tags=[None, "READ"], **more))
    assert message in str(raised.value)


def test_nothing_that_could_be_used_is_an_error():
    """With the first reason."""
    nothing = facts(["x.hdr"], [("x.hdr", 4, "the data is not base64")])
    with pytest.raises(
        BadInput, match=r"x\.hdr: no interval that could be used in 65 lines; the first: line 4: the data"
    ):
        judge(side(facts=nothing))


def test_pairs_are_by_tag():
    """Each log of the left with the tag of the other one; two single series are a pair whatever they are called."""
    now = [series(FEW, "a", files=("1",)), series(FEW, "b", files=("1",)), series(FEW, "a", files=("2",))]
    other = [series(FEW, "a", files=("old",)), series(FEW, "c", files=("old",))]
    found = [(one and (one.files[0], one.tag), two and two.tag) for one, two in pairs(now, other)]
    assert found == [(("1", "a"), "a"), (("1", "b"), None), (("2", "a"), "a"), (None, "c")]
    [(one, two)] = pairs(now[:1], other[1:])
    assert (one.tag, two.tag) == ("a", "c")


def test_facts_of_both_sides_are_together():
    """Bad lines of either one count."""
    old = side(series(FEW, files=("old",)), facts=facts(["old"], [("old", 1, "cut")]))
    result = judge(side(series(FEW)), old)
    assert codes(result) == [("hdr-bad-lines", "warning")]
    assert (result.facts.lines, list(result.facts.names)) == (130, ["throttle.hdr", "old"])


def test_a_ratio_needs_both_numbers():
    """Nothing is infinitely slow."""
    assert ratio(3.0, 2.0) == 1.5
    assert ratio(3.0, 0.0) is None
    assert ratio(None, 2.0) is None
