"""`opskit jmap-diff`: saved histograms in every format, and live JVMs with a class that grows."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jvms
import pytest
from atonce import ForEach
from histotext import POST, text
from imports import HEAVY, imported
from nextsteps import try_next
from stracing import ACTS, OPENS, traced

from opskit.host import Host
from opskit.jvm.discover import find_jvm
from opskit.jvm.perfdata.counters import heap

RETAINED = "Workload$Retained"
MIB = 1 << 20


@pytest.fixture
def saved(tmp_path):
    """A function that saves histograms' texts to files a.txt, b.txt, …; gives the paths."""

    def save(*contents):
        paths = []
        for name, content in zip("abcdefgh", contents):
            path = tmp_path / f"{name}.txt"
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            paths.append(str(path))
        return paths

    return save


def post():
    """The table of the post, typed in as two histograms."""
    return (
        text([(name, 100, 10_000) for name, _, _ in POST]),
        text([(name, 100 + count, 10_000 + size) for name, count, size in POST]),
    )


BEFORE = text(
    [("[B", 30, 4000, "java.base@17"), ("[Ljava.lang.String;", 2, 64, "java.base@17"), ("a.Gone", 3, 48), ("a.Same", 1, 16)],
    modules=True,
)  # fmt: skip
AFTER = text(
    [("[B", 40, 5 << 20, "java.base@17"), ("[Ljava.lang.String;", 1, 32, "java.base@17"), ("a.New", 2, 32), ("a.Same", 1, 16)],
    modules=True,
)  # fmt: skip


def test_the_table_of_the_post_gives_its_rows(inprocess, saved):
    """Class, tab, instances, tab, bytes, both signed, largest growth first; the totals last."""
    done = inprocess("jmap-diff", *saved(*post()))
    *rows, total = done.out.splitlines()
    assert done.code == 0
    assert rows == [f"{name}\t{count:+d}\t{size:+d}" for name, count, size in POST] or sorted(rows) == sorted(
        f"{name}\t{count:+d}\t{size:+d}" for name, count, size in POST
    )
    sizes = [int(row.split("\t")[2]) for row in rows]
    assert sizes == sorted(sizes, reverse=True)
    assert total == (
        "# +2933 instances +371744 bytes; of these the VM's own <...> rows +2140 +309704; the rest +793 +62040"
    )


def test_no_vm_leaves_the_vms_own_out(inprocess, saved):
    """Rows and totals; the part that was left out is still named."""
    *rows, total = inprocess("jmap-diff", "--no-vm", *saved(*post())).out.splitlines()
    assert not [row for row in rows if row.startswith("<")]
    assert total == "# +793 instances +62040 bytes; all classes +2933 +371744"


def test_text_to_the_letter(inprocess, saved):
    """What only one side has, the JVM's own array names, nothing on stderr."""
    assert inprocess("jmap-diff", *saved(BEFORE, AFTER)) == (
        0,
        "[B\t+10\t+5238880\na.New\t+2\t+32\n[Ljava.lang.String;\t-1\t-32\na.Gone\t-3\t-48\n"
        "# +8 instances +5238832 bytes\n",
        "",
    )


def steady(out):
    """Without what differs from run to run."""
    out = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "2026-01-02T03:04:05Z", out)
    out = re.sub(r"opskit \d+\.\d+\.\d+", "opskit VERSION", out)
    out = re.sub(r'"version": "[^"]*"', '"version": "VERSION"', out)
    out = re.sub(r"/\S+?/([a-h]\.txt)", r"DIR/\1", out)
    host = os.uname().nodename
    return re.sub(rf'^{re.escape(host)}(?=  )|(?<="host": "){re.escape(host)}', "HOST", out, flags=re.MULTILINE)


@pytest.mark.parametrize("format_", ["text", "table", "json", "csv", "markdown"])
def test_a_series_in_every_format(inprocess, saved, golden, format_):
    """Whole outputs of three histograms, one of them cut, with a name that wants to act on the terminal."""
    third = text([("[B", 50, 10 << 20, "java.base@17"), ("a.New", 9, 144), ("a.Evil\x1b[31m|x", 1, 16)], modules=True)
    second = AFTER.rpartition("Total")[0]
    done = inprocess("jmap-diff", *saved(BEFORE, second, third), "-f", format_)
    assert done.code == 0
    golden(f"jmap-diff.{format_}", steady(done.out if format_ != "text" else done.out + done.err))


def test_json(inprocess, saved):
    """The documented keys; the JVM's names; modules without versions."""
    found = json.loads(inprocess("jmap-diff", *saved(BEFORE, AFTER), "-f", "json").out)
    assert found["classes"][0] == {
        "name": "[B", "module": "java.base", "instances": 40, "bytes": 5 << 20, "instances_diff": 10, "bytes_diff": 5238880,
    }  # fmt: skip
    assert found["total"]["instances_diff"] == 8
    assert found["total"]["bytes_diff"] == 5238832
    assert found["total"]["partial"] is False
    assert found["trend"] == []
    assert [(one["line"], one["rows"]) for one in found["histograms"]] == [(1, 4), (1, 4)]


def test_csv(inprocess, saved):
    """A header and a row a class, which a spreadsheet reads; -n cuts it."""
    rows = list(csv.DictReader(io.StringIO(inprocess("jmap-diff", *saved(BEFORE, AFTER), "-f", "csv").out)))
    assert [row["name"] for row in rows] == ["[B", "a.New", "[Ljava.lang.String;", "a.Gone"]
    assert rows[3] == {
        "name": "a.Gone", "module": "", "instances": "0", "bytes": "0", "instances_diff": "-3", "bytes_diff": "-48",
    }  # fmt: skip
    assert len(inprocess("jmap-diff", *saved(BEFORE, AFTER), "-f", "csv", "-n", "1").out.splitlines()) == 2


@pytest.mark.parametrize(("options", "rows"), [
    (["-n", "1"], ["[B"]),
    (["--min-bytes", "40"], ["[B", "a.Gone"]),
    (["--include", "^a[.]"], ["a.New", "a.Gone"]),
    (["--exclude", "New|Gone"], ["[B", "[Ljava.lang.String;"]),
    (["--sort", "name"], ["[B", "[Ljava.lang.String;", "a.Gone", "a.New"]),
    (["--sort", "instances"], ["[B", "a.New", "[Ljava.lang.String;", "a.Gone"]),
    (["--sort", "growth"], ["a.New", "[B", "[Ljava.lang.String;", "a.Gone"]),
    (["--by", "package"], ["(arrays of primitives)", "a", "java.lang"]),
    (["--by", "module"], ["java.base", "(no named module)"]),
])  # fmt: skip
def test_choosing(inprocess, saved, options, rows):
    """Each option does what it says."""
    out = inprocess("jmap-diff", *options, *saved(BEFORE, AFTER)).out
    assert [line.split("\t")[0] for line in out.splitlines()[:-1]] == rows


def test_a_series_in_one_file_and_standard_input(inprocess, saved):
    """A log with several histograms is a series by itself; - is standard input."""
    [log] = saved("noise\n" + BEFORE + "more noise\n" + AFTER)
    assert inprocess("jmap-diff", log).out == inprocess("jmap-diff", *saved(BEFORE, AFTER)).out
    before, _ = saved(BEFORE, AFTER)
    assert inprocess("jmap-diff", before, "-", stdin=AFTER).out == inprocess("jmap-diff", *saved(BEFORE, AFTER)).out


def test_a_pipe_can_be_a_file(saved):
    """`opskit jmap-diff <(…) <(…)`."""
    before, after = saved(BEFORE, AFTER)
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m opskit jmap-diff <(cat {before}) <(cat {after})"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("[B\t+10\t+5238880\n")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_what_windows_writes(inprocess, saved, encoding):
    """PowerShell's > writes UTF-16; line ends are CRLF."""
    forms = [content.replace("\n", "\r\n").encode(encoding) for content in (BEFORE, AFTER)]
    assert inprocess("jmap-diff", *saved(*forms)).out == inprocess("jmap-diff", *saved(BEFORE, AFTER)).out


def grown(*sizes):
    """Histograms in which a.Leak has so many bytes, beside classes that stay the same."""
    return [text([("a.Leak", size // 16, size), ("[B", 10, 100_000)]) for size in sizes]


@pytest.mark.parametrize(("sizes", "severities"), [
    ((1600, 160_000), []),
    ((1600, 80_000, 160_000), ["warning"]),
    ((1600, 1616, 1632), []),
    ((160_000, 1600, 160_000), []),
])  # fmt: skip
def test_findings_and_exit_code(inprocess, saved, sizes, severities):
    """Two points are no trend. Growth that may be garbage is a note; from one full GC to the next a warning, exit code 1."""
    done = inprocess("jmap-diff", *saved(*grown(*sizes)), "-f", "json")
    found = json.loads(done.out)["findings"]
    assert [one["severity"] for one in found] == ["note" for _ in severities]
    assert {one["code"] for one in found} <= {"class-keeps-growing"}
    assert done.code == 0
    after = [f"GC(1) Class Histogram (after full gc)\n{histogram}" for histogram in grown(*sizes)]
    done = inprocess("jmap-diff", *saved(*after), "-f", "json")
    assert [one["severity"] for one in json.loads(done.out)["findings"]] == ["warning"] * len(severities)
    assert done.code == len(severities)


def test_a_finding_names_its_file(inprocess, saved):
    """The subject is the last file; in text it is on stderr, apart from the rows."""
    paths = saved(*grown(1600, 80_000, 160_000))
    done = inprocess("jmap-diff", *paths)
    assert (
        f"note class-keeps-growing ({paths[2]}): a.Leak grew, and may be garbage: in 2 of 2 steps, +77.3 KiB a histogram"
        in done.err
    )
    assert done.out.splitlines()[0] == "a.Leak\t+9900\t+158400"
    assert "# possible suspect 1: a.Leak" in done.out
    assert "# unknown whether a collection ran between these files: growth may be garbage" in done.out


def test_times_in_the_names_of_files_make_slopes_by_the_minute(inprocess, tmp_path):
    """As --save writes them."""
    for second in (0, 30, 60):
        name = tmp_path / f"histogram-7-20260102T0304{second % 60:02d}.000Z.txt"
        name = name if second < 60 else tmp_path / "histogram-7-20260102T030500.000Z.txt"
        name.write_text(text([("a.B", 1 + second, 16 + 16 * second)]))
    found = json.loads(inprocess("jmap-diff", *sorted(tmp_path.iterdir()), "-f", "json").out)
    assert found["trend"][0]["bytes_per_min"] == pytest.approx(16 * 60)
    assert found["trend"][0]["steps_grown"] == 2


def test_cut_files_have_partial_totals(inprocess, saved):
    """And a class that is missing in a cut one may have been there."""
    cut = BEFORE.rpartition("Total")[0]
    done = inprocess("jmap-diff", *saved(cut, AFTER))
    assert done.out.splitlines()[-1] == "# partial: +8 instances +5238832 bytes"
    assert "a.txt:1: cut short: it has no Total line" in done.err
    assert "only the last histogram has a.New" in done.err


def test_the_same_file_twice_and_other_jvms_are_said(inprocess, saved):
    """On stderr in text, as notes in JSON."""
    before, other = saved(BEFORE, BEFORE.replace("java.base@17", "java.base@21"))
    assert "the same in every row" in inprocess("jmap-diff", before, before).err
    assert "JDK versions 17, 21" in inprocess("jmap-diff", before, other).err
    notes = json.loads(inprocess("jmap-diff", before, other, "-f", "json").out)["notes"]
    assert any("different JVMs" in note for note in notes)


def test_a_table_without_rows_is_left_out(inprocess, saved):
    """The verdict says that nothing has grown; also where a series has a trend, but no rows are left."""
    done = inprocess("jmap-diff", *saved(BEFORE, BEFORE), "-f", "table")
    assert "nothing has grown" in done.out
    assert "instances now" not in done.out
    assert "instances now" not in inprocess("jmap-diff", *saved(BEFORE, BEFORE, BEFORE), "-f", "table").out


def test_gzip_files_are_read(inprocess, saved):
    """By what is in them, whatever they are called."""
    packed = saved(*(gzip.compress(content.encode()) for content in (BEFORE, AFTER)))
    done = inprocess("jmap-diff", *packed)
    assert done == inprocess("jmap-diff", *saved(BEFORE, AFTER))
    assert done.out.startswith("[B\t+10")


@pytest.mark.parametrize(("content", "said"), [
    (BEFORE.replace("4000", "400O"), "a.txt:3: not a row of a histogram (number: instances bytes class): '1:            30           400O"),
    (BEFORE.replace(" 4000", " 4008"), "a.txt:7: the 4 rows add up to 36 instances and 4136 bytes, not to this Total"),
    ("Full thread dump OpenJDK\n", "a.txt: not a class histogram but a thread dump"),
    (b"JAVA PROFILE 1.0.2\0" + bytes(9000), "a.txt: not a class histogram but a heap dump (hprof)"),
    (gzip.compress(b"Full thread dump OpenJDK\n", mtime=0), "a.txt: not a class histogram but a thread dump"),
    ("", "a.txt: not a class histogram but empty"),
])  # fmt: skip
def test_bad_files(inprocess, saved, content, said):
    """One line: the place, what was found; exit 2."""
    done = inprocess("jmap-diff", *saved(content, AFTER))
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1


def test_bad_words(inprocess, saved, tmp_path):
    """No such file, a directory, a single histogram, a PID with files, options that go with a PID, no regular expression."""
    before, after = saved(BEFORE, AFTER)
    for words, said in [
        ([before, tmp_path / "none"], "none: cannot be read: No such file or directory"),
        ([before, tmp_path], "is a directory; name the files in it"),
        ([before], "a single histogram"),
        (["4242", before], "a PID or files, not both"),
        ([before, "4242"], "a PID or files, not both"),
        ([before, after, "--live"], "--live goes with a PID"),
        ([before, after, "-w"], "-w/--watch goes with a PID"),
        ([before, after, "-c", "3"], "-c/--count goes with a PID"),
        ([before, after, "--timeout", "3"], "--timeout goes with a PID"),
        ([before, after, "--include", "("], "not a regular expression"),
        ([before, after, "-o", "x.pdf"], "unknown suffix '.pdf'"),
        (["-", "-"], "only once"),
        (["no.such.Main"], "no.such.Main"),
        (["999999999"], "no process 999999999"),
        (["1", "-c", "1"], "1 is not in the range x>=2"),
    ]:
        done = inprocess("jmap-diff", *words)
        assert (done.code, done.out) == (2, ""), words
        assert said in done.err, words


def test_a_file_whose_name_is_digits(inprocess, saved, tmp_path):
    """./5 is a file; a bare 5 a PID."""
    for name, path in zip("56", saved(BEFORE, AFTER)):
        os.rename(path, tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-m", "opskit", "jmap-diff", "./5", "./6"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("[B\t+10")


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_pictures(inprocess, saved, tmp_path, suffix):
    """Bars of a difference, lines of a series; the names are the readable ones."""
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    third = AFTER.replace("   5242880", "   9242880").replace("5242960", "9242960")
    for number, contents in enumerate([(BEFORE, AFTER), (BEFORE, AFTER, third)]):
        path = tmp_path / f"growth{number}.{suffix}"
        done = inprocess("jmap-diff", *saved(*contents), "-o", path)
        assert (done.code, done.out) == (0, "")
        data = path.read_bytes()
        assert data.startswith(b"\x89PNG" if suffix == "png" else b"<?xml")
        assert suffix == "png" or b">byte[]<" in data


def test_without_matplotlib_one_line_says_how_to_get_it(saved, tmp_path):
    """Before any work is done."""
    code = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'matplotlib' else find(name, *rest)\n"
        "from opskit.cli import run; sys.exit(run(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "jmap-diff", *saved(BEFORE, AFTER), "-o", str(tmp_path / "x.png")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "pip install 'opskit[plot]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "x.png").exists()


def test_files_need_nothing_heavy(saved):
    """Neither sockets, nor rich, nor json are imported for text."""
    assert not imported("jmap-diff", *saved(BEFORE, AFTER)) & {
        *HEAVY,
        "opskit.jvm.attach.client",
        "opskit.jvm.discover",
    }


# Real JVMs


def start(*words):
    """Start opskit; its stderr comes through a pipe."""
    return subprocess.Popen(
        [sys.executable, "-m", "opskit", "jmap-diff", *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for(condition, what, deadline_s=120):
    """Poll until something holds."""
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"{what} did not come"
        time.sleep(0.02)


def a_class_that_grows(case):
    version, live = case
    with tempfile.TemporaryDirectory() as place, jvms.running("retain=500", version=version) as jvm:
        _a_class_that_grows(jvm, Path(place) / "kept", live=live)


def _a_class_that_grows(jvm, kept, *, live):
    asked = ["--live", "--yes"] if live else []  # on a crowded machine the pause is expected to be long
    process = start(jvm.pid, "-i", "2s", "--save", kept, "--include", "Retained", "-f", "json", *asked)
    wait_for(lambda: kept.is_dir() and len(list(kept.iterdir())) == 1, "the first histogram")
    jvm.grow()
    jvm.grow()
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    found = json.loads(out)
    [row] = [row for row in found["classes"] if row["name"] == RETAINED]
    assert row["instances_diff"] == 2000
    assert row["bytes_diff"] == 48_000
    assert row["instances"] == 2500
    assert found["target"]["pid"] == jvm.pid
    assert found["live"] is live
    assert all(0 < one["stopped_ms"] < 60_000 for one in found["histograms"])
    assert re.search(r"(heap used|resident memory .*) [\d.]+ [KMG]iB: each histogram.* stops it for about \d", err)
    files = sorted(kept.iterdir())
    assert [str(file) for file in files] == found["saved"]
    again = subprocess.run(
        [sys.executable, "-m", "opskit", "jmap-diff", *files, "--include", "Retained"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"{RETAINED}\t+2000\t+48000\n" in again.stdout


GROWING = ForEach(a_class_that_grows, [(version, live) for version in jvms.WHEELS for live in (False, True)])


@pytest.mark.parametrize("live", [False, True])
def test_a_class_that_grows_by_a_known_number(jvm_version, live):
    """2000 objects of 24 bytes more between two histograms, on every JVM; their raw text is kept, and gives the same."""
    GROWING.result((jvm_version, live))


def test_it_starts_the_listener_and_does_nothing_else(workload, saved):
    """As strace sees it: one trigger file, one SIGQUIT, and the trigger's removal; nothing the second time, nor with files."""
    jvm = workload("retain=500")
    words = ("jmap-diff", jvm.pid, "-i", "100ms")
    traced(*words).only_started_the_listener(jvm.pid)
    assert traced(*words).acting() == []
    assert traced("jmap-diff", *saved(BEFORE, AFTER), calls=(*OPENS, *ACTS, "connect")).acting() == []


def a_leak(version):
    modes = ("leak=1000000", "cache=3000", "allocate=3000000")
    with jvms.running(*modes, version=version, options=("-Xmx96m",)) as jvm:
        _a_leak(jvm)


def _a_leak(jvm):
    process = start(jvm.pid, "--live", "--yes", "-i", "0.5s", "-c", "6", "-f", "json")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 1, err
    found = json.loads(out)
    first = found["trend"][0]
    assert first["name"] == "Workload$Leaked"
    assert first["steps_grown"] == first["steps"] == 5
    assert first["steady"]
    assert first["bytes_per_min"] > 0
    assert 90 * MIB < found["heap_max_bytes"] <= 100 * MIB
    assert found["heap_full_in_min"] > 0
    assert any("Workload$Leaked keeps growing" in line for line in found["verdict"])
    [warning] = [
        one for one in found["findings"] if one["summary"].startswith("Workload$Leaked keeps growing: in 5 of 5")
    ]
    assert (warning["code"], warning["severity"]) == ("class-keeps-growing", "warning")
    assert (warning["entity"]["kind"], warning["entity"]["id"]) == ("process", str(jvm.pid))
    with tempfile.TemporaryDirectory() as place:
        assert (
            try_next([warning], "class-keeps-growing", FILE=f"{place}/heap.hprof")
            == f"jcmd {jvm.pid} GC.heap_dump FILE"
        )
    assert warning["window_s"] > 2
    assert any("at this slope the heap is full in" in line for line in found["verdict"])


LEAKING = ForEach(a_leak, jvms.WHEELS)


def test_the_leak_is_the_first_suspect(jvm_version):
    """One class leaks 1 MB a second beside a churning cache: a warning, ranked first, with a forecast for the heap."""
    LEAKING.result(jvm_version)


def test_a_healthy_jvm_that_makes_garbage_has_no_leak(inprocess, workload):
    """Between two collections all that is allocated grows: no finding, and the command that tells, which finds nothing either."""
    jvm = workload("cache=3000", "allocate=5000000", options=("-Xms400m", "-Xmx400m", "-Xmn300m"))
    done = inprocess("jmap-diff", jvm.pid, "-i", "0.3s", "-c", "4", "-f", "json")
    found = json.loads(done.out)
    assert (done.code, found["findings"], found["heap_full_in_min"]) == (0, [], None)
    assert any(line.endswith(f": opskit jmap-diff {jvm.pid} --live -c 5") for line in found["verdict"])
    done = inprocess("jmap-diff", jvm.pid, "--live", "--yes", "-i", "0.3s", "-c", "5", "-f", "json")
    assert json.loads(done.out)["findings"] == []
    assert done.code == 0


def test_a_watch_compares_all_so_far(inprocess, workload):
    """-w takes one more histogram each time; the first one alone has nothing to compare with."""
    jvm = workload("leak=1000000")
    blocks = inprocess("jmap-diff", jvm.pid, "-w", "--live", "-i", "0.3s", "-c", "3", "-f", "table")
    assert "1 histogram taken; growth is shown from the second one on" in blocks.out
    assert "what keeps growing" in blocks.out
    found = json.loads(inprocess("jmap-diff", jvm.pid, "-w", "-i", "0.3s", "-c", "3", "-f", "json").out)
    assert len(found["histograms"]) == 3
    assert found["trend"][0]["steps"] == 2


def test_a_jvm_that_does_not_answer(inprocess, workload):
    """It ends after --timeout, and names the thread that delays the safepoint."""
    jvm = workload("hog", options=jvms.HOG_OPTIONS)
    ran = inprocess("jmap-diff", jvm.pid, "-i", "1", "--timeout", "2")
    assert ran.code == 2
    assert "within 2 s" in ran.err
    assert 'thread "hog"' in ran.err


def test_a_jvm_is_named_by_its_main_class(inprocess, workload, tmp_path):
    """A part of it will do; where several match they are listed, exit 2."""
    workload("sleep=1")
    workload("sleep=1")
    done = inprocess("jmap-diff", "orkloa")
    assert (done.code, done.out) == (2, "")
    assert "JVMs match 'orkloa'" in done.err


def test_ctrl_c_uses_what_there_is(workload, tmp_path):
    """The difference of the histograms that were taken; exit 130."""
    jvm = workload("leak=1000000")
    kept = tmp_path / "kept"
    process = start(jvm.pid, "-i", "1s", "-c", "1000", "--save", kept)
    wait_for(lambda: kept.is_dir() and len(list(kept.iterdir())) >= 2, "two histograms")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Workload$Leaked\t+" in out
    assert "Traceback" not in err


def test_ctrl_c_after_one_says_that_one_shows_nothing(workload, tmp_path):
    """But where it is kept."""
    jvm = workload()
    kept = tmp_path / "kept"
    process = start(jvm.pid, "--save", kept)
    wait_for(lambda: kept.is_dir() and list(kept.iterdir()), "a histogram")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    assert f"only one histogram was taken, and one shows no growth; it is in {kept}" in err


def test_a_jvm_that_ends_meanwhile(workload, tmp_path):
    """What was taken before is shown, and that it ended."""
    jvm = workload("leak=1000000")
    kept = tmp_path / "kept"
    process = start(jvm.pid, "--live", "-i", "1s", "-c", "1000", "--save", kept)
    wait_for(lambda: kept.is_dir() and len(list(kept.iterdir())) >= 3, "three histograms")
    jvm.stop()
    out, err = process.communicate(timeout=120)
    assert process.returncode == 1, err
    assert "# suspect 1: Workload$Leaked" in out
    assert f"no process {jvm.pid}" in err


def test_a_jvm_without_counters(inprocess, workload):
    """-XX:-UsePerfData: the estimate is by its resident memory; a note says that the pauses are unknown."""
    jvm = workload("retain=10", options=("-Xmx64m", "-XX:-UsePerfData"))
    done = inprocess("jmap-diff", jvm.pid, "-i", "0.2", "--yes")
    assert done.code == 0
    assert "resident memory" in done.err
    assert "is unknown: it shares no counters" in done.err


BIG = ("-Xmx1200m", "-Xms1200m", "-XX:+UseSerialGC")


def full(jvm):
    """Wait until the JVM's counters have the size of a heap whose histogram stops it for more than a second."""
    host = Host.at(None, None)
    wait_for(lambda: heap(find_jvm(host.fs, jvm.pid).perf).used_bytes > 450 * MIB, "a full heap")
    return jvm


def test_above_a_second_it_asks_first(inprocess, workload):
    """Nothing is sent without --yes: not even the listener is started."""
    jvm = full(workload("retain=24000000", options=BIG))
    done = inprocess("jmap-diff", jvm.pid, "--live", "-i", "0.1")
    assert (done.code, done.out) == (2, "")
    assert "Nothing was sent; add --yes" in done.err
    assert not os.path.exists(f"/tmp/.java_pid{jvm.pid}")


def test_a_typed_yes_will_do(workload):
    """On a terminal it asks; anything but yes is a no."""
    jvm = full(workload("retain=24000000", options=BIG))
    for answer, code in ((b"no\n", 2), (b"yes\n", 0)):
        leader, follower = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "opskit", "jmap-diff", str(jvm.pid), "--live", "-i", "0.1", "-f", "text"],
            stdin=follower, stdout=subprocess.PIPE, stderr=follower,
        )  # fmt: skip
        os.close(follower)
        shown = b""
        while b"Type yes" not in shown:
            assert select.select([leader], [], [], 60)[0], shown
            shown += os.read(leader, 4096)
        os.write(leader, answer)
        out = process.communicate(timeout=120)[0]
        os.close(leader)
        assert process.returncode == code, shown
        assert out.endswith(b"bytes\n") or code


def test_another_pid_namespaces_jvm_is_not_asked(inprocess, workload, tmp_path):
    """A PID of --proc may be another process here."""
    jvm = workload()
    (tmp_path / "self").mkdir()
    (tmp_path / str(jvm.pid)).mkdir()
    done = inprocess("jmap-diff", jvm.pid, "--proc", tmp_path)
    assert done.code == 2
    assert "Nothing was sent" in done.err


def test_a_place_that_cannot_be_written_is_said_before_anything_is_sent(inprocess, workload, tmp_path):
    """--save into a file."""
    jvm = workload()
    (tmp_path / "file").write_text("")
    done = inprocess("jmap-diff", jvm.pid, "--save", tmp_path / "file" / "x")
    assert done.code == 2
    assert "--save" in done.err
    assert not os.path.exists(f"/tmp/.java_pid{jvm.pid}")


def test_the_real_ones(inprocess, samples):
    """Each real file given twice: that is said, and where it holds one histogram, no row differs."""
    for file in sorted((samples / "class-histograms").iterdir()):
        done = inprocess("jmap-diff", file, file, "-f", "json")
        assert done.code == 0, file.name
        found = json.loads(done.out)
        assert any("the same in every row" in note for note in found["notes"]), file.name
        assert len(found["histograms"]) > 2 or found["classes"] == []
