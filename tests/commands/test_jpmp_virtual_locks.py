"""`opskit jpmp` on real JVMs whose virtual threads wait: pinned carriers, locks that ordinary dumps do not show, read locks."""

from __future__ import annotations

import contextlib
import json
import re

import jvms
import maven
import pytest
import servers
from nextsteps import try_next
from rich.cells import cell_len
from terminal import on_terminal

SOURCE = jvms.SOURCE.parent / "Locking.java"


@pytest.fixture(scope="module")
def locking():
    """Start tests/java/Locking.java with these modes; JVMs of equal modes are shared. All are killed at the end."""
    running = {}

    def start(*modes, version, options=()):
        key = (*modes, version, options)
        if key not in running:
            java = [jvms.java(version), "-Xmx128m", *options, "-cp", maven.classes(SOURCE, release=11)]
            running[key] = jvms.run([*java, "Locking", *modes])
        return running[key]

    yield start
    for each in running.values():
        each.stop()


def document(inprocess, *words):
    """The JSON document, and its findings by code."""
    done = inprocess("jpmp", *words, "-f", "json")
    found = json.loads(done.out)
    return found, {finding["code"]: finding for finding in found["findings"]}


def screen(*words):
    """The lines on a terminal of 80 x 24, as it wraps them."""
    _, shown = on_terminal("jpmp", *map(str, words), env={"NO_COLOR": "1"})
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.rpartition("\x1b[K")[2])
    return [line[at : at + 80] for line in text.rstrip().split("\r\n") for at in range(0, max(1, len(line)), 80)]


@pytest.mark.parametrize("words", [("-c", 4, "-i", "0.1"), ("--locks", "-c", 4, "-i", "0.1")])
@pytest.mark.parametrize(
    ("version", "modes", "by"),
    [
        (21, ("pinned=1", "waiting=1"), {"Locking.pause (from Locking.pinned)", "Locking.waiting"}),
        (25, ("initializer=2",), {"Locking$First.<clinit>", "Locking$Second.<clinit>"}),
    ],
)
def test_pinned_carriers_are_an_error_that_names_who_pins_them(inprocess, locking, version, modes, by, words):
    """Monitors on 21, class initializers on 25: the sentence, exit code 1, and the command that shows the stacks."""
    running = locking(*modes, version=version, options=("-Djdk.virtualThreadScheduler.parallelism=2",))
    _, codes = document(inprocess, running.pid, *words)
    pinned = codes["virtual-threads-pinned"]
    assert pinned["severity"] == "error"
    try_next([pinned], "virtual-threads-pinned")
    assert pinned["summary"].startswith("2 of 2 carriers are pinned, by ")
    assert set(pinned["summary"].partition(", by ")[2].partition(": no other")[0].split(", ")) == by
    assert "all carriers in 4 of 4 dumps" in pinned["evidence"]
    if version == 21:  # the format of exact lines has it too
        text = inprocess("jpmp", running.pid, *words)
        assert text.code == 1
        assert "2 of 2 carriers are pinned" in text.out + text.err
    stacks = inprocess(*shell_words(pinned["next"]), "-f", "table").out
    assert any(frame.partition(" ")[0] in stacks for frame in by)


def shell_words(command):
    import shlex

    return shlex.split(command)[1:]


def test_a_pinned_thread_is_not_hidden_as_idle(inprocess, locking):
    """Its stack is in the table of --virtual, although it parks."""
    for version, modes in ((21, ("pinned=1", "waiting=1")), (25, ("initializer=2",))):
        running = locking(*modes, version=version, options=("-Djdk.virtualThreadScheduler.parallelism=2",))
        shown = inprocess("jpmp", running.pid, "--virtual", "-f", "table").out
        assert "parkOnCarrierThread" in shown
        assert "note virtual-threads-pinned" in shown  # one dump may show a moment


def test_a_carrier_of_many_that_is_pinned_is_a_note(inprocess, locking):
    """Two of eight carriers: the others run on."""
    running = locking("pinned=2", version=21, options=("-Djdk.virtualThreadScheduler.parallelism=8",))
    done = inprocess("jpmp", running.pid, "-c", 4, "-i", "0.1")
    assert done.code == 0
    assert "note virtual-threads-pinned" in done.err
    assert (
        "2 of 8 carriers are pinned, by Locking.pause (from Locking.pinned) (2 by the same virtual threads in all of 4 dumps"
        in done.err
    )


@pytest.mark.parametrize("version", [21, 25])
def test_locks_of_virtual_threads_are_never_missed(inprocess, locking, version):
    """14 wait for a ReentrantLock: the ordinary dumps do not have them, the command takes the others as well."""
    running = locking("virtuallock=14", version=version)
    found, codes = document(inprocess, running.pid, "--locks", "-c", 3, "-i", "0.1")
    contended = codes["lock-contended"]
    assert contended["severity"] == "warning"
    if version == 21:
        assert contended["summary"].startswith(
            "14 virtual threads wait in ReentrantLock.lock, called by Locking.locked; JDK 21 does not record for which "
            "lock or who holds it; virtual thread #"
        )
        assert found["locks"] == []
        assert [(waits["method"], waits["caller"], waits["waiter_count"]) for waits in found["virtual_waits"]] == [
            ("ReentrantLock.lock", "Locking.locked", 14)
        ]
    else:
        [lock] = found["locks"]
        assert lock["waiter_count"] == 14
        assert all(waiter["virtual"] for waiter in lock["waiters"])
        assert "dumps of virtual threads do not record it" in lock["owner_unknown"]
    assert re.search(
        r"; virtual thread #\d+ is in Locking\.locked too, in a call of Locking\.pause$", contended["summary"]
    )
    assert "Locking.locked" in inprocess(*shell_words(contended["next"]), "-f", "table").out
    assert "--synchronizers" not in json.dumps(found["findings"])
    by_hand = inprocess("jpmp", running.pid, "--locks", "--virtual")
    assert "14 " in by_hand.out
    assert "jstack" not in by_hand.out + by_hand.err


def test_virtual_threads_that_run_on_25_are_not_dumped_unasked(inprocess, locking):
    """JDK 25 can crash then: the answer says that they are unknown, and the command."""
    running = locking("sleeping=20", version=25)
    done = inprocess("jpmp", running.pid, "--locks", "-c", 2, "-i", "0.1")
    assert done.out == (
        "no platform thread waits for a lock; the waits of virtual threads are unknown: JDK 25 can crash while it dumps "
        f"virtual threads that run; opskit jpmp {running.pid} --locks --virtual shows them\n"
    )
    assert done.code == 0


def test_virtual_threads_that_run_on_21_are_looked_at(inprocess, locking):
    """There the dump is taken, and the answer is whole. One of them may wait for a lock of the JDK's timer just then."""
    running = locking("sleeping=20", version=21)
    found, codes = document(inprocess, running.pid, "--locks", "-c", 4, "-i", "0.1")
    assert codes == {}
    assert found["virtual_unknown"] is None


@pytest.mark.parametrize("version", [11, 17, 25])
def test_a_read_lock_is_held_by_readers(inprocess, locking, version):
    """With --synchronizers it is certain, and nothing advises --synchronizers again; --lines shows the lines."""
    running = locking("readlock=3", version=version)
    plain = inprocess("jpmp", running.pid, "--locks", "-c", 3, "-i", "0.1").out
    assert "readers, which the JVM does not record, or a writer, which --synchronizers finds" in plain
    assert f"next: opskit jpmp {running.pid} --locks --synchronizers" in plain
    done = inprocess("jpmp", running.pid, "--locks", "--synchronizers", "--yes", "-c", 3, "-i", "0.1", "-f", "table")
    assert "holds up 4 threads; held by readers; the JVM does not record which" in done.out
    assert "--synchronizers" not in done.out
    found, _ = document(inprocess, running.pid, "--locks", "--lines", "-c", 1)
    frames = found["locks"][0]["waiters"][0]["frames"]
    assert any(re.fullmatch(r"Locking\.lambda\$readLock\$\d\(Locking\.java:\d+\)", frame) for frame in frames)


@pytest.mark.parametrize("jetty", ["jetty-server:12.0.16", "jetty-util:9.4.56.v20240826"])
def test_reserved_threads_of_jetty_wait_for_work(inprocess, jetty):
    """On a Semaphore (12) or a SynchronousQueue (9.4): no contention."""
    path = maven.jars(f"org.eclipse.jetty:{jetty}")
    classes = maven.classes(jvms.SOURCE.parent / "Reserved.java", path)
    with contextlib.closing(Stopped(jvms.run([jvms.java(17), "-cp", f"{classes}:{path}", "Reserved"]))) as server:
        done = inprocess("jpmp", server.pid, "--locks", "-c", 2, "-i", "0.1")
        assert (done.code, done.out) == (0, "no thread waits for a lock\n")


class Stopped:
    """A JVM that is killed at the end."""

    def __init__(self, running):
        self.pid, self.close = running.pid, running.stop


@pytest.mark.parametrize("version", [21, 25])
def test_a_busy_server_with_virtual_threads_has_no_finding(inprocess, version):
    """Jetty with 16 clients: neither pinned carriers nor contended locks."""
    with servers.jetty(version=version) as running:
        for words in (("--locks", "-c", 6), ("-c", 4)):
            found, codes = document(inprocess, running.pid, *words, "-i", "0.2")
            assert codes == {}
            assert found["sample_count"] >= 1


@pytest.mark.parametrize(
    ("modes", "locks"), [(("deadlock", "blocked=5", "lock=2"), 2), (("threeway",), 3), (("blocked=30",), 1)]
)
def test_locks_fit_a_terminal(workload, modes, locks):
    """80 x 24: every lock of a deadlock, one line a lock, the holder and its stack below it, nothing broken."""
    running = workload(*modes, version=25)
    lines = screen(running.pid, "--locks", "-c", "3", "-i", "0.1")
    assert len(lines) <= 24, "\n".join(lines)
    heads = [line for line in lines if re.match(r"\d+ held up  java\.lang\.Object@[0-9a-f]+  \S", line)]
    assert len(heads) == locks
    if locks > 1:
        assert all("DEADLOCK" in head for head in heads)
    assert sum(line.startswith('  held by "') for line in lines) == locks
    assert all(cell_len(line) <= 80 for line in lines)
