"""`opskit jpmp --locks` and `--virtual` on live JVMs: deadlocks, owners, virtual threads; no file is left."""

from __future__ import annotations

import glob
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from opskit.actions import dump_virtual_threads as action
from opskit.errors import OpskitError
from opskit.host import Host
from opskit.jvm.attach.client import AttachClient


def locks(inprocess, *words):
    """The JSON document of --locks; the exit code says whether it has an error or a warning."""
    done = inprocess("jpmp", *words, "--locks", "-f", "json")
    document = json.loads(done.out)
    assert done.code == any(finding["severity"] != "note" for finding in document["findings"]), done.err
    return document


def codes(document):
    """The codes of the findings."""
    return [finding["code"] for finding in document["findings"]]


def cycle(deadlock):
    """Who waits for whom in a deadlock."""
    return {(link["thread"]["name"], link["owner"]["name"]) for link in deadlock["links"]}


def left_behind(pid=None):
    """Dumps of virtual threads in /tmp, of that run of opskit or of this process: other tests' runs have theirs there."""
    return glob.glob(f"/tmp/.opskit-{pid or os.getpid()}-*.*")


def test_a_deadlock_over_monitors_is_named_with_its_threads(inprocess, workload, jvm_version):
    """On every version, in two samples, once."""
    running = workload("deadlock", "sleep=3", version=jvm_version)
    document = locks(inprocess, running.pid, 2, 0.1)
    [deadlock] = document["deadlocks"]
    assert cycle(deadlock) == {("deadlock-A", "deadlock-B"), ("deadlock-B", "deadlock-A")}
    assert deadlock["reported"]
    assert [lock["held_up"] for lock in document["locks"]] == [2, 2]
    assert [lock["samples"] for lock in document["locks"]] == [1, 1]
    assert (document["ended"], document["sample_count"]) == ("deadlock", 1)
    text = inprocess("jpmp", running.pid, 1, "--locks").out
    assert text.startswith("deadlock of 2 threads: ")


def test_a_three_way_deadlock(inprocess, workload):
    """All three, in one cycle."""
    running = workload("threeway", version=25)
    [deadlock] = locks(inprocess, running.pid, 1)["deadlocks"]
    assert cycle(deadlock) == {("three-0", "three-1"), ("three-1", "three-2"), ("three-2", "three-0")}


@pytest.mark.parametrize("version", [11, 25])
def test_a_deadlock_over_reentrant_locks(inprocess, workload, version):
    """With --synchronizers by the owners' own stacks; without, as the JVM reports it; the heap walk is announced."""
    running = workload("lockdeadlock", "lock=2", version=version)
    owned = locks(inprocess, running.pid, "--synchronizers", "--yes")
    [deadlock] = owned["deadlocks"]
    assert cycle(deadlock) == {("lockdead-A", "lockdead-B"), ("lockdead-B", "lockdead-A")}
    holders = {lock["owner"]["name"]: lock for lock in owned["locks"]}
    assert holders["reentrant-holder"]["waiter_count"] == 2
    assert holders["reentrant-holder"]["owner"]["frames"]
    without = locks(inprocess, running.pid, 1)
    assert any(lock["owner"] is None and "--synchronizers" in lock["owner_unknown"] for lock in without["locks"])
    done = inprocess("jpmp", running.pid, "--locks", "--synchronizers", "--yes")
    assert "walks the heap" in done.err
    assert re.search(r"(?:heap used|resident memory \(the used heap is unknown\)) \d", done.err)


def test_a_contended_monitor_has_its_holder_and_the_waiters(inprocess, workload, jvm_version):
    """Five wait for a monitor that one sleeps in: held up 5, the holder's stack, in every sample, and for how long."""
    running = workload("blocked=5", "park=4", "wait=3", version=jvm_version)
    [lock] = locks(inprocess, running.pid, 3, 0.2)["locks"]
    assert (lock["kind"], lock["held_up"], lock["waiter_count"], lock["samples"]) == ("monitor", 5, 5, 3)
    assert lock["owner"]["name"] == "lock-holder"
    assert any("sleep" in frame for frame in lock["owner"]["frames"])
    assert {waiter["name"] for waiter in lock["waiters"]} == {f"blocked-{number}" for number in range(5)}
    assert lock["waited_at_least_s"] > 0
    table = inprocess("jpmp", running.pid, 1, "--locks", "-f", "table").out
    assert 'holds up 5 threads; held by "lock-holder"' in table


def test_no_contention_says_so(inprocess, workload):
    """A sentence, not an empty answer."""
    running = workload("sleep=2", version=17)
    assert inprocess("jpmp", running.pid, 1, "--locks").out == "no thread waits for a lock\n"


def test_a_deadlock_between_virtual_threads(inprocess, workload):
    """Only --virtual sees it; such a dump reports none. Also beside names that no JVM can write as JSON."""
    running = workload("virtualdeadlock", "nasty", version=25)
    document = locks(inprocess, running.pid, "--virtual")
    [deadlock] = document["deadlocks"]
    assert not deadlock["reported"]
    assert all(link["thread"]["virtual"] for link in deadlock["links"])
    assert left_behind() == []


@pytest.mark.parametrize("version", [21, 25])
def test_virtual_threads_mounted_or_not(inprocess, workload, version):
    """Sleeping and spinning ones; without --virtual, 21 says what its dump leaves out."""
    running = workload("virtual=50", "virtualburn=1", "sleep=2", version=version)
    document = json.loads(inprocess("jpmp", running.pid, "--virtual", "-f", "json").out)
    assert "Thread.dump_to_file JSON" in document["dialects"]
    spinning = [stack for stack in document["stacks"] if any("burnVirtually" in frame for frame in stack["frames"])]
    asleep = [stack for stack in document["stacks"] if any("sleepForever" in frame for frame in stack["frames"])]
    assert [stack["samples"] for stack in spinning] == [1]
    assert not spinning[0]["idle"]
    assert sum(stack["samples"] for stack in asleep) == 52
    assert left_behind() == []
    plain = inprocess("jpmp", running.pid, 1)
    if version == 21:
        assert f"opskit jpmp {running.pid} --virtual shows it" in plain.err
        assert "burnVirtually" not in plain.out
    else:
        assert "burnVirtually" in plain.out
        assert "--virtual" not in plain.err


@pytest.mark.parametrize("version", [21, 25])
def test_a_name_that_breaks_the_jvms_json_hides_no_thread(inprocess, workload, version):
    """Control characters in a thread's name: the JVM stops there, and is asked for the plain form."""
    running = workload("virtual=20", "nasty", "sleep=2", version=version)
    document = json.loads(inprocess("jpmp", running.pid, "--virtual", "-f", "json").out)
    assert document["dialects"] == ["Thread.dump_to_file"]
    asleep = [stack for stack in document["stacks"] if any("sleepForever" in frame for frame in stack["frames"])]
    assert sum(stack["samples"] for stack in asleep) == 20 + 9 + 2
    assert not any("cut off" in note for note in document["notes"])
    assert left_behind() == []
    if version == 21:
        assert "has no monitors: opskit jpmp" in inprocess("jpmp", running.pid, "--virtual", "--locks").out


def test_a_spinning_thread_among_40_000_parked_ones_is_on_the_first_screen(inprocess, workload):
    """Grouped by stack, the idle ones hidden: the one that spins is among the first rows of the table."""
    running = workload("virtual=40000", "virtualburn=1", version=25, options=("-Xmx2g",))
    done = inprocess("jpmp", running.pid, "--virtual", "-f", "table", "--timeout", "120", timeout=300)
    assert done.code == 0, done.err
    assert any("burnVirtually" in line for line in done.out.splitlines()[:24])
    assert "idle stacks hidden" in done.out
    assert left_behind() == []


def test_virtual_on_17_is_refused_plainly(inprocess, workload):
    """It has no virtual threads."""
    running = workload("sleep=1", version=17)
    done = inprocess("jpmp", running.pid, "--virtual")
    assert done.code == 2
    assert "is JDK 17, which has no virtual threads" in done.err
    assert done.out == ""


@pytest.fixture
def dumping(workload):
    """A JVM with many virtual threads, and a run that lets it write a dump just now."""
    running = workload("virtual=40000", version=25, options=("-Xmx2g",))
    process = subprocess.Popen(
        [sys.executable, "-m", "opskit", "jpmp", str(running.pid), "50", "0", "--virtual", "--timeout", "120"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(1000):
        if left_behind(process.pid):
            break
        time.sleep(0.02)
    assert left_behind(process.pid)
    yield running, process
    process.kill()
    process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_file(dumping, number):
    """Interrupted while the JVM writes: the file that it made for us is removed, also after a second signal."""
    _, process = dumping
    process.send_signal(number)
    process.send_signal(signal.SIGTERM if number == signal.SIGTERM else signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert "Traceback" not in err
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert left_behind(process.pid) == []


def test_what_sigkill_left_the_next_run_removes(inprocess, dumping):
    """The name says whose it was."""
    running, process = dumping
    process.kill()
    process.communicate()
    left = left_behind(process.pid)
    assert len(left) == 1
    assert inprocess("jpmp", running.pid, "1", "--virtual").code == 0
    assert left_behind(process.pid) == []


def test_nothing_that_is_there_is_overwritten_or_followed(workload, tmp_path, monkeypatch):
    """Where the name is taken, the JVM refuses; a link in its place is not followed; neither is removed by us as ours."""
    running = workload("sleep=1", version=25)
    host = Host.at(None, None)
    monkeypatch.setattr(action.leftovers.os, "urandom", lambda count: b"\0" * count)
    taken = f"/tmp/{action.leftovers.new_name('.json')}"
    victim = tmp_path / "victim"
    victim.write_text("precious")
    os.symlink(victim, taken)
    try:
        with pytest.raises(OpskitError):
            action.dump_virtual_threads(host, AttachClient(host.fs, running.pid), None)
        assert victim.read_text() == "precious"
        assert os.path.islink(taken)
    finally:
        os.unlink(taken)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--locks", "-f", "folded"], "--locks is not a profile"),
        (["--synchronizers"], "--synchronizers goes with --locks"),
        (["--virtual", "--on-cpu"], "--virtual and --on-cpu exclude each other"),
        (["--locks", "--synchronizers", "--virtual"], "exclude each other"),
        (["--yes"], "--yes goes with --synchronizers"),
    ],
)
def test_words_that_say_nothing_together(inprocess, words, said):
    """Exit 2, and why."""
    done = inprocess("jpmp", "1", *words)
    assert done.code == 2
    assert said in done.err


def test_what_needs_a_live_jvm_is_refused_for_files(inprocess, tmp_path):
    """--virtual and --synchronizers ask a JVM, not a file."""
    path = tmp_path / "x.txt"
    path.write_text("Full thread dump")
    for words in (["--virtual"], ["--locks", "--synchronizers"]):
        done = inprocess("jpmp", path, *words)
        assert done.code == 2
        assert "goes with a live JVM" in done.err


def test_locks_of_a_saved_file_and_of_a_profile(inprocess, samples, tmp_path):
    """A real dump with three deadlocks; collapsed stacks contain no lock information."""
    document = locks(inprocess, samples / "thread-dumps" / "jdk25-three-way-deadlock.txt")
    assert sorted(len(deadlock["links"]) for deadlock in document["deadlocks"]) == [2, 2, 3]
    folded = tmp_path / "x.folded"
    folded.write_text("a;b 3\n")
    done = inprocess("jpmp", folded, "--locks")
    assert done.code == 2
    assert "contain no lock information" in done.err
