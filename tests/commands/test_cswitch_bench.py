"""`opskit cswitch --bench` on this machine: beside a program in C, every format, Ctrl-C, children that end with opskit, bad words."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys

import nativeprograms
import promtext
import pytest
from answers import FORMATS, answer, refused, valid
from measuring import gone, measuring
from shells import NOBODY
from terminal import on_terminal

CPU = min(os.sched_getaffinity(0))


@pytest.fixture
def of(inprocess):
    """The part `bench` of the JSON object of a run, valid by its schema."""

    def run(*words):
        document = answer(inprocess, "cswitch", "--bench", *words, codes=(0,))
        assert document["threads"] is None
        return document["bench"]

    return run


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The same in C: a function of CPUs and words that returns the shortest system call and switch, in ns, and switches a round trip."""
    program = nativeprograms.build("switches.c", tmp_path_factory.mktemp("switches") / "switches", "-O2")

    def run(*words):
        said = nativeprograms.run(program, *words).split()
        return float(said[1]), float(said[4]), float(said[7])

    return run


def by_kind(found, size=0):
    """The figures without memory, or with so much."""
    return {row["what"]: row for row in found["figures"] if row["working_set_bytes"] == size}


def closest(look, low, high, tries=6):
    """The ratio of the shortest of what each side measured, over so many tries until it is within the bounds."""
    ours, theirs = [], []
    for _ in range(tries):
        one, other = look()
        ours.append(one)
        theirs.append(other)
        if low <= min(ours) / min(theirs) <= high:
            break
    return min(ours) / min(theirs)


def test_a_switch_beside_a_program_in_c(of, reference):
    """0.9 to 1.35 of it on one CPU, by turns; both divide by counted switches, of which there are two a round trip."""
    seen = []

    def look():
        row = by_kind(of("--pin", "one"))["one-cpu"]
        seen.append(row)
        _, theirs, counted = reference(CPU, CPU, 500)
        assert counted == pytest.approx(2, abs=0.3)
        return row["least_s"] * 1e9, theirs

    assert 0.9 <= closest(look, 0.9, 1.35) <= 1.35
    assert all(row["cpus"] == str(CPU) and row["cpu_s"] <= 0.6 for row in seen), seen
    assert all(1.9 <= row["switches"] / row["round_trips"] <= 2.5 for row in seen), seen


def test_a_system_call_beside_a_program_in_c(of, reference):
    """At most 1.7 of it."""

    def look():
        return by_kind(of("--pin", "one"))["system-call"]["least_s"] * 1e9, reference(CPU, CPU, 200)[0]

    assert 0.7 <= closest(look, 0.7, 1.7) <= 1.7


def test_a_working_set_beside_a_program_in_c(of, reference):
    """64 KiB that both processes overwrite before each switch; the memory is in the figure's own calls as well."""

    def look():
        row = by_kind(of("--pin", "one", "--ws", "64K"), 65536)["one-cpu"]
        return row["least_s"] * 1e9, reference(CPU, CPU, 300, 65536)[1]

    assert 0.6 <= closest(look, 0.7, 1.6) <= 1.8


def test_larger_working_sets_cost_more(of):
    """At most 0.6 s of CPU time for each figure, however much memory there is."""
    found = of("--pin", "one", "--ws", "64K,16M")
    none, small, large = (by_kind(found, size)["one-cpu"] for size in (0, 65536, 16 << 20))
    assert large["least_s"] is None or large["least_s"] > 3 * none["least_s"]
    assert large["median_s"] > 3 * none["median_s"]
    assert max(row["cpu_s"] for row in (none, small, large)) <= 0.6
    assert large["round_trips"] < small["round_trips"]


def test_two_cpus_and_no_pinning(of):
    """Each kind of pair that this machine has; on two CPUs each byte still takes two switches."""
    found = by_kind(of())
    kinds = [*found]
    assert kinds[:2] == ["system-call", "one-cpu"]
    if len(os.sched_getaffinity(0)) == 1:
        pytest.skip("needs two CPUs")
    assert kinds[-1] == "not-pinned"
    pairs = [found[kind] for kind in kinds[2:-1]]
    assert pairs
    for row in (*pairs, found["not-pinned"]):
        assert 0 < row["least_s"] <= row["median_s"]
        assert row["switches"] > row["round_trips"]
        assert row["cpu_s"] <= 0.6
    assert found["not-pinned"]["cpus"] is None
    assert all(len(row["cpus"].replace("-", ",").split(",")) == 2 for row in pairs)


def test_only_on_cpus_that_we_may_use(opskit):
    """As taskset says: without another CPU there is one pairing; --pin two is impossible."""
    words = [sys.executable, "-m", "opskit", "cswitch", "--bench", "-f", "text"]
    ran = subprocess.run(["taskset", "-c", str(CPU), *words], capture_output=True, text=True, check=True)
    assert [line.split()[:2] for line in ran.stdout.splitlines()[-2:]] == [
        ["system-call", str(CPU)],
        ["one-cpu", str(CPU)],
    ]
    ran = subprocess.run(
        ["taskset", "-c", str(CPU), *words, "--pin", "two"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == f"opskit: --pin two: only CPU {CPU} may be used here\n"


@pytest.mark.parametrize("format_", FORMATS)
def test_every_format(inprocess, format_):
    """A row for each figure, and what was not measured."""
    done = inprocess("cswitch", "--bench", "--pin", "one", "-f", format_)
    assert done.code == 0, done
    assert "Threads: not measurable from Python" in done.out + done.err
    if format_ == "prometheus":
        parsed = promtext.parse(done.out)
        value = promtext.value(parsed, "opskit_cswitch_bench_least_seconds", what="one-cpu", cpus=str(CPU), memory="0")
        assert 1e-7 < value < 1e-3
    elif format_ == "csv":
        rows = {row["what"]: row for row in csv.DictReader(io.StringIO(done.out))}
        assert [*rows] == ["system-call", "one-cpu"]
        assert 1e-7 < float(rows["one-cpu"]["least_s"]) < 1e-3
        assert int(rows["one-cpu"]["switches"]) > 100
    elif format_ == "json":
        document = json.loads(done.out)
        assert document["bench"]["servers"][1]["cpu"] == "Intel 5150 (2.67 GHz)"
        assert document["verdict"][0].startswith("A process switch on one CPU costs ")
    else:
        assert "A process switch on one CPU costs " in done.out
        assert ("Intel E5-2620 (2 GHz)" in done.out) == (format_ != "text")


def test_on_a_terminal_it_fits_the_first_screen():
    """80 x 24, verdict first; the progress line is erased."""
    code, shown = on_terminal("cswitch", "--bench", "--pin", "one", env={"NO_COLOR": "1"})
    lines = shown.replace("\r", "").splitlines()
    assert code == 0
    assert lines[1].startswith("A process switch on one CPU costs "), shown
    assert len([line for line in lines if line]) < 24
    assert max(map(len, lines)) <= 80


def measuring_long(*words, sizes="1K,2K,4K,8K,16K,32K,64K,128K"):
    """A run that takes many seconds, with two children at work."""
    return measuring("cswitch", "--bench", "--ws", sizes, *words, children=2)


def test_interrupted_it_shows_what_there_is():
    """Exit code 130, whole JSON with the figures so far; no child is left."""
    running, children = measuring_long("-f", "json")
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert (running.returncode, "Traceback" in err) == (130, False)
    document = valid("cswitch", out)
    assert document["bench"]["interrupted"] is True
    assert 1 <= len(document["bench"]["figures"]) < 10
    assert document["verdict"][0].startswith("Interrupted: ")
    assert len(children) == 2
    assert gone(children)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_the_children_end_with_it(number):
    """However it ends."""
    running, children = measuring_long("-f", "text")
    running.send_signal(number)
    _, err = running.communicate(timeout=30)
    assert running.returncode == -number, err
    assert len(children) == 2
    assert gone(children)


@pytest.mark.parametrize("side", [0, 1])
def test_a_child_that_is_killed(side):
    """Its figure is missing, and why; the others are there."""
    running, children = measuring_long("--pin", "one", "-f", "json", sizes="1K")
    os.kill(children[side], signal.SIGKILL)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 0, err
    document = json.loads(out)
    why = "the process that measures has ended"
    assert document["bench"]["failed"] == [{"what": "one-cpu", "cpus": str(CPU), "working_set_bytes": 0, "why": why}]
    assert f"Not measured: switch on one CPU (CPU {CPU}): {why}." in document["notes"]
    assert [row["what"] for row in document["bench"]["figures"]] == ["system-call", "one-cpu"]
    assert gone(children)


def test_another_user(as_user, inprocess):
    """It needs no rights."""
    inprocess("cswitch", "--bench", "--pin", "one", "-f", "json")  # nobody may not be able to import the modules
    done = as_user(NOBODY, lambda: inprocess("cswitch", "--bench", "--pin", "one", "-f", "json").out)
    assert [row["what"] for row in json.loads(done)["bench"]["figures"]] == ["system-call", "one-cpu"]


BAD = {
    ("--pin", "one"): "opskit: --pin goes with --bench: add --bench",
    ("--ws", "64K"): "opskit: --ws goes with --bench: add --bench",
    ("--bench", "--pin", "three"): "opskit cswitch: Invalid value for '--pin': 'three' is not one of",
    ("--bench", "--ws", "many"): "opskit: --ws many: write up to 8 sizes from 1K to 256M: --ws 64K,1M,16M",
    ("--bench", "--ws", ""): "opskit: --ws : write up to 8 sizes",
    ("--bench", "1"): "opskit: --bench and PROCESS exclude each other: choose one",
    ("--bench", "--ask"): "opskit: --bench and --ask exclude each other: choose one",
    ("--bench", "-w"): "opskit: --bench and -w/--watch exclude each other: choose one",
    ("--bench", "-i", "1"): "opskit: --bench and -i/--interval exclude each other: choose one",
    ("--bench", "-u", "root"): "opskit: --bench and -u/--user exclude each other: choose one",
    ("--bench", "-n", "3"): "opskit: --bench and -n/--top exclude each other: choose one",
}  # fmt: skip


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_bad_usage(inprocess, words):
    """Exit code 2, and a line that says what to type."""
    refused(inprocess("cswitch", *words), BAD[words])
