"""JVMs that are asked for a capture, and what commands make of their replies."""

from __future__ import annotations

import json
import os
import re
import signal
import time

import jvms
import pytest
from attaching import triggers_of
from taping import show, tape_of
from untouched import heard

from opskit.collect.capture import replies
from opskit.collect.capture.replies import WHAT, ask_jvms, parse_what
from opskit.collect.found_jvms import found_jvms
from opskit.errors import UsageError
from opskit.host import Host
from opskit.proc.fs import ProcFS
from opskit.proc.recorded.packing import capture_chunks, pack
from opskit.proc.recorded.store import unpack
from opskit.proc.recorded.tape import REPLY, Failure, Mark
from opskit.recorded_host import RecordedHost

MODES = ("sleep=2", "lock=2", "blocked=2")


@pytest.fixture(scope="module")
def running():
    """A JVM of each version, one that is stopped, and one that refuses clients."""
    started = {}
    try:
        for version in sorted(jvms.WHEELS):
            started[version] = jvms.start(*MODES, version=version)
        started["stopped"] = jvms.start()
        started["stopped"].signal(signal.SIGSTOP)
        started["disabled"] = jvms.start(options=("-Xmx64m", "-XX:+DisableAttachMechanism"))
        yield started
    finally:
        for each in started.values():
            each.stop()


def tape_with_marks(host, marks=2):
    tape = tape_of(host)
    begun = tape.marks[0]
    tape.marks[:] = [Mark(begun.wall_s + 0.1 * number, begun.monotonic_s + 0.1 * number) for number in range(marks)]
    return tape


LINES = (
    "jpmp {}", "jpmp {} 5 0.5", "jpmp {} --locks", "jpmp {} -f json", "jmap-diff {}",
    "mem {} --ask", "jmx {}", "io {} --ask", "doctor {} --ask --only java-threads",
)  # fmt: skip


@pytest.fixture(scope="module")
def asked(running):
    """The tape of a recording for which all of them were asked, what was said, and what each line showed of it."""
    host = Host(ProcFS())
    tape = tape_with_marks(host)
    found = found_jvms(host, [each.pid for each in running.values()]).jvms
    notes = ask_jvms(host, tape, found, WHAT, 0.1)
    recording, shown = RecordedHost(tape, host.fs), {}
    for who in (25, "stopped"):
        for line in LINES:
            recording.rewind()
            shown[who, line] = show(recording, line.format(running[who].pid))
    for who in (11, 17, 21):
        recording.rewind()
        show(recording, f"jpmp {running[who].pid}")
    return tape, notes, shown


def replayed(asked, line, pid):
    """What a line shows of the tape alone."""
    return show(RecordedHost(asked[0]), line.format(pid))


@pytest.mark.parametrize("version", sorted(jvms.WHEELS))
def test_each_jvm_gives_what_was_asked_for(running, asked, version):
    """A dump with the owners of its locks and a histogram a mark; flags, properties and its state once."""
    tape, pid = asked[0], running[version].pid
    found = {key.partition("/")[2]: each for _, key, each in tape.all_of(REPLY) if key.startswith(f"{pid}/")}
    assert {"threads", "threads-2", "histogram", "histogram-2"} <= found.keys()
    assert {"VM.flags_-all", "VM.command_line", "VM.info", "GC.heap_info", "properties"} <= found.keys()
    dumps = [found["threads"], found["threads-2"]]
    assert dumps[0] != dumps[1]
    assert all(b"Locked ownable synchronizers" in each and b"Full thread dump" in each for each in dumps)
    assert all(b"allocated=" in each for each in dumps)


def test_a_jvm_that_cannot_reply_is_named_and_holds_up_nothing(running, asked):
    """Stopped, or started without the attach mechanism: one line each, and a failure stands for each reply."""
    tape, notes, _ = asked
    stopped, disabled = running["stopped"].pid, running["disabled"].pid
    assert sorted(notes) == sorted([
        f"{stopped} (Workload) was not asked: it is stopped by a signal (state T); resume it: kill -CONT {stopped}",
        f"{disabled} (Workload) was not asked: it was started with -XX:+DisableAttachMechanism; start it without that option",
    ])  # fmt: skip
    replies = [each for _, key, each in tape.all_of(REPLY) if key.startswith(f"{stopped}/")]
    assert replies
    assert all(isinstance(each, Failure) for each in replies)
    assert jvms.psutil.Process(stopped).status() == "stopped"


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("who", [25, "stopped"])
def test_a_replay_shows_what_the_recording_showed(running, asked, who, line):
    """Byte for byte, without the JVM."""
    assert replayed(asked, line, running[who].pid) == asked[2][who, line]


def test_a_profile_has_as_many_samples_as_the_capture_has_dumps(running, asked):
    """At the moments of the capture; what they cost the JVM is unknown there."""
    done = replayed(asked, "jpmp {} 5 0.5 -f json", running[17].pid)
    document = json.loads(done.out)
    first, second = (each["at_s"] for each in document["samples"])
    assert (first, 0.1 <= second < 60) == (0, True)
    assert {each["stopped_ms"] for each in document["samples"]} == {None}
    assert "the capture has 2 thread dumps of it" in document["notes"][0]
    assert any("Workload.sleepForever" in " ".join(stack["frames"]) for stack in document["stacks"])


def test_locks_and_their_owners_are_known(running, asked):
    """A ReentrantLock has an owner only in a dump that walked the heap."""
    for version in (11, 25):
        done = replayed(asked, "jpmp {} --locks", running[version].pid)
        assert re.search(r"ReentrantLock\S* holds up 2 threads; held by \"reentrant-holder\"", done.out), done.out


def test_histograms_of_a_capture_are_compared(running, asked):
    """As many as there are, without a word about a pause to come."""
    done = replayed(asked, "jmap-diff {}", running[21].pid)
    assert done.code == 0
    assert done.err.startswith(f"2 class histograms of {running[21].pid} (Workload) in the capture\n")
    assert "stopped the JVM is unknown: a capture does not tell" in done.out + done.err
    live = replayed(asked, "jmap-diff {} --live", running[21].pid)
    assert (live.code, live.out) == (2, "")
    assert "--live has the JVM run a full GC, and the file is a capture" in live.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("jpmp {}", "the capture has no thread dump of {}: capture with --ask --what threads"),
        ("jpmp {} --locks", "the capture has no thread dump of {}: capture with --ask --what threads"),
        ("jpmp {} --virtual", "--virtual has the JVM write a dump, and the file is a capture"),
        ("jmap-diff {}", "the capture has no class histogram of {}: capture with --ask --what histogram"),
        ("jmap-diff {} -w", "-w/--watch: the capture has 0 class histograms of {}; leave -w out to see all of them"),
        ("profile {}", "is a capture; run it on that machine"),
        ("jpmp {} --on-cpu --sampler unwind", "is a capture; run it on that machine"),
        ("hsperf-check {} --probe", "is a capture; run it on that machine"),
    ],
)
def test_what_the_capture_lacks_is_said(running, line, said):
    """One line that says how to capture it, and exit code 2. The JVM runs, and is left alone."""
    host, pid = Host(ProcFS()), running[17].pid
    tape = tape_with_marks(host)
    recording = RecordedHost(tape, host.fs)
    done = show(recording, line.format(pid))
    assert (done.code, done.out) == (2, "")
    assert said.format(pid) in done.err
    assert not [key for _, key, _ in tape.all_of(REPLY)]


def test_a_replay_does_not_touch_the_process_of_that_pid(running, asked):
    """The JVMs still run here: nothing is sent to them, and none of their files is opened."""
    pid = running[25].pid
    for line in LINES:
        with heard() as done:
            replayed(asked, line, pid)
        touched = [each for each in done if each[0] not in ("open", "os.listdir", "os.scandir") or str(pid) in each[1]]
        assert not touched, line


class InterruptedHost(Host):
    """Ctrl-C comes in the first sleep."""

    def __init__(self):
        super().__init__(ProcFS())
        self.sleep = self.first

    def first(self, seconds):
        self.sleep = time.sleep
        raise KeyboardInterrupt


def test_a_jvm_that_reaches_no_safepoint_is_left_after_its_time(monkeypatch):
    """The capture goes on, and a replay says why there is no dump."""
    monkeypatch.setattr(replies, "_TIMEOUT_S", 0.3)
    host = Host(ProcFS())
    tape = tape_with_marks(host)
    hog = jvms.start("hog", options=("-Xmx64m", *jvms.HOG_OPTIONS))
    try:
        found = found_jvms(host, [hog.pid]).jvms
        with pytest.raises(KeyboardInterrupt):  # what starts the listener is removed
            ask_jvms(InterruptedHost(), tape, found, ("threads",))
        assert not [path for path in triggers_of(hog) if os.path.lexists(path)]
        notes = ask_jvms(host, tape, found, ("threads",))
        show(RecordedHost(tape, host.fs), f"jpmp {hog.pid}")
    finally:
        hog.stop()
    assert len(notes) == 1
    assert "within 0.3 s" in notes[0]
    assert "within 0.3 s" in show(RecordedHost(tape), f"jpmp {hog.pid}").err


def test_a_jvm_of_another_user_is_not_asked_without_rights(running, as_user):
    """The reason and what would be allowed are said."""
    pid = running[11].pid

    def ask():
        host = Host(ProcFS())
        return ask_jvms(host, tape_with_marks(host), found_jvms(host, [pid]).jvms, ("threads",))

    assert re.fullmatch(
        rf"{pid} \(.*\) was not asked: it runs as uid 0, and only that user and root may attach; .*",
        *as_user(65534, ask),
    )


def test_another_machine_is_not_asked(running):
    """A tree that is not this machine's has PIDs that mean other processes here."""
    host = Host(ProcFS())
    tape = tape_with_marks(host)
    found = found_jvms(host, [running[17].pid]).jvms
    host.fs.is_live = False
    notes = ask_jvms(host, tape, found, WHAT)
    assert notes == ["1 JVM not asked: /proc is a copy; PIDs there are not PIDs here. Nothing was sent."]
    assert not list(tape.all_of(REPLY))


def test_replies_are_files_of_the_archive(running, asked):
    """As text below attach/PID, and the same when they are read again, failures too."""
    files = dict(pack(asked[0]))
    pid = running[25].pid
    assert files[f"attach/{pid}/threads-2.txt"].count(b"Full thread dump") == 1
    again = unpack(files.items(), "x.tar.gz")
    assert {key: each for _, key, each in again.all_of(REPLY)} == {key: each for _, key, each in asked[0].all_of(REPLY)}


def test_a_capture_is_not_taken_for_a_file_of_dumps(running, asked, inprocess, tmp_path):
    """The command that reads it is printed."""
    path = tmp_path / "a b.tar.gz"
    path.write_bytes(b"".join(capture_chunks(asked[0])))
    for name in ("jpmp", "crash", "safepoints", "oom", "hdr"):
        done = inprocess(name, path)
        assert (done.code, done.out) == (2, "")
        assert f"{path}: is a capture; read it with opskit --from '{path}' {name}\n" in done.err
    done = inprocess("--from", path, "jpmp", running[17].pid)
    assert (done.code, "the capture has 2 thread dumps of it" in done.err) == (0, True)


def test_what_is_a_list_of_words():
    """Blanks and repetitions do not matter; an unknown word is named."""
    assert parse_what(None) == ("threads", "flags", "info")
    assert parse_what("histogram, threads,histogram") == ("histogram", "threads")
    for text, said in (("threads,heap", "'heap': choose among threads, histogram"), (" ,", "--what is empty")):
        with pytest.raises(UsageError, match=said):
            parse_what(text)
