"""The attach layer against a server that misbehaves in every known way (tests/support/fakejvm.py)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from opskit import errors
from opskit.jvm.attach import wire as attachwire
from opskit.jvm.attach.client import AttachClient
from opskit.proc.fs import ProcFS

APP = 1234
# Runs a command from a small process: a child's peak begins with that of whoever forked it.
PEAK = """\
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


def ask_anew(pid):
    return "main" in AttachClient(ProcFS(), pid, 60.0).thread_dump()


def client(fake, timeout_s=60.0):
    return AttachClient(ProcFS(), fake.pid, timeout_s)


def trigger(fake):
    return f"/tmp/.attach_pid{fake.pid}", f"/proc/{fake.pid}/cwd/.attach_pid{fake.pid}"


@pytest.mark.parametrize(("mode", "version"), [("v1", 1), ("v2", 2)])
def test_the_version_is_agreed_once(fake_jvm, mode, version):
    """One getversion, whatever is asked later; version 2 asks for the reply to be collected first."""
    fake = fake_jvm(mode)
    asked = client(fake)
    assert "main" in asked.thread_dump()
    assert "main" in asked.thread_dump(extended=True)
    assert asked.version == version
    said = fake.output()
    assert said.count("getversion") == 1
    assert said.count("quit") == 1
    assert ("threaddump streaming=0" in said) == (version == 2)
    assert not any(map(os.path.lexists, trigger(fake)))


def test_jdk_8_takes_nobody_but_its_own_user(fake_jvm, root_only):
    """Root is refused there, so opskit comes with the JVM's own uid and gid; the trigger is that user's as well."""
    fake = fake_jvm("jdk8", user=APP)
    asked = client(fake)
    assert "main" in asked.thread_dump()
    assert "main" in asked.thread_dump()
    said = fake.output()
    assert f"quit {APP}" in said
    assert said.count("refused 0 0") == 1
    assert said.count(f"asked {APP} {APP}") == 3


@pytest.mark.parametrize(
    ("mode", "error", "says"),
    [
        ("101", errors.AttachProtocol, "answered 101"),
        ("garbage", errors.AttachProtocol, "'hello, world'"),
        ("close", errors.AttachRefused, "without a word"),
        ("reset", errors.AttachRefused, "without a word"),
        ("half", errors.AttachReplyCut, "has no end"),
        ("halfcode", errors.AttachReplyCut, "only 1 bytes"),
    ],
)
def test_bad_answers(fake_jvm, mode, error, says):
    """Each bad answer is an error of its own class, never a parse of half a dump."""
    with pytest.raises(error, match=says):
        client(fake_jvm(mode)).thread_dump()


@pytest.mark.parametrize(
    ("mode", "waited_for"),
    [
        ("stall", "no answer within"),
        ("trickle", "no end of the answer within"),
        ("queue", "no place in the queue"),
        ("never", "no listener within"),
    ],
)
def test_the_deadline_holds_for_the_whole_exchange(fake_jvm, mode, waited_for):
    """Whatever does not come, opskit comes back; bytes that trickle in do not move the deadline."""
    fake = fake_jvm(mode)
    with pytest.raises(errors.AttachTimeout, match=waited_for):
        client(fake, 1.0).thread_dump()
    assert not any(map(os.path.lexists, trigger(fake)))


def test_a_large_reply_is_drained(fake_jvm):
    """100 MB come whole."""
    assert len(client(fake_jvm("big")).thread_dump()) > 99 << 20


@pytest.mark.parametrize(
    ("mode", "words", "most"),
    [
        ("endless", ["jpmp", "PID", "1"], 256),
        ("endless", ["jmap-diff", "PID", "--interval", "1", "--count", "2"], 128),
        ("endless", ["hsperf-check", "PID", "--probe"], 64),
        ("endless-version", ["jpmp", "PID", "1"], 4),
    ],
)
def test_an_answer_without_end_is_cut_off(fake_jvm, mode, words, most):
    """What a hostile JVM pours out is bounded by the kind of question; opskit says so, in as much memory and 100 MiB."""
    fake = fake_jvm(mode)
    command = [sys.executable, "-m", "opskit", *(word.replace("PID", str(fake.pid)) for word in words)]
    done = subprocess.run([sys.executable, "-c", PEAK, *command], capture_output=True, text=True, check=False)
    peak_kib = int(done.stdout.split()[-1])
    assert f"answered more than {most} MiB" in done.stdout + done.stderr
    assert done.returncode == (1 if words[0] == "hsperf-check" else 2), done.stderr
    assert peak_kib >> 10 < most + 100


def test_its_reason_is_a_word_of_its_own(fake_jvm):
    """A reply that is too large can be told from one that is cut, and knows the limit."""
    with pytest.raises(errors.AttachReplyTooLarge) as raised:
        client(fake_jvm("endless")).execute("properties")
    assert raised.value.reason == "reply-too-large"
    assert raised.value.limit_bytes == attachwire.LARGEST_OTHER_REPLY_BYTES


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_no_trigger(fake_jvm, number):
    """Interrupted while it waits for the listener, opskit removes the trigger before it ends."""
    fake = fake_jvm("never")
    child = os.fork()
    if not child:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            client(fake, 600.0).thread_dump()
        except KeyboardInterrupt:
            os._exit(130)
        finally:
            os._exit(1)
    deadline = time.monotonic() + 60
    while "quit" not in fake.output():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert any(map(os.path.lexists, trigger(fake)))
    os.kill(child, number)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == (130 if number == signal.SIGINT else -signal.SIGTERM)
    assert not any(map(os.path.lexists, trigger(fake)))


def test_a_trigger_that_was_left_behind_serves_and_stays(fake_jvm):
    """A trigger that another client has left serves us too, and is not ours to remove."""
    fake = fake_jvm("v1")
    path = trigger(fake)[1]
    with open(path, "w"):
        os.utime(path, (0, 0))
    try:
        assert "main" in client(fake).thread_dump()
        assert os.path.lexists(path)
    finally:
        os.unlink(path)


def test_a_trigger_that_is_at_work_is_waited_for(fake_jvm):
    """Another client's trigger, just made: no second signal while the JVM has not come to do what the first one said."""
    fake = fake_jvm("v1")
    path = trigger(fake)[1]
    with open(path, "w"):
        pass
    slow = threading.Timer(1.5, fake.signal, [signal.SIGQUIT])
    slow.start()
    try:
        assert "main" in client(fake).thread_dump()
    finally:
        slow.join()
        os.unlink(path)
    assert fake.output().count("quit") == 1
    assert "dump" not in fake.output().splitlines()


def test_a_trigger_of_the_wrong_user_stops_everything(fake_jvm, root_only):
    """HotSpot would find that file, not take it, and print a dump: no signal is sent."""
    fake = fake_jvm("v1")
    _, path = trigger(fake)
    with open(path, "w"):
        os.chown(path, APP, APP)
    try:
        with pytest.raises(errors.AttachTrigger, match=f"belongs to uid {APP}.*No signal was sent"):
            client(fake).thread_dump()
        assert "quit" not in fake.output()
        assert "dump" not in fake.output()
        assert os.path.lexists(path)
    finally:
        os.unlink(path)


def test_the_trigger_goes_to_tmp_where_the_cwd_is_closed(fake_jvm, root_only, tmp_path):
    """The JVM's user may not write to /, so the trigger is made in /tmp."""
    fake = fake_jvm("v1", user=APP)
    assert "main" in client(fake).thread_dump()
    assert f"quit {APP}" in fake.output()


@pytest.mark.parametrize("kind", ["file", "link", "directory", "fifo"])
def test_no_socket_in_the_sockets_place(fake_jvm, kind, tmp_path):
    """What is no socket is not touched, and nothing is sent."""
    fake = fake_jvm("v1")
    path = f"/tmp/.java_pid{fake.pid}"
    make = {
        "file": lambda: open(path, "w").close(),
        "link": lambda: os.symlink("/tmp/elsewhere", path),
        "directory": lambda: os.mkdir(path),
        "fifo": lambda: os.mkfifo(path),
    }
    make[kind]()
    try:
        with pytest.raises(errors.AttachSocketInsecure, match=r"where its socket should be.*nothing was sent"):
            client(fake).thread_dump()
        assert fake.output() == "READY"
    finally:
        os.rmdir(path) if kind == "directory" else os.unlink(path)


def test_an_orphan_is_replaced(fake_jvm):
    """A socket that nobody listens on, and no listener thread: the JVM is asked to make its own."""
    fake = fake_jvm("v1")
    with socket.socket(socket.AF_UNIX) as orphan:
        orphan.bind(f"/tmp/.java_pid{fake.pid}")
    assert "main" in client(fake).thread_dump()


def test_another_process_behind_the_socket(fake_jvm):
    """SO_PEERCRED must name the very process that was asked for."""
    fake, other = fake_jvm("v1"), fake_jvm("v1")
    client(other).thread_dump()
    os.link(f"/tmp/.java_pid{other.pid}", f"/tmp/.java_pid{fake.pid}")
    with pytest.raises(errors.AttachSocketForeign, match=f"belongs to process {other.pid}") as caught:
        client(fake).thread_dump()
    assert caught.value.peer == other.pid
    assert fake.output() == "READY"


def test_a_burning_thread_is_named(fake_jvm):
    """A JVM that does not answer gets its busiest thread named, from /proc alone."""
    fake = fake_jvm("burn")
    with pytest.raises(errors.AttachTimeout, match=r'thread "hog-thread" \(tid \d+\) used') as caught:
        client(fake, 2.0).thread_dump()
    assert caught.value.thread == "hog-thread"


def test_the_pid_of_another_namespace_is_refused(tree):
    """A tree that is not our own pid namespace's: nothing is sent to anybody."""
    root = tree({"proc/4242/stat": "4242 (java) S 1"})
    with pytest.raises(errors.NotPermitted, match=r"another pid namespace.*Nothing was sent"):
        AttachClient(ProcFS(str(root / "proc"), str(root)), 4242).thread_dump()


@pytest.mark.parametrize("orphan", [False, True])
def test_many_clients_at_once(fake_jvm, orphan):
    """Clients that start the listener together all get their dump by one signal, and no dump comes into the output.

    Also where a dead socket lies in the way.
    """
    fake = fake_jvm("v1")
    if orphan:
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(f"/tmp/.java_pid{fake.pid}")

    with ProcessPoolExecutor(6, get_context("fork")) as clients:  # processes: threads would take turns
        assert all(each.result() for each in [clients.submit(ask_anew, fake.pid) for _ in range(6)])
    assert "dump" not in fake.output().splitlines()
    assert fake.output().count("quit") == 1
    assert not any(map(os.path.lexists, trigger(fake)))


class Watched(ProcFS):
    """Does something right before a file of this name is read."""

    def __init__(self):
        super().__init__()
        self.acts = {}

    def read_path(self, path, *limit):
        self.acts.get(path.rpartition("/")[2], str)()
        return super().read_path(path, *limit)


@pytest.mark.parametrize("name", ["cmdline", "environ", "status"])
def test_a_jvm_that_ends_meanwhile(fake_jvm, name):
    """Between two looks at it the JVM ends: that is said in a line."""
    fake, fs = fake_jvm("v1"), Watched()
    asked = AttachClient(fs, fake.pid)
    assert asked.target
    fs.acts[name] = fake.stop
    with pytest.raises(errors.NoSuchProcess, match="ended"):
        asked.thread_dump()
