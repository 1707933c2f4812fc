"""Logs as files, compressed, as pipes and several at once; what is said of lines that cannot be used."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading

import pytest
from hdrlogs import header, histogram, line

from opskit.collect.hdr.collect import Reader, collect
from opskit.collect.hdr.facts import BadLine, Request
from opskit.errors import BadInput

ONE = histogram([0, 1])


@pytest.fixture
def write(tmp_path):
    """Write a file; gives its path."""

    def write(name, *lines, start_s=1_700_000_000.0):
        path = tmp_path / name
        data = (header(start_s) if start_s is not None else b"") + b"".join(lines)
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return str(path)

    return write


def taken(*paths):
    """The facts, and what was taken."""
    found = []
    return collect(Request(paths), found.append), found


def test_gzip_equals_plain(write):
    """The same intervals, with the same lines."""
    lines = [line(ONE, second, tag="A") for second in range(3)]
    plain, packed = taken(write("a.hdr", *lines)), taken(write("a.hdr.gz", *lines))
    assert [each.line for each in packed[1]] == lines
    assert plain[0][1:] == packed[0][1:] == (6, 3, 0, [], [], False)


def test_several_logs_come_by_time(write):
    """Those of two machines are read side by side; each keeps its own order."""
    first = write("b.hdr", line(ONE, 0), line(ONE, 2), line(ONE, 4))
    second = write("a.hdr", line(ONE, 0), line(ONE, 2), start_s=1_700_000_001.0)
    _, found = taken(first, second)
    assert [(each.file == first, each.begin_s - 1_700_000_000) for each in found] == [
        (True, 0), (False, 1), (True, 2), (False, 3), (True, 4)
    ]  # fmt: skip


def test_bad_lines_are_counted_and_numbered(write):
    """The first ten are kept; a cut last line is none of them."""
    path = write("a.hdr", *[line(ONE, 1), b"1,1,1,????\n"] * 15, line(ONE, 9)[:-5])
    facts, found = taken(path)
    assert (facts.lines, facts.intervals, facts.bad_lines, len(facts.bad), facts.cut) == (34, 15, 15, 10, [path])
    assert facts.bad[1] == BadLine(path, 7, "the histogram is not base64")
    assert len(found) == 15


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "the file is empty"),
        (b"#[StartTime: 1 (seconds since epoch)]\n", "no histogram in 1 line"),
        (b"hello\nworld\n", "no histogram in 2 lines; line 1 of"),
        (b"1,1,1,AAAA", "no histogram in 1 line"),
    ],
)
def test_nothing_in_it(tmp_path, text, why):
    """The message says what was found instead, and what writes such a log."""
    path = tmp_path / "a.log"
    path.write_bytes(text)
    with pytest.raises(BadInput, match=f"{path}: {why}.*HistogramLogWriter"):
        taken(str(path))


def test_named_twice(write):
    """Its counts would be added twice."""
    path = write("a.hdr", line(ONE))
    with pytest.raises(BadInput, match="named twice"):
        taken(path, path)


def test_ctrl_c_on_a_pipe_shows_what_there_is(tmp_path):
    """A pipe without an end: what was read so far counts."""
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    got = threading.Event()

    def feed():
        with open(fifo, "wb", buffering=0) as pipe:
            pipe.write(header() + line(ONE) * 200)
            got.wait(10)

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        reader, taken_ = Reader(Request([str(fifo)])), []
        found = reader.found()
        for _ in range(50):
            taken_.append(next(found))
        assert reader.facts(interrupted=True)[2:] == (50, 0, [], [], True)
    finally:
        got.set()
        feeder.join()


def test_standard_input(write, tmp_path):
    """`-`, in a process of its own."""
    path = write("a.hdr", line(ONE, 1), line(ONE, 2))
    script = (
        "from opskit.collect.hdr.collect import collect; from opskit.collect.hdr.facts import Request; "
        "print(collect(Request(['-']), print).intervals)"
    )
    with open(path, "rb") as data:
        done = subprocess.run([sys.executable, "-c", script], stdin=data, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "2"
    assert "file='standard input'" in done.stdout


def test_printed_histograms_come_last(tmp_path, write):
    """The output of wrk2 beside a log."""
    text = tmp_path / "wrk.txt"
    text.write_text(
        "  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000%  1.00ms\n  Detailed Percentile spectrum:\n"
        "       Value   Percentile   TotalCount 1/(1-Percentile)\n\n  1.0 1.000000 5 inf\n#[Max = 1.000, Total count = 5]\n"
    )
    facts, (interval, spectrum) = taken(str(text), write("a.hdr", line(ONE)))
    assert (facts.intervals, interval.tag, spectrum.tool, spectrum.total) == (1, None, "wrk2", 5)
