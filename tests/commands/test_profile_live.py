"""`opskit jpmp PID --on-cpu` and `opskit profile` on real processes: what is measured, by whom, at what price."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import jvms
import pytest
from sampling import wait_until_it_samples, wait_until_it_used
from schemafiles import keeps_to_schema
from stracing import ACTS, OPENS, traced
from terminal import on_terminal

from opskit.analysis.jpmp.frame_marks import JAVA_KINDS

SPIN = "import zlib\ndata = bytes(range(256)) * 4096\nwhile True:\n    zlib.crc32(data)\n"


@pytest.fixture(scope="module")
def burners(root_only):
    """A JVM with threads that burn 4:2:1, sleepers and a virtual thread that spins."""
    jvm = jvms.start("burn=4:2:1", "sleep=3", "virtualburn=1", version=21)
    yield jvm
    jvm.stop()


@pytest.fixture(scope="module")
def native():
    """A process without a JVM that uses all the CPU time it gets."""
    process = subprocess.Popen([sys.executable, "-c", SPIN])
    yield process
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def profiled(burners, opskit):
    """The JSON object of 2 s."""
    done = opskit("jpmp", burners.pid, "--on-cpu", "--duration", "2s", "--by-thread", "-f", "json")
    assert done.code in (0, 1), done.err
    return json.loads(done.out)


def test_what_burns_is_found_without_asking_the_jvm(profiled, burners):
    """The method, its threads by their full names, the kind of each frame; weights are CPU ms and add up."""
    assert (profiled["weight"], profiled["profiler"]["sampler"], profiled["profiler"]["fallback"]) == (
        "cpu_ms",
        "unwind",
        None,
    )
    assert profiled["target"]["main"] == "Workload"
    assert profiled["methods"][0]["name"] == "Workload.work"
    assert (
        profiled["methods"][0]["self_low"]
        <= profiled["methods"][0]["self_share"]
        <= profiled["methods"][0]["self_high"]
    )
    assert re.match(
        r"Workload\.work uses [\d.]+ % ± [\d.]+ of the CPU time itself \([\d,]+ ms\) in ", profiled["verdict"][0]
    )
    for stack in profiled["stacks"]:
        assert len(stack["kinds"]) == len(stack["frames"])
    burning = [stack for stack in profiled["stacks"] if "Workload.work" in stack["frames"]]
    assert {kind for stack in burning for kind in stack["kinds"]} & JAVA_KINDS
    roots = {stack["frames"][-1] for stack in burning}
    assert roots & {"burn-4", "burn-2", "burn-1"}
    assert any("virtual" in name for stack in burning for name in stack["frames"][-2:-1])
    shown = sum(stack["cpu_ms"] for stack in profiled["stacks"])
    assert shown == pytest.approx(profiled["cpu_ms"], rel=0.03, abs=25)
    assert profiled["profiler"]["explained"] >= 0.9
    assert profiled["samples"] is None  # no dump was taken
    keeps_to_schema(profiled, "jpmp")


def test_nothing_is_sent_to_it(burners):
    """As strace sees it: no signal, no connection, no file written, no ptrace; perf events and reads alone."""
    done = traced("jpmp", burners.pid, "2", "0.2", "--on-cpu", calls=(*OPENS, *ACTS, "connect", "perf_event_open"))
    assert done.code in (0, 1), done.err
    assert [call for call in done.acting() if not call.startswith("perf_event_open")] == []
    assert "sampler unwind" in done.err


def test_positionals_are_samples_and_interval(burners, inprocess):
    """The window is their product; --duration is seconds."""
    for words in (("8", "0.1"), ("--duration", "800ms"), ("-c", "4", "-i", "200ms")):
        document = json.loads(inprocess("jpmp", burners.pid, *words, "--on-cpu", "-F", "250", "-f", "json").out)
        assert document["profiler"]["hz"] == 250
        assert 0.7 < document["duration_s"] < 2  # a crowded machine ends it late


@pytest.mark.parametrize(("format_", "pattern"), [
    ("text", r"^ +\d+ Workload\.work,Workload\.burn\w+,"),
    ("folded", r"(?m)^.*java\.lang\.Thread\.run_\[[01ij]\];.*Workload\.work_\[[01ij]\](?:;\S+)* \d+$"),
    ("table", r"methods by their own CPU time\n +self +± +with callees"),
    ("markdown", r"\| self \| ± \| with callees \|"),
    ("svg", r"Workload\.work_\[[01ij]\]"),
    ("speedscope", r'"name":"Workload\.work_\[[01ij]\]"'),
])  # fmt: skip
def test_every_view_works(burners, inprocess, format_, pattern):
    """Marks in folded stacks and pictures; none in lines and tables. The footer names the sampler."""
    done = inprocess("profile", burners.pid, "--duration", "700ms", "-F", "200", "-f", format_)
    assert done.code in (0, 1), done.err
    assert re.search(pattern, done.out), done.out[:2000]
    marks = re.search(r"_\[[01ijk]\]", done.out)
    assert bool(marks) == (format_ in ("folded", "svg", "speedscope"))
    footer = done.out if format_ in ("table", "markdown") else done.err
    assert re.search(
        r"sampler unwind: 200 Hz for .*, [\d,]+ samples?, \d+ lost(?:, 0 incomplete)?; .* of the CPU time explained",
        footer,
    )


def test_a_flame_graph_has_the_program_as_its_title(burners, opskit, tmp_path):
    """The weight, the main class and the PID."""
    path = tmp_path / "x.svg"
    done = opskit("profile", burners.pid, "--duration", "1s", "-o", path)
    assert done.code in (0, 1), done.err
    assert f"CPU ms of Workload {burners.pid}" in path.read_text(encoding="utf-8")


def test_the_difference_to_dumps_and_to_a_profile(burners, inprocess, tmp_path):
    """Dumps have Java frames only: so does the picture then."""
    inprocess(
        "jpmp", burners.pid, "3", "0.1", "--sampler", "dumps", "--on-cpu", "-f", "json", "-o", tmp_path / "dumps.json"
    )
    inprocess("profile", burners.pid, "--duration", "500ms", "-o", tmp_path / "before.json")
    for before in ("dumps.json", "before.json"):
        done = inprocess(
            "profile",
            burners.pid,
            "--duration",
            "500ms",
            "--include",
            "Workload",
            "--diff",
            tmp_path / before,
            "-o",
            tmp_path / "d.svg",
        )
        assert done.code in (0, 1), done.err
        assert "no frame in common" not in done.err
        picture = (tmp_path / "d.svg").read_text(encoding="utf-8")
        assert "Workload.work" in picture
        assert "_[j]" not in picture
        assert ("clone3" in picture or "start_thread" in picture) == (before == "before.json")


def test_dumps_say_that_they_are_dumps(burners, inprocess):
    """By choice, or because an option needs them: methods may be off, threads are exact; run queues are shown."""
    for words, why in ((("--sampler", "dumps"), ""), (("--state", "RUNNABLE"), ": --state selects threads")):
        done = inprocess("jpmp", burners.pid, "3", "0.1", "--on-cpu", *words, "-f", "table")
        assert f"--on-cpu by thread dumps{why}" in done.out
        assert "methods may be off by tens of points, threads are exact" in done.out
        assert re.search(r"threads wait(ed)? ", done.out)


def test_wall_and_off_cpu(burners, inprocess):
    """Elapsed time by samples; time off the CPUs of each thread, in ms, which sleepers have most of."""
    done = inprocess("jpmp", burners.pid, "4", "0.2", "--wall", "-f", "json")
    document = json.loads(done.out)
    assert (document["weight"], document["profiler"]["sampler"]) == ("samples", "dumps")
    assert any("elapsed time by thread dumps" in note for note in document["notes"])
    done = inprocess("jpmp", burners.pid, "4", "0.25", "--offcpu", "--idle", "--by-thread", "-f", "json")
    document = json.loads(done.out)
    assert document["weight"] == "off_cpu_ms"
    off = {}
    for stack in document["stacks"]:
        if stack["frames"]:
            off[stack["frames"][-1]] = off.get(stack["frames"][-1], 0.0) + stack["off_cpu_ms"]
    run_ms = 1000 * document["duration_s"]
    for number in range(3):
        assert off[f"sleep-{number}"] == pytest.approx(run_ms, rel=0.02)
    assert off["burn-4"] < run_ms
    assert max(off.values()) <= run_ms * 1.001


def test_a_watch_shows_one_window_after_the_other(burners, opskit):
    """-c windows of -i; on a terminal each replaces the last one. Without --on-cpu there is none."""
    done = opskit("jpmp", burners.pid, "--on-cpu", "-w", "-c", "2", "-i", "400ms", "-f", "table")
    assert done.code in (0, 1), done.err
    assert done.out.count("sampler unwind: 99 Hz for ") == 2
    assert "late" not in done.err
    code, shown = on_terminal("profile", str(burners.pid), "-w", "-c", "2", "-i", "400ms", env={"NO_COLOR": "1"})
    assert (code in (0, 1), shown.count("\x1b[H\x1b[2J")) == (True, 2), shown


def test_any_process(native, inprocess, opskit):
    """`profile` and `jpmp --on-cpu` unwind native code; what needs a JVM says so."""
    for words in (("profile", native.pid, "--duration", "700ms"), ("jpmp", native.pid, "7", "0.1", "--on-cpu")):
        done = inprocess(*words, "-f", "json")
        document = json.loads(done.out)
        names = {frame for stack in document["stacks"] for frame in stack["frames"]}
        assert any("crc32" in name or "zlib" in name or "libz" in name for name in names), names
        assert document["profiler"]["debug_non_safepoints"] is None
        assert not any("DebugNonSafepoints" in note for note in document["notes"])
    done = opskit("jpmp", native.pid, "--on-cpu", "--sampler", "dumps")
    assert (done.code, done.out) == (2, "")
    assert "is not a JVM" in done.err


def test_a_process_that_ends(inprocess):
    """What there is so far is shown, and that it ended; before the first sample it is an error."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import time\nend = time.time() + 1.5\nwhile time.time() < end: pass"]
    )
    done = inprocess("profile", process.pid, "--duration", "20s")
    process.wait()
    assert done.code in (0, 1), done.err
    assert re.search(rf"the process {process.pid} ended after [\d.]+ s", done.err)
    assert done.out
    done = inprocess("profile", process.pid)
    assert (done.code, done.out) == (2, "")
    assert f"no process {process.pid}" in done.err


@pytest.mark.parametrize("options", [("--duration", "60s"), ("-w", "-i", "60s")])
def test_ctrl_c_shows_what_there_is(native, options):
    """Exit code 130, with the profile so far, also of the first window of -w."""
    process = subprocess.Popen(
        [sys.executable, "-m", "opskit", "profile", str(native.pid), *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until_it_samples(process.pid)
    wait_until_it_used(native.pid, 100)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out
    assert "sampler unwind" in err


def test_what_costs_the_jvm_much_happens_once(burners, inprocess):
    """A walk of the heap, and a dump of all virtual threads; of the ten seconds nothing is left then."""
    for words in (("--virtual",), ("--locks", "--synchronizers", "--yes")):
        done = inprocess("profile", burners.pid, *words, "-f", "json")
        assert done.code in (0, 1), done.err
        assert json.loads(done.out)["sample_count"] == 1


def test_without_rights_it_says_why(workload, as_user, inprocess):
    """Another user may neither sample nor dump: one line, exit code 2."""
    jvm = workload("sleep=1")
    words = ("jpmp", jvm.pid, "2", "0.1", "--on-cpu")
    for more in (("--sampler", "unwind"), ()):
        code, out, err = as_user(65534, lambda more=more: tuple(inprocess(*words, *more)))
        assert (code, out) == (2, "")
        assert len(err.splitlines()) == 1, err
        assert str(jvm.pid) in err


def test_a_jvm_whose_tables_cannot_be_read(fake_jvm, inprocess):
    """Thread dumps take over where it gives them; otherwise native frames are shown, and what is missing."""
    answers, broken = fake_jvm("v1"), fake_jvm("101")
    for words in (("--sampler", "unwind"), ()):
        done = inprocess("profile", broken.pid, "--duration", "300ms", *words, "-f", "table", "--timeout", "5")
        assert done.code in (0, 1), done.err
        assert "Java frames are missing" in done.out
        assert "sampler unwind" in done.out
    done = inprocess("jpmp", answers.pid, "2", "0.1", "--on-cpu", "-f", "table")
    assert "--on-cpu by thread dumps: Java frames are missing" in done.out + done.err
    # The profile to compare with is read once, although dumps are taken after samples: it may be a pipe.
    reads, writes = os.pipe()
    os.write(writes, b"a.B.main;a.B.run 5\n")
    os.close(writes)
    done = inprocess("jpmp", answers.pid, "2", "0.1", "--on-cpu", "--diff", f"/dev/fd/{reads}", "-f", "svg")
    os.close(reads)
    assert done.code in (0, 1), done.err
    assert "a.B.run" in done.out
    assert "--on-cpu by thread dumps" in done.err
