"""`opskit jpmp PID` on real JVMs: the script's counts, the truth about CPU, and every way a run can end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import jvms
import psutil
import pytest
from awkjpmp import folded, script
from stracing import traced
from terminal import on_terminal

from opskit.analysis.jpmp.idle import waits_in_native

TIMEOUT = ["--timeout", "120"]  # the machine may be loaded


def threads_cpu(pid):
    """The kernel's own word: CPU s by thread name."""
    process = psutil.Process(pid)
    found = {}
    for thread in process.threads():
        try:
            with open(f"/proc/{pid}/task/{thread.id}/comm", encoding="utf-8") as comm:
                name = comm.read().strip()
            with open(f"/proc/{pid}/task/{thread.id}/schedstat", encoding="utf-8") as schedstat:
                found[name] = found.get(name, 0) + int(schedstat.read().split()[0]) / 1e9
        except FileNotFoundError:
            continue
    return found


def test_counts_are_exactly_the_scripts(inprocess, workload, jvm_version, tmp_path):
    """The dumps are taken once; both count them: the same stacks, as often, on 11, 17, 21 and 25."""
    jvm = workload(
        "sleep=7", "park=5", "wait=4", "socket=3", "blocked=2", "lock=2", "lambda=3", "nasty", version=jvm_version
    )
    done = inprocess("jpmp", jvm.pid, 4, 0.05, "--save", tmp_path / "raw", *TIMEOUT)
    assert done.code == 0
    saved = sorted((tmp_path / "raw").iterdir())
    assert len(saved) == 4
    joined = tmp_path / "joined.txt"
    joined.write_bytes(b"".join(path.read_bytes() for path in saved))
    mine = folded(done.out)
    assert mine == folded(script(joined))
    assert inprocess("jpmp", *saved).out == done.out
    by_method = {}
    for stack, count in mine.items():
        for method in ("sleepForever", "parkForever", "waitForever", "readForever"):
            if f"Workload.{method}" in stack:
                by_method[method] = by_method.get(method, 0) + count
    # Those who hold the two locks sleep too, and the nine with the nasty names.
    assert by_method == {"sleepForever": 4 * (7 + 2 + 9), "parkForever": 20, "waitForever": 16, "readForever": 12}


def test_on_cpu_tells_the_truth_by_thread(inprocess, workload, jvm_version):
    """Burners of 8:4:2:1 beside 200 that read and sleep: shares within 5 points, next to nothing on who waits."""
    jvm = workload("burn=8:4:2:1", "socket=100", "sleep=100", version=jvm_version)
    before = threads_cpu(jvm.pid)
    done = inprocess(
        "jpmp", jvm.pid, 20, 0.1, "--on-cpu", "--sampler", "dumps", "--by-thread", "-f", "json", *TIMEOUT, timeout=600
    )
    after = threads_cpu(jvm.pid)
    assert done.code == 0
    used = {name: after[name] - before.get(name, 0) for name in after if name.startswith("burn-")}
    document = json.loads(done.out)
    told, waiting, total = {}, 0.0, 0.0
    for stack in document["stacks"]:
        total += stack["cpu_ms"]
        if stack["frames"]:
            told[stack["frames"][-1]] = told.get(stack["frames"][-1], 0) + stack["cpu_ms"]
            waiting += stack["cpu_ms"] if waits_in_native(stack["frames"][0]) else 0
    burned = sum(told[name] for name in used)
    for name, seconds in used.items():
        assert told[name] / burned == pytest.approx(seconds / sum(used.values()), abs=0.05), (name, told, used)
    assert waiting <= 0.02 * total
    assert document["weight"] == "cpu_ms"
    assert document["sample_count"] == 20


@pytest.mark.parametrize("version", [21, 25])
def test_a_carriers_cpu_goes_to_what_it_carries(inprocess, workload, version):
    """A spinning virtual thread: its own stack on 25; 21's dumps show the carrier alone."""
    jvm = workload("virtualburn=1", version=version)
    document = json.loads(
        inprocess("jpmp", jvm.pid, 5, 0.1, "--on-cpu", "--sampler", "dumps", "-f", "json", *TIMEOUT).out
    )
    hottest = document["stacks"][0]
    carrier = "jdk.internal.vm.Continuation.run"
    assert hottest["cpu_ms"] > 0.5 * document["cpu_ms"]
    assert (hottest["frames"][0] == carrier) == (version == 21)
    if version == 25:
        assert any(stack["frames"][:1] == [carrier] and not stack["cpu_ms"] for stack in document["stacks"])


def test_from_outside_of_its_container(inprocess, workload, root_only):
    """The JVM's nids are those of its own pid namespace: CPU is joined all the same."""
    jvm = workload("burn=1", "sleep=3", wrapper=("unshare", "--pid", "--fork", "--mount-proc"))
    document = json.loads(
        inprocess("jpmp", jvm.pid, 5, 0.1, "--on-cpu", "--sampler", "dumps", "--by-thread", "-f", "json", *TIMEOUT).out
    )
    hottest = document["stacks"][0]
    assert hottest["frames"][-1] == "burn-1"
    assert hottest["cpu_ms"] > 0.3 * document["cpu_ms"]
    assert document["target"]["pid"] == jvm.pid


def test_json_says_what_it_cost(inprocess, workload):
    """Stops by the JVM's own counters, the schedule, the quota, the target."""
    jvm = workload("sleep=2")
    document = json.loads(inprocess("jpmp", jvm.pid, "-c", 3, "-i", "100ms", "-f", "json", *TIMEOUT).out)
    assert document["sample_count"] == 3
    assert document["stopped_ms"] > 0
    assert document["stopped_by"] == "hsperfdata"
    assert document["ended"] is None
    assert [set(sample) for sample in document["samples"]] == [{"at_s", "stopped_ms"}] * 3
    assert sum(sample["stopped_ms"] for sample in document["samples"]) == pytest.approx(
        document["stopped_ms"], abs=0.01
    )
    assert document["interval_s"] == pytest.approx(0.1, rel=50)
    assert document["target"]["main"] == "Workload"
    assert any(stack["frames"] == [] for stack in document["stacks"])
    assert sum(stack["samples"] for stack in document["stacks"]) == 3 * document["threads"]


def test_it_starts_the_listener_and_does_nothing_else(workload):
    """As strace sees it: one trigger file, one SIGQUIT, and the trigger's removal; nothing the second time."""
    jvm = workload("sleep=3")
    traced("jpmp", jvm.pid, "2", "0.1").only_started_the_listener(jvm.pid)
    assert traced("jpmp", jvm.pid, "--on-cpu", "--sampler", "dumps", "2", "0.1").acting() == []


def test_without_hsperfdata_the_wall_time_is_the_bound(inprocess, workload):
    """And it is said to be one; -v says how it was measured."""
    jvm = workload("sleep=2", options=("-Xmx64m", "-XX:-UsePerfData"))
    done = inprocess("jpmp", jvm.pid, 2, 0.1, "-f", "table", "-v", *TIMEOUT)
    assert done.code == 0
    assert "sampling paused the JVM for at most" in done.out
    assert "the dumps' wall time" in done.out


def test_the_name_of_its_class_will_do(inprocess, workload):
    """A part of the main class; a name of its own, since other tests run JVMs too."""
    jvm = workload("sleep=2", properties=("-Dx=y",))
    done = inprocess("jpmp", "No" + "SuchClass", 1)
    assert done.code == 2
    assert "is not a PID, a file or a part of a running JVM's main class or jar" in done.err
    assert inprocess("jpmp", jvm.pid, 1, *TIMEOUT).code == 0


def running(*arguments):
    """Start opskit; the caller waits."""
    return subprocess.Popen(
        [sys.executable, "-m", "opskit", "jpmp", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
    )


def wait_for_files(folder, count):
    """Until that many samples were kept."""
    deadline = time.monotonic() + jvms.START_S
    while len(list(folder.iterdir()) if folder.is_dir() else []) < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_ctrl_c_prints_what_was_gathered(workload, tmp_path):
    """Exit code 130."""
    jvm = workload("sleep=4")
    process = running(jvm.pid, 1000, 0.05, "--save", tmp_path / "raw", *TIMEOUT)
    wait_for_files(tmp_path / "raw", 3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=jvms.START_S)
    assert process.returncode == 130
    assert "Workload.sleepForever" in out
    assert "Traceback" not in err


def test_a_jvm_that_exits_half_way(workload, tmp_path):
    """What was gathered, a line on stderr, exit code 0."""
    jvm = workload("sleep=4")
    process = running(jvm.pid, 100000, 0.01, "--save", tmp_path / "raw", *TIMEOUT)
    wait_for_files(tmp_path / "raw", 3)
    jvm.signal(signal.SIGKILL)
    jvm.process.wait()
    out, err = process.communicate(timeout=jvms.START_S)
    assert process.returncode == 0, err
    assert "Workload.sleepForever" in out
    assert f"the JVM {jvm.pid} ended after" in err
    assert "Traceback" not in err


def test_on_a_terminal(workload):
    """A line that counts down and is erased, then stacks that fit: the largest, the idle ones counted, what it cost."""
    jvm = workload("burn=1", "sleep=10", "park=5")
    words = ("jpmp", str(jvm.pid), "3", "2", *TIMEOUT)
    code, shown = on_terminal(*words, rows=40, columns=100, env={"NO_COLOR": "1"})
    assert code == 0
    assert "\x1b[Ksample 1 of 3; 4 s left; Ctrl-C prints what there is so far" in shown
    assert "\x1b[Ksample 1 of 3; 3 s left" in shown
    progress, _, table = shown.rpartition("\x1b[K")
    assert "\n" not in progress
    assert "s left" not in table
    assert "idle stacks hidden; --idle shows them" in table
    assert "parkForever" not in table
    assert "sampling paused the JVM for" in table
    assert "hsperfdata" not in table
    rows = [line for line in table.splitlines() if re.match(r"  |\d+ samples? ", line)]  # sentences the terminal wraps
    assert any(row.endswith("  sleep-* (10)") for row in rows)
    assert "  Workload.sleepForever" in rows
    assert max(map(len, rows)) <= 100


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["0"], "SAMPLES is 0; give a whole number from 1 up"),
        (["5", "1", "2"], "'2' is an unexpected argument"),
        (["5", "-c", "5"], "-c and SAMPLES exclude each other"),
        (["--max-stop", "0"], "--max-stop"),
        (["--save", "/proc/no/such"], "--save /proc/no/such"),
    ],
)
def test_bad_words(inprocess, words, message):
    """Nothing is sent to anybody: this very process is no JVM, and is alive afterwards."""
    done = inprocess("jpmp", os.getpid(), *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_negative_numbers(inprocess):
    """What click takes for an option is explained."""
    done = inprocess("jpmp", os.getpid(), "-5")
    assert done.code == 2
    assert "is negative" in done.err


def test_a_process_that_is_no_jvm_is_left_alone(inprocess):
    """SIGQUIT would kill it."""
    process = subprocess.Popen(["/bin/sleep", "300"])
    try:
        done = inprocess("jpmp", process.pid)
        assert done.code == 2
        assert "is not a JVM" in done.err
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
    done = inprocess("jpmp", 2**31 - 2)
    assert done.code == 2
    assert "no process" in done.err


def test_options_of_the_live_side_with_files(inprocess, tmp_path):
    """--save of a file makes no sense, and is said."""
    done = inprocess("jpmp", "-", "--save", tmp_path)
    assert (done.code, "--save goes with a live JVM" in done.err) == (2, True)
