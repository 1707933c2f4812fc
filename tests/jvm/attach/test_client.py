"""Ask JVMs: real ones of each version, and a server that misbehaves in every known way (tests/support/fakejvm.py)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import jvms
import pytest
from atonce import ForEach
from attaching import client, refused, socket_of, triggers_of

from opskit.errors import AttachError, NoSuchProcess, UsageError
from opskit.jvm.attach import wire
from opskit.jvm.attach.client import AttachClient
from opskit.jvm.discover import read_perfdata
from opskit.proc.fs import ProcFS

APP, OTHER = 1234, 1235  # users without a name


def triggers(workload):
    """The trigger files of a JVM that exist."""
    places = ("/tmp", f"/proc/{workload.pid}/cwd")
    return [place for place in places if os.path.lexists(f"{place}/.attach_pid{workload.pid}")]


@pytest.mark.parametrize("user", [None, APP], ids=["same user", "root to another user"])
def test_dump_histogram_and_jcmd(workload, jvm_version, user, request):
    """Starting the listener leaves nothing but its socket; one client sends several commands."""
    if user is not None:
        request.getfixturevalue("root_only")
    running = workload("sleep=2", "deadlock", "retain=123", version=jvm_version, user=user, group=user)
    asked = client(running)
    dump = asked.thread_dump()
    assert '"sleep-1"' in dump
    assert "Found one Java-level deadlock" in dump
    assert asked.version == (2 if jvm_version >= 24 else 1)
    assert "allocated=" in asked.thread_dump(extended=True)
    assert "Locked ownable synchronizers" in asked.thread_dump(locks=True)
    assert " 123 " in next(line for line in asked.histogram().splitlines() if "Workload$Retained" in line)
    assert " 123 " in next(line for line in asked.histogram(live=True).splitlines() if "Workload$Retained" in line)
    assert asked.jcmd("VM.version").splitlines()[1].startswith(f"JDK {jvm_version}.")
    assert triggers(running) == []
    assert "Full thread dump" not in running.output()


def test_the_jvms_own_no(workload, jvm_version):
    """The error of a refused command contains the JVM's message."""
    asked = client(workload(version=jvm_version))
    with refused("command-failed", "nonsense"):
        asked.execute("nonsense")
    with refused("command-failed", "Unknown diagnostic command"):
        asked.jcmd("No.such.command")
    with pytest.raises(UsageError, match="one word of up to 16 bytes"):
        asked.execute("much-too-long-a-command")


# Runs a command from a small process: a child's peak begins with that of whoever forked it.
PEAK = """\
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


@pytest.mark.parametrize(("mode", "version"), [("v1", 1), ("v2", 2)])
def test_the_version_is_agreed_once(fake_jvm, mode, version):
    """One getversion for all commands; version 2 has the reply collected first."""
    fake = fake_jvm(mode)
    asked = client(fake)
    assert "main" in asked.thread_dump()
    assert "main" in asked.thread_dump(extended=True)
    assert asked.version == version
    said = fake.output()
    assert said.count("getversion") == 1
    assert said.count("quit") == 1
    assert ("threaddump streaming=0" in said) == (version == 2)
    assert not any(map(os.path.lexists, triggers_of(fake)))


def test_jdk_8_takes_nobody_but_its_own_user(fake_jvm, root_only):
    """JDK 8 refuses root, so opskit connects with the JVM's uid and gid; the trigger has that owner too."""
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
        ("101", "protocol", "answered 101"),
        ("garbage", "protocol", "'hello, world'"),
        ("close", "credentials-refused", "without an answer"),
        ("reset", "credentials-refused", "without an answer"),
        ("half", "reply-cut", "has no end"),
        ("halfcode", "reply-cut", "only 1 bytes"),
    ],
)
def test_bad_answers(fake_jvm, mode, error, says):
    """Each bad answer raises an error with its own reason; half a dump is never parsed."""
    with refused(error, says):
        client(fake_jvm(mode)).thread_dump()


def test_a_large_reply_is_drained(fake_jvm):
    """A reply of 100 MB is read completely."""
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
    """The reply of a hostile JVM is limited by command; memory stays below the limit plus 100 MiB."""
    fake = fake_jvm(mode)
    command = [sys.executable, "-m", "opskit", *(word.replace("PID", str(fake.pid)) for word in words)]
    done = subprocess.run([sys.executable, "-c", PEAK, *command], capture_output=True, text=True, check=False)
    peak_kib = int(done.stdout.split()[-1])
    assert f"answered more than {most} MiB" in done.stdout + done.stderr
    assert done.returncode == (1 if words[0] == "hsperf-check" else 2), done.stderr
    assert peak_kib >> 10 < most + 100


def test_its_reason_is_a_word_of_its_own(fake_jvm):
    """A reply that is too large has its own reason and the limit as a fact."""
    with refused("reply-too-large") as raised:
        client(fake_jvm("endless")).execute("properties")
    assert raised.value.facts["limit_bytes"] == wire.LARGEST_OTHER_REPLY_BYTES


class Watched(ProcFS):
    """Calls a function right before a file of this name is read."""

    def __init__(self):
        super().__init__()
        self.acts = {}

    def read_path(self, path, *limit):
        self.acts.get(path.rpartition("/")[2], str)()
        return super().read_path(path, *limit)


@pytest.mark.parametrize("name", ["cmdline", "environ", "status"])
def test_a_jvm_that_ends_meanwhile(fake_jvm, name):
    """A JVM that ends between two reads: an error of one line."""
    fake, fs = fake_jvm("v1"), Watched()
    asked = AttachClient(fs, fake.pid)
    assert asked.target
    fs.acts[name] = fake.stop
    with pytest.raises(NoSuchProcess, match="ended"):
        asked.thread_dump()


def test_the_same_user_with_another_group(workload, as_user):
    """A JVM closes the connection to a client with another gid; the error names the right gid."""
    running = workload(user=APP, group=APP)
    client(running).thread_dump()
    with pytest.raises(AttachError, match=f"gid {OTHER}, it runs as uid {APP} gid {APP}"):
        as_user(APP, lambda: client(running).thread_dump(), gid=OTHER)


def test_the_jvm_ends(workload):
    """An error says that the JVM has ended."""
    running = workload()
    asked = client(running)
    asked.thread_dump()
    running.stop()
    with pytest.raises(NoSuchProcess, match="ended"):
        asked.thread_dump()


def pauses_of_a_slow_reader(version):
    """For how long the JVM was stopped while a client read nothing for 1.5 s, and until it had read all."""
    with jvms.running("sleep=130", version=version) as running, socket.socket(socket.AF_UNIX) as slow:
        asked = client(running)
        asked.thread_dump()
        encode = wire.encode_v2 if asked.version == 2 else wire.encode_v1
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        slow.connect(socket_of(running))
        before = stopped_s(running)
        slow.sendall(encode("threaddump", ()))
        time.sleep(1.5)
        during = stopped_s(running) - before
        while slow.recv(65536):
            continue
        return during, stopped_s(running) - before


SLOW_READERS = ForEach(pauses_of_a_slow_reader, jvms.WHEELS)


def test_a_slow_reader_does_not_hold_up_the_jvm(jvm_version):
    """A client that reads nothing for 1.5 s does not pause the JVM, with the request that opskit sends."""
    during, in_all = SLOW_READERS.result(jvm_version)
    assert during < 0.5
    assert in_all < 0.5


def stopped_s(running):
    # By its mapping: a JVM in a PID namespace of its own removes the files of PIDs that it does not know.
    return read_perfdata(ProcFS(), running.pid).ticks_s("sun.rt.safepointTime")
