"""`opskit hdr` on logs that HdrHistogram has written: every format, its own .hgrm, intervals, windows, splits, faults, bad usage."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path

import maven
import pytest
from answers import answer, refused
from hostcaches import wait_until
from imports import HEAVY, imported
from nextsteps import try_next

from opskit.analysis.hdr.times import Times
from opskit.analysis.moments import Moment
from opskit.jvm.logs.hdr.record import Interval

HERE = Path(__file__).resolve().parent.parent / "fixtures" / "hdr"
LOG, BEFORE, DOUBLE = HERE / "throttle.hdr", HERE / "before.hdr", HERE / "double.hdr"
JAR = "org.hdrhistogram:HdrHistogram:2.2.2"


@pytest.fixture
def of(inprocess):
    """The JSON object of a run, valid by its schema."""
    return partial(answer, inprocess, "hdr")


@pytest.fixture
def damaged(tmp_path):
    """The log with a line that is not base64, one that is cut, and a last line that is still written."""
    lines = LOG.read_text().splitlines(keepends=True)
    lines[6] = lines[6][:60] + "!" + lines[6][61:]
    lines[9] = lines[9][:80] + "\n"
    path = tmp_path / "a b.hdr"
    path.write_text("".join(lines)[:-40])
    return path


@pytest.mark.parametrize(("tag", "unit"), [("READ-rt", "ns"), ("READ-st", "ns"), ("WRITE-rt", "ns")])
def test_hgrm_is_what_java_writes(inprocess, tag, unit):
    """The bytes of HistogramLogProcessor, whose default is ms of a log in ns."""
    done = inprocess("hdr", LOG, "--tag", f"^{tag}$", "--unit", unit, "-f", "hgrm")
    assert done.out == (HERE / f"throttle.{tag}.hgrm").read_text()


def test_hgrm_of_decimal_values(inprocess, tmp_path):
    """Without a unit the values are as the log has them; the suffix chooses the format."""
    path = tmp_path / "x.hgrm"
    done = inprocess("hdr", DOUBLE, "-o", path)
    assert (done.code, done.out) == (0, "")
    assert path.read_text() == (HERE / "double.hgrm").read_text()


def test_hgrm_without_digits(inprocess):
    """A histogram may have none: each cell is a power of two."""
    done = inprocess("hdr", HERE / "v2.hdr", "--tag", "^digits-0$", "-f", "hgrm")
    assert done.out == (HERE / "v2.digits-0.hgrm").read_text()


def test_hgrm_of_several_tags_says_so(inprocess):
    """Each comes after a line with its tag, and stderr says how to get one."""
    done = inprocess("hdr", LOG, "--unit", "ns", "-f", "hgrm")
    parts = [(HERE / f"throttle.{tag}.hgrm").read_text() for tag in ("READ-rt", "READ-st", "WRITE-rt")]
    assert done.out == "".join(
        f"#[Tag = {tag}]\n{part}" for tag, part in zip(("READ-rt", "READ-st", "WRITE-rt"), parts)
    )
    assert "3 distributions, each after a line with its tag" in done.err


def test_every_number_of_a_log(of):
    """As Java has it: per tag the count, the percentiles, the maximum; and the time."""
    document = of(LOG)
    rows = {row["tag"]: row for row in document["series"]}
    assert [*rows] == ["READ-rt", "READ-st", "WRITE-rt"]
    assert (document["unit"], document["likely_unit"], document["intervals"]) == (None, "ns", 36)
    for tag, row in rows.items():
        written = (HERE / f"throttle.{tag}.hgrm").read_text().splitlines()
        assert (row["count"], row["covered_s"], row["per_s"], row["digits"]) == (3600, 12.0, 300.0, 3)
        assert row["begin"] == "2023-11-14T22:13:20Z"
        assert f"{row['p50'] / 1e6:12.3f} 0.500000000000" in "\n".join(written)
        assert f"Max     = {row['max'] / 1e6:12.3f}" in written[-2]
        assert f"Mean    = {row['mean'] / 1e6:12.3f}" in written[-3]
        assert f"StdDeviation   = {row['deviation'] / 1e6:12.3f}" in written[-3]
        assert f"Buckets = {row['buckets']:12}" in written[-1]


def test_the_unit_is_never_guessed_silently(inprocess):
    """Without it plain numbers, and one line with what to type; with it durations."""
    done = inprocess("hdr", LOG, "-f", "table")
    assert done.code == 0
    assert done.out.rstrip().endswith("if Interval_Max is in ms, as by convention, they are ns: --unit ns")
    known = inprocess("hdr", LOG, "-f", "table", "--unit", "ns").out
    assert "--unit" not in known
    assert " ms " in known
    assert "they are s: --unit s" in inprocess("hdr", DOUBLE, "-f", "table").out


def test_intervals(of, inprocess):
    """A row for each, in the order of time; the stall of second 7 is in its own."""
    document = of(LOG, "--by", "2s", "--tag", "READ-rt")
    [series] = document["series"]
    assert document["by_s"] == 2.0
    assert [each["count"] for each in series["periods"]] == [600] * 6
    assert [each["max"] > 39e6 for each in series["periods"]] == [False, False, False, True, False, False]
    rows = list(csv.DictReader(io.StringIO(inprocess("hdr", LOG, "--by", "2s", "-f", "csv").out)))
    assert [(row["tag"], row["count"]) for row in rows[:3]] == [
        (tag, "600") for tag in ("READ-rt", "READ-st", "WRITE-rt")
    ]
    assert len(rows) == 18
    assert "every 2 s" in inprocess("hdr", LOG, "--by", "2s", "-f", "table").out


def test_sums_over_tags_and_logs(of):
    """--merge is one row, --ignore-tags one for each log; a gzipped copy of a log is another log."""
    [merged] = of(LOG, BEFORE, "--merge")["series"]
    assert (merged["tag"], merged["count"], len(merged["files"])) == (None, 6 * 3600, 2)
    each = of(LOG, BEFORE, "--ignore-tags")
    assert [row["count"] for row in each["series"]] == [3 * 3600, 3 * 3600]
    assert {finding["code"] for finding in each["findings"]} == {"hdr-times-mixed"}
    assert try_next(each["findings"], "hdr-times-mixed").startswith("opskit hdr --tag ")


def test_sums_that_are_shown_apart(inprocess):
    """Rows that differ in their cells alone have their digits, as a column and in names; a note says why."""
    done = inprocess("hdr", HERE / "v2.hdr", "--merge", "--tag", "digits-[23]|low", "-f", "csv", "--by", "1m")
    assert [line.split(",")[2] for line in done.out.splitlines()] == ["digits", "2", "3"]
    text = inprocess("hdr", HERE / "v2.hdr", "--merge", "--tag", "digits-[23]").out
    assert "v2.hdr (2 digits) 779 (p99.9 1,023, max 42,751); 2 series, " in text
    assert "the precision differs" not in done.err


def test_a_window_by_date_and_by_time_since_the_start(of, inprocess):
    """The same part of the log; what lies outside is counted."""
    by_start = of(LOG, "--since", "2s", "--until", "5.5s", "--tag", "READ-rt")
    by_date = of(LOG, "--since", "2023-11-14T22:13:22Z", "--until", "2023-11-14T22:13:25.5Z", "--tag", "READ-rt")
    assert [document["series"][0]["count"] for document in (by_start, by_date)] == [1200, 1200]
    assert by_start["series"][0]["p99"] == by_date["series"][0]["p99"]
    assert any("before --since or after --until" in note for note in by_start["notes"])
    refused(
        inprocess("hdr", LOG, "--since", "1h"), f"opskit: {LOG}: 36 intervals, and none between --since and --until"
    )
    refused(
        inprocess("hdr", LOG, "--tag", "nothing"),
        f"opskit: {LOG}: 36 intervals, and --tag matches none of its tags: READ-rt, ",
    )


def test_a_comparison(of, inprocess):
    """By tag, with ratios: reads are twice as slow as the day before, writes are as they were."""
    document = of(LOG, "--diff", BEFORE, "--unit", "ns")
    ratios = {pair["tag"]: {row["value"]: row["ratio"] for row in pair["values"]} for pair in document["diff"]}
    assert ratios["READ-rt"]["p50"] == pytest.approx(2, abs=0.1)
    assert ratios["WRITE-rt"]["p50"] == pytest.approx(1, abs=0.01)
    assert ratios["READ-rt"]["count"] == 1
    out = inprocess("hdr", LOG, "--diff", BEFORE, "--unit", "ns", "--tag", "READ-rt", "-f", "table").out
    assert [line.split()[1] for line in out.splitlines() if line.startswith("READ-rt ")][:3] == ["count", "per", "mean"]


def test_service_time_alone_is_said(inprocess, of):
    """The finding names what hides; its next command shows the response time. Exit code 0."""
    document = of(LOG, "--tag", "-st$", codes=(0,))
    [finding] = document["findings"]
    assert finding["summary"].endswith("service time hides queueing (coordinated omission): look at the -rt tag")
    assert try_next(document["findings"], "hdr-service-time-alone").startswith("opskit hdr --tag ")


def test_bad_lines_cost_themselves_alone(of, damaged):
    """Counted and numbered with their reasons, exit code 1; the last line, which is still written, is a note."""
    document = of(damaged, codes=(1,))
    codes = {finding["code"]: finding["severity"] for finding in document["findings"]}
    assert codes == {"hdr-bad-lines": "warning", "hdr-log-cut": "note"}
    assert [bad["line"] for bad in document["bad"]] == [7, 10]
    assert (document["bad_lines"], document["intervals"], len(document["cut"])) == (2, 33, 1)
    assert sum(row["count"] for row in document["series"]) == 33 * 300
    assert try_next(document["findings"], "hdr-bad-lines") == f"sed -n 7p '{damaged}' | cut -c -160"


def test_a_log_that_is_still_written_is_no_error(inprocess, tmp_path):
    """Exit code 0."""
    path = tmp_path / "live.hdr"
    path.write_bytes(LOG.read_bytes()[:-100])
    done = inprocess("hdr", path, "-f", "table")
    assert done.code == 0
    assert "note hdr-log-cut" in done.out


def test_a_log_for_each_tag(inprocess, of, tmp_path):
    """Byte for byte with the header; read again they are the same, and together they are all of it."""
    done = inprocess("hdr", LOG, "--split", tmp_path / "parts", "-f", "table")
    assert f"wrote 3 logs to {tmp_path}/parts" in done.out
    lines = LOG.read_bytes().splitlines(keepends=True)
    for tag in ("READ-rt", "READ-st", "WRITE-rt"):
        own = [line for line in lines if not line.startswith(b"Tag=") or line.startswith(f"Tag={tag},".encode())]
        assert (tmp_path / "parts" / f"throttle.{tag}.hdr").read_bytes() == b"".join(own)
    document = of(tmp_path / "parts" / "throttle.READ-rt.hdr")
    assert document["series"][0]["p99.9"] == of(LOG)["series"][0]["p99.9"]
    assert len(os.listdir(tmp_path / "parts")) == 3


def test_java_reads_what_was_split(inprocess, damaged, tmp_path):
    """Hostile tags, and without the bad lines, at which Java stops."""
    hostile = damaged.read_text().replace("Tag=READ-st", "Tag=../x").replace("Tag=WRITE-rt", "Tag=" + "x" * 300)
    (tmp_path / "in.hdr").write_text(hostile)
    assert inprocess("hdr", tmp_path / "in.hdr", "--split", tmp_path / "out").code == 1
    assert sorted(os.listdir(tmp_path)) == ["a b.hdr", "in.hdr", "out"]
    names = sorted(os.listdir(tmp_path / "out"))
    assert len(names) == 3
    assert all(len(name) < 200 and ".." not in name.removeprefix("in.") for name in names)
    for name in names:
        tag = (tmp_path / "out" / name).read_text().partition("Tag=")[2].partition(",")[0]
        command = [
            "java",
            "-Xshare:auto",
            "-cp",
            maven.jars(JAR),
            "org.HdrHistogram.HistogramLogProcessor",
            "-i",
            name,
            "-tag",
            tag,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path / "out")
        ours = inprocess("hdr", tmp_path / "out" / name, "--unit", "ns", "-f", "hgrm").out
        assert (done.stdout.partition("\n")[2], done.stderr) == (ours, "")


def test_split_takes_what_was_chosen(inprocess, tmp_path):
    """A window and a tag of a compressed log from standard input."""
    with gzip.open(tmp_path / "x.gz", "wb") as file:
        file.write(LOG.read_bytes())
    words = ("--split", tmp_path / "out", "--tag", "READ", "--since", "6s")
    assert inprocess("hdr", tmp_path / "x.gz", *words).code == 0
    assert sorted(os.listdir(tmp_path / "out")) == ["x.READ-rt.hdr", "x.READ-st.hdr"]
    assert (tmp_path / "out" / "x.READ-rt.hdr").read_text().count("Tag=") == 6


def test_the_intervals_of_a_picture():
    """About a hundred in the time that was chosen, round, and no shorter than the log's own."""
    seconds = [Interval("x", 1, None, True, 1e9 + at, float(at), 1.0, None, None, None, b"", ()) for at in range(7200)]
    for since, until, fitting in (
        (None, None, 60.0),
        (Moment(7080.0, "uptime"), None, 1.0),
        (None, Moment(1e9 + 600, "utc"), 5.0),
    ):
        times = Times(since, until)
        for each in seconds:
            times.add(each)
        assert times.fitting == fitting
    assert Times().fitting == 1.0


@pytest.mark.parametrize(
    ("name", "words", "texts"),
    [
        ("x.svg", ("--unit", "ns"), {"Percentiles", "READ-rt", "WRITE-rt", "0 %", "99 %", "10 ms"}),
        ("timeline.svg", ("--unit", "ns"), {"Percentiles of every 1 s", "READ-st", "p99.9", "max"}),
        ("x.svg", ("--by", "3s"), {"Percentiles of every 3 s, values as the log has them", "p50"}),
        ("x.svg", ("--diff", BEFORE), {"READ-rt of throttle.hdr (now)", "READ-rt of before.hdr (other)"}),
    ],
)  # fmt: skip
def test_pictures(inprocess, tmp_path, name, words, texts):
    """Percentile curves; over time with --by, or in a file that is named timeline; both sides of --diff."""
    pytest.importorskip("matplotlib")
    path = tmp_path / name
    assert inprocess("hdr", LOG, "-o", path, *words).code == 0
    root = ET.fromstring(path.read_bytes())  # noqa: S314  (our own)
    assert texts <= {"".join(node.itertext()).strip() for node in root.iter("{http://www.w3.org/2000/svg}text")}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Missing argument 'LOG... | -'"),
        (("LOG", "--by", "x"), "'x' is not a duration"),
        (("LOG", "--since", "x"), "'x' is not a time; write a date as in the log (2026-01-31T10:05, 2026-01-31T10:05:30+0100) or the time since"),
        (("LOG", "--tag", "("), "'(' is not a regular expression"),
        (("LOG", "--unit", "m"), "'m' is not one of"),
        (("LOG", "--split", "d", "--diff", "LOG"), "--split and --diff exclude each other"),
        (("LOG", "--by", "1s", "-f", "hgrm"), "--by has no place in a .hgrm file"),
        (("LOG", "--diff", "LOG", "-f", "hgrm"), "--diff has no place in a .hgrm file"),
        (("LOG", "--diff", "LOG", "-o", "/tmp/timeline.svg"), "--diff draws percentile curves; choose a name without 'timeline'"),
        (("-", "-o", "/tmp/timeline.svg"), "a picture over time of standard input needs the length of its intervals: add --by 10s"),
        (("/dev/null", "-o", "/tmp/timeline.svg"), "a picture over time of /dev/null needs the length of its intervals"),
        (("-", "--diff", "-"), "standard input can be read once: give it as the log or to --diff"),
        (("LOG", "-f", "prometheus"), "'prometheus' is not one of"),
    ],
)  # fmt: skip
def test_bad_usage(inprocess, words, message):
    """One line and exit code 2."""
    done = inprocess("hdr", *(LOG if word == "LOG" else word for word in words), stdin="")
    assert (done.code, done.out) == (2, "")
    assert message in done.err, done.err


def test_no_log_and_other_files(inprocess, tmp_path):
    """Each is named with what is wrong."""
    refused(inprocess("hdr", tmp_path / "none"), f"opskit: {tmp_path}/none: ")
    refused(inprocess("hdr", tmp_path), f"opskit: {tmp_path}: is a directory; name the files in it")
    (tmp_path / "text").write_text("nothing\nof it\n")
    done = inprocess("hdr", tmp_path / "text")
    refused(done, f"opskit: {tmp_path}/text: ")
    assert done.err.count("\n") == 1


def test_an_interrupted_pipe_still_gives_what_came():
    """Ctrl-C on a log that goes on: the sums of what was read, exit code 130."""
    words = [sys.executable, "-m", "opskit", "hdr", "-", "-f", "json"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, cwd=HERE.parents[2], **pipes) as process:
        process.stdin.write(LOG.read_bytes() * 4)
        process.stdin.flush()
        assert wait_until(lambda: "pipe" in Path(f"/proc/{process.pid}/wchan").read_text())  # all of it was read
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    document = json.loads(out)
    assert document["series"][0]["files"] == ["standard input"]
    assert "interrupted: what was read so far is shown" in document["notes"]


def test_what_is_imported():
    """Text needs neither rich nor matplotlib."""
    assert not imported("hdr", LOG) & HEAVY


def test_what_a_load_generator_printed(inprocess, of, tmp_path):
    """In its own unit, without --unit; it has no intervals."""
    document = of(HERE / "wrk2.txt")
    [row] = document["series"]
    assert (document["unit"], row["count"], row["p99"], row["max"]) == ("ms", 39531, 12.88, 14.36)
    assert [level["percentile"] for level in row["curve"]] == [0, 10, 50, 99.9975, 100]
    assert "p99 13 ms, p99.9 14 ms, max 14 ms: 39,531 values\n" in inprocess("hdr", HERE / "wrk2.txt").out
    lines = inprocess("hdr", HERE / "wrk2.txt", "-f", "hgrm").out.splitlines()
    assert lines[4] == "       6.019 0.500000000000      19764           2.00"
    refused(
        inprocess("hdr", HERE / "wrk2.txt", "--split", tmp_path / "d"),
        f"opskit: {HERE}/wrk2.txt: no log with intervals",
    )
    refused(
        inprocess("hdr", HERE / "wrk2.txt", "--by", "1s"),
        f"opskit: {HERE}/wrk2.txt: what a load generator printed has no",
    )
    inprocess("hdr", LOG, "-o", tmp_path / "x.hgrm")
    again = of(tmp_path / "x.hgrm")
    assert [row["tag"] for row in again["series"]] == ["READ-rt", "READ-st", "WRITE-rt"]
    assert again["notes"] == ["values are as the file has them; their unit is not in the file: --unit ns, us, ms or s"]
    refused(inprocess("hdr", HERE / "wrk2.txt", LOG), f"opskit: {HERE}/wrk2.txt: its values are in ms, those of {LOG}")
