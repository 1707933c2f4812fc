"""`opskit safepoints` on logs: whole outputs, awk's own averages, files in the order of time, every bad input."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from imports import HEAVY, imported

LOGS = Path(__file__).resolve().parent.parent / "fixtures" / "safepoint-logs"
AWK = '{ stopped += $9;ttsp += $14; n++ } END { if (n > 0) print "stopped.avg=" stopped / n ", ttsp.avg=" ttsp / n; }'
STOPPED = "Total time for which application threads were stopped: {} seconds, Stopping threads took: {} seconds\n"


def nanos(uptime, name, stop, ttsp=1000):
    return (
        f'[{uptime:.3f}s][info][safepoint] Safepoint "{name}", Time since last: 1000000000 ns, '
        f"Reaching safepoint: {ttsp} ns, At safepoint: {stop - ttsp} ns, Total: {stop} ns\n"
    )


@pytest.fixture
def saved(tmp_path):
    """A function that saves a text to a file; its path."""

    def save(content, name="gc.log"):
        path = tmp_path / name
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return str(path)

    return save


def masked(text):
    """Without host, time, version and the folder of the logs."""
    text = text.replace(str(LOGS), "LOGS")
    text = re.sub(r'"(host|time_utc|version|command_line)": "[^"]*"', r'"\1": "…"', text)
    text = re.sub(r"^.*?  \S+Z  opskit \S+  log ", "…  log ", text, flags=re.MULTILINE)
    return re.sub(r"^    \$ .*$", "    $ …", text, flags=re.MULTILINE)


@pytest.mark.parametrize("format_", ["text", "table", "markdown", "json", "csv"])
@pytest.mark.parametrize("name", ["jdk25-safepoint-trace", "jdk11-safepoint-trace", "jdk17-timeout"])
def test_whole_output(inprocess, golden, name, format_):
    """What is printed, in every format."""
    done = inprocess("safepoints", LOGS / f"{name}.log", "-f", format_)
    assert done.code == 1  # each of them has a finding
    golden(f"safepoints-{name}.{format_}", masked(done.out))


def test_the_first_line_is_what_awk_prints(inprocess, samples):
    """Stamps removed, since they shift awk's fields: the same two averages to six digits, on every log that has both."""
    tried = 0
    for path in sorted((samples / "safepoint-logs").iterdir()):
        lines = re.findall(r"Total time for which.*took: [\d.]+ seconds", path.read_text(errors="replace"))
        if not lines:
            continue
        theirs = subprocess.run(["awk", AWK], input="\n".join(lines) + "\n", text=True, capture_output=True, check=True)
        assert inprocess("safepoints", path).out.startswith(theirs.stdout)
        assert inprocess("safepoints", "-", stdin="\n".join(lines)).out.startswith(theirs.stdout)
        tried += 1
    assert tried >= 4


def test_every_sample_is_read(inprocess, samples):
    """All of them: as many safepoints as lines about them; sums that agree with each other; JSON of the documented keys."""
    for path in sorted((samples / "safepoint-logs").iterdir()):
        document = json.loads(inprocess("safepoints", path, "-f", "json").out)
        assert document["safepoints"] > 0
        assert document["stopped_avg_s"] == pytest.approx(document["stopped_s"] / document["safepoints"])
        assert set(document["percentiles"]) == {"stopped_s", "ttsp_s"}
        shown = document["percentiles"]["stopped_s"]
        assert list(shown) == ["p50", "p90", "p99", "p99.9", "max"]
        assert list(shown.values()) == sorted(shown.values())
        assert document["worst"][0]["stopped_s"] == shown["max"]
        if document["operations"]:
            assert sum(row["safepoints"] for row in document["operations"]) == document["safepoints"]


def test_what_is_not_told_is_not_zero(inprocess):
    """JDK 6 writes no TTSP, no operation and no time."""
    text = "Total time for which application threads were stopped: 0,5 seconds\n"
    document = json.loads(inprocess("safepoints", "-", "-f", "json", stdin=text).out)
    assert document["stopped_avg_s"] == 0.5
    assert document["ttsp_avg_s"] is None
    assert document["stopped_share"] is None
    assert document["percentiles"]["ttsp_s"]["p50"] is None
    assert document["operations"] == []
    done = inprocess("safepoints", "-", stdin=text)
    assert done.out.startswith("stopped.avg=0.5, ttsp.avg=-\n")
    assert "the time to safepoint (TTSP) is not in this log" in done.err


def test_rotated_and_gzipped_files_come_in_the_order_of_time(inprocess, saved):
    """However they are named: a CSV of all stops is in order; three gzip members are one file."""
    parts = [nanos(at, "A", at * 1000) for at in range(1, 10)]
    first = saved("".join(parts[:3]), "gc.log.1.gz")
    second = saved("".join(parts[3:6]), "gc.log.0")
    members = saved(b"".join(gzip.compress(part.encode()) for part in parts[6:]), "gc.log")
    done = inprocess("safepoints", members, second, first, "-f", "csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [float(row["uptime_s"]) for row in rows] == list(range(1, 10))
    assert "read in the order of time" in done.err
    document = json.loads(inprocess("safepoints", members, second, first, "-f", "json").out)
    assert document["safepoints"] == 9
    assert document["stopped_s"] == pytest.approx(sum(range(1, 10)) * 1e-6)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_what_powershell_saved(inprocess, saved, encoding):
    """UTF-16 with a byte order mark, more of it than one read gives, gzipped or not."""
    text = "\ufeff" + "".join(f"{second}.000: " + STOPPED.format("0.5", "0.1") for second in range(3000))
    for name in ("gc.log", "gc.log.gz"):
        document = json.loads(inprocess("safepoints", saved(text.encode(encoding), name), "-f", "json").out)
        assert (document["safepoints"], document["stopped_s"]) == (3000, 1500)
        assert document["worst"][0]["uptime_s"] == 0


def test_by_dates_across_time_zones(inprocess, saved):
    """A later local time may be an earlier moment."""
    a = saved("2026-01-31T12:00:00.000+0200: " + STOPPED.format("0.1", "0.01"), "a")
    b = saved("2026-01-31T11:00:00.000+0000: " + STOPPED.format("0.2", "0.01"), "b")
    rows = list(csv.DictReader(io.StringIO(inprocess("safepoints", b, a, "-f", "csv").out)))
    assert [row["stopped_s"] for row in rows] == ["0.1", "0.2"]


def test_a_part_of_the_time(inprocess, saved):
    """--since and --until, by uptime and by date; what lies outside is counted on stderr."""
    path = saved("".join(nanos(at, "A", 1000 * at) for at in range(1, 11)))
    done = inprocess("safepoints", path, "--since", "4s", "--until", "6")
    assert "safepoints=3 " in done.out
    assert "7 safepoints lie before --since or after --until" in done.err
    dated = saved("".join(f"2026-01-31T10:0{at}:00.000+0100: " + STOPPED.format("0.1", "0.01") for at in range(6)), "d")
    for since in ("2026-01-31T10:03", "2026-01-31 10:03:00", "2026-01-31T09:03:00Z", "2026-01-31T10:03:00+0100"):
        assert "safepoints=3 " in inprocess("safepoints", dated, "--since", since).out


def test_slower_than_lists_all_of_them_and_sums_stay_whole(inprocess, saved):
    """Its own count beside the whole one."""
    path = saved("".join(nanos(at, "A", 1_000_000 * at) for at in range(1, 31)))
    done = inprocess("safepoints", path, "--slower-than", "10ms", "-f", "json")
    document = json.loads(done.out)
    assert document["safepoints"] == 30
    assert len(document["worst"]) == 20
    assert document["slower"] == {"safepoints": 20, "stopped_s": pytest.approx(0.410)}
    assert len(json.loads(inprocess("safepoints", path, "-n", "3", "-f", "json").out)["worst"]) == 3
    assert len(json.loads(inprocess("safepoints", path, "-n", "0", "-f", "json").out)["worst"]) == 30
    assert len(inprocess("safepoints", path, "--slower-than", "10ms", "-f", "csv").out.splitlines()) == 21


@pytest.mark.parametrize("by", ["operation", "minute"])
def test_sums_by_operation_and_by_minute(inprocess, saved, by):
    """In text, JSON and CSV alike."""
    path = saved("".join(nanos(at * 30, f"Op{at % 3}", 1_000_000) for at in range(1, 13)))
    rows = list(csv.DictReader(io.StringIO(inprocess("safepoints", path, "--by", by, "-f", "csv").out)))
    document = json.loads(inprocess("safepoints", path, "--by", by, "-f", "json").out)
    assert sum(int(row["safepoints"]) for row in rows) == 12
    assert [row[by] for row in rows] == [row[by] for row in document[f"{by}s"]]
    assert by.upper() in inprocess("safepoints", path, "--by", by).out


def test_the_verdict_and_the_advice_stand_where_they_belong(inprocess, saved):
    """The verdict on stdout, advice on stderr in text; both on stdout in Markdown; codes in JSON."""
    path = saved("".join(nanos(at, "RevokeBias", 2_000_000, 1_900_000) for at in range(1, 40)))
    done = inprocess("safepoints", path)
    assert "verdict: 39 safepoints stopped the application" in done.out
    assert "dominates" in done.out
    assert "ttsp-dominates" in done.err
    assert "bias-revocations" in done.err
    assert "ttsp-dominates" in inprocess("safepoints", path, "-f", "markdown").out
    found = json.loads(inprocess("safepoints", path, "-f", "json").out)["findings"]
    assert {finding["code"] for finding in found} == {"ttsp-dominates", "bias-revocations"}


def test_findings_decide_the_exit_code(inprocess, saved):
    """0 without a warning, in every format; 1 with one."""
    good = saved("".join(nanos(at, "Cleanup", 2_000_000) for at in range(1, 40)), "good")
    bad = saved("".join(nanos(at, "Cleanup", 200_000_000, 190_000_000) for at in range(1, 40)), "bad")
    for format_ in ("table", "text", "json", "csv", "markdown"):
        assert [inprocess("safepoints", path, "-f", format_).code for path in (good, bad)] == [0, 1]
    [found] = json.loads(inprocess("safepoints", bad, "-f", "json").out)["findings"]
    assert (found["code"], found["entity"]["kind"], found["entity"]["id"]) == ("ttsp-dominates", "file", bad)
    assert found["share"] == pytest.approx(0.95)


@pytest.mark.parametrize("format_", ["svg", "png"])
def test_the_timeline(inprocess, tmp_path, format_):
    """A picture with every operation in its legend and the slowest stop named."""
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    path = tmp_path / f"timeline.{format_}"
    assert inprocess("safepoints", LOGS / "jdk25-safepoint-trace.log", "-o", path).code == 1
    if format_ == "png":
        assert path.read_bytes().startswith(b"\x89PNG")
        return
    texts = ["".join(node.itertext()) for node in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314
    assert {"G1CollectForAllocation", "ThreadDump", "time to safepoint (TTSP)"} <= set(texts)
    assert any(re.fullmatch(r"\w+ [\d.]+ ms", text) for text in texts)


def test_an_interrupted_pipe_still_gives_what_came(tmp_path):
    """Ctrl-C: the sums of what was read, exit code 130."""
    fifo = tmp_path / "fifo"
    shutil.copy(LOGS / "jdk25-safepoint-trace.log", tmp_path / "log")
    process = subprocess.Popen(
        [sys.executable, "-m", "opskit", "safepoints", "-", "-f", "json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    assert not fifo.exists()
    process.stdin.write((tmp_path / "log").read_bytes() * 10)
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:  # all of the pipe was read, and the rest is waited for
        state = Path(f"/proc/{process.pid}/wchan").read_text()
        if "pipe" in state:
            break
        time.sleep(0.05)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert json.loads(out)["safepoints"] > 0


BAD = [
    ("empty", "", ["the file is empty", "-Xlog:safepoint", "-XX:+PrintGCApplicationStoppedTime"]),
    ("none", "hello\nworld\n", ["no safepoint in 2 lines", "-Xlog:safepoint", "JDK 6 to 8"]),
    ("cut", "Total time for which application threads were stopped: 0.00", ["no safepoint in 1 line", "cut:1"]),
    (
        "truncated.gz",
        gzip.compress(STOPPED.format("0.5", "0.1").encode() * 5000, mtime=0)[:-20],
        ["truncated gzip", "zcat"],
    ),
    ("damaged.gz", b"\x1f\x8b\x08\x00" + b"\xff" * 50, ["damaged gzip"]),
    ("log.xz", b"\xfd7zXZ\x00" + b"x" * 50, ["xzcat"]),
]


@pytest.mark.parametrize(("name", "content", "words"), BAD, ids=[name for name, _, _ in BAD])
def test_bad_input_is_one_clear_line(inprocess, tmp_path, name, content, words):
    """What was found where, and what to do; exit code 2, nothing on stdout."""
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    done = inprocess("safepoints", path)
    assert done.code == 2
    assert done.out == ""
    assert len(done.err.splitlines()) == 1
    for word in [name, *words]:
        assert word in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["/nonexistent/gc.log"], "No such file"),
        (["/"], "is a directory"),
        (["LOG", "LOG"], "named twice"),
        (["LOG", "-c", "3"], "samples a live JVM"),
        (["LOG", "-w"], "-w/--watch samples a live JVM"),
        (["LOG", "4242"], "4242 is a PID"),
        (["4242", "--by", "minute"], "is for logs"),
        (["LOG", "--since", "yesterday"], "is not a time"),
        (["LOG", "--since", "2026-13-01T00:00"], "is not a time"),
        (["LOG", "--since", "100h"], "lies between --since and --until"),
        (["LOG", "--since", "2026-01-01T00:00"], "no stamps that --since"),
        (["LOG", "-o", "json"], "did you mean -f json"),
    ],
)
def test_words_that_are_off(inprocess, arguments, words):
    """Exit code 2 and a line that says why."""
    log = str(LOGS / "jdk25-safepoint-trace.log")
    done = inprocess("safepoints", *(log if word == "LOG" else word for word in arguments))
    assert done.code == 2
    assert words in done.err


def test_names_from_a_log_cannot_act_on_a_terminal(inprocess, saved):
    """An operation's name with escapes is shown escaped."""
    path = saved(nanos(1, "evil\x1b[31m", 5000))
    for format_ in ("text", "table", "markdown", "csv"):
        assert "\x1b" not in inprocess("safepoints", path, "-f", format_).out


def test_a_log_in_text_imports_nothing_heavy(saved):
    """No rich, psutil, matplotlib; nothing of the search for JVMs."""
    modules = imported("safepoints", saved(nanos(1, "A", 5000)), "-f", "text")
    assert not modules & {*HEAVY, "opskit.jvm.discover"}
