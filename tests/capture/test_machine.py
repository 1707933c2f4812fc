"""A capture of a machine with faults, whose JVM was asked: every command shows of it what it showed when it was captured."""

from __future__ import annotations

import copy
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import inprocess
import jvms
import pytest
from ownspaces import in_own_pids
from taping import codes_in, differences, show

from opskit.analysis.capture.redact import redact
from opskit.commands.shared import capture_runs
from opskit.commands.shared.capturing import make_tape
from opskit.commands.shared.every_command import every_line
from opskit.host import Host
from opskit.proc.recorded.packing import pack
from opskit.proc.recorded.store import load_capture
from opskit.proc.recorded.tape import REPLY
from opskit.recorded_host import RecordedHost

SECRET = "correct-horse"  # noqa: S105
WRITES = "import os, sys; os.write(1, b'x'); print(file=sys.stderr, flush=True); os.write(1, bytes(1 << 20))"
FINDINGS = {"jvm-deadlock", "pipe-full-writer-blocked"}
# Of the JVM, which has replied.
ASKED = (
    "doctor --ask", "doctor {} --ask", "jpmp {}", "jpmp {} 9 --by-thread", "jpmp {} --locks", "jmap-diff {}", "mem {} --ask", "jmx {} --ask",
    "tcp {} --ask", "fds {} --ask", "io {} --ask", "cswitch {} --ask",
)  # fmt: skip


class Machine(NamedTuple):
    """What was captured: the PIDs of a JVM, of a writer that is blocked on its pipe and of a process with a deleted file.

    `codes`: what doctor found; `without`: the lines that gave nothing; `shown`: what each line showed while the machine could be asked.
    """

    jvm: int
    writer: int
    holder: int
    archive: bytes
    codes: set[str]
    without: list[tuple[str, str]]
    shown: dict[str, inprocess.Ran]


def staged():
    """Two JVMs, a writer that is blocked on its pipe, a deleted file, a connection; and the capture of them."""
    modes = ("deadlock", "lock=2", "sleep=3")
    jvm = jvms.start(*modes, version=21, options=("-Xmx64m", f"-Ddb.password={SECRET}")).pid
    jvms.start("blocked=2", version=17, options=("-Xmx64m",))
    reading, writing = os.pipe()
    environment = {**os.environ, "APP_TOKEN": SECRET}
    writer = subprocess.Popen([sys.executable, "-c", WRITES], stdout=writing, stderr=subprocess.PIPE, env=environment)
    os.close(writing)
    writer.stderr.readline()
    deleted = open("/tmp/deleted", "wb")  # noqa: SIM115
    deleted.write(bytes(1 << 20))
    os.unlink("/tmp/deleted")
    listening = socket.create_server(("127.0.0.1", 0))
    connected = socket.create_connection(listening.getsockname())
    made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capture_runs, "make_tape", lambda *given: made.append(make_tape(*given)) or made[0])
        done = inprocess.run(
            "capture", jvm, writer.pid, "--ask", "--what", "threads,histogram,flags,info", "--no-redact", "-i", "0.5",
            "-o", "/tmp/x.tar.gz",
        )  # fmt: skip
    assert done.code == 0, done
    [(tape, captured)] = made
    lines = [
        "doctor -v --all",
        *every_line((jvm,), (jvm, writer.pid)),
        f"doctor {writer.pid} -v",
        f"jvms {jvm} -i 1",
        "pipes --by-user",
        "pipes --ends",
    ]
    lines += [line.format(jvm) for line in ASKED]
    live = Host.at(None, None)
    shown = {line: show(RecordedHost(tape, live.fs), f"{line} -f json") for line in lines}
    for each in (reading, deleted, connected, listening):
        assert each  # they are there until now
    codes = {each.code for each in captured.seen}
    return Machine(jvm, writer.pid, os.getpid(), Path("/tmp/x.tar.gz").read_bytes(), codes, [*captured.without], shown)


@pytest.fixture(scope="module")
def machine(root_only):
    """The machine, which is staged and captured once, and has ended."""
    return in_own_pids(staged)


@pytest.fixture(scope="module")
def loaded(machine, tmp_path_factory):
    """The capture as it is read from its file."""
    path = tmp_path_factory.mktemp("capture") / "x.tar.gz"
    path.write_bytes(machine.archive)
    return load_capture(str(path))


@pytest.fixture(scope="module")
def redacted(loaded):
    """The same without secrets."""
    tape = copy.deepcopy(loaded)
    redact(tape)
    return tape


def test_a_capture_shows_what_was_there(machine, loaded):
    """The deadlock, the blocked writer and the deleted file are found again, and nothing else than there was."""
    assert machine.without == []
    found = json.loads(show(RecordedHost(loaded), "doctor -f json --all").out)
    assert machine.codes >= FINDINGS
    assert {*codes_in(found)} <= machine.codes
    assert "/deleted" in show(RecordedHost(loaded), f"fds {machine.holder} --deleted -f json").out


def test_every_command_shows_the_same_again(machine, loaded):
    """Byte for byte, while the machine can be asked and when there is only the file; all that commands with --ask read is there."""
    unlike = {}
    for line, recording in machine.shown.items():
        replayed = show(RecordedHost(loaded), f"{line} -f json")
        if recording != replayed:
            unlike[line] = differences(recording, replayed)
        if line in (each.format(machine.jvm) for each in ASKED):
            assert replayed.code in (0, 1), line
            assert "not in the capture" not in replayed.err, line
    assert unlike == {}


def test_the_threads_are_those_of_the_jvm(machine, loaded):
    """And doctor says that one was taken."""
    pid = machine.jvm
    locks, checked, classes = (
        show(RecordedHost(loaded), line)
        for line in (f"jpmp {pid} --locks", f"doctor {pid} --ask -f table", f"jmap-diff {pid}")
    )
    assert 'held by "reentrant-holder"' in locks.out
    assert f"took a thread dump of {pid} (java)" in checked.out
    assert "2 class histograms" in classes.err


def test_only_values_are_hidden(machine, loaded, redacted):
    """A redacted capture gives the same answers, but for texts that held a secret."""
    jvm = machine.jvm
    for line in (
        "doctor --all",
        "jvms --show-properties",
        f"jmx {jvm} -v",
        f"limits {jvm} --all",
        f"fds {machine.writer}",
    ):
        plain, without = (show(RecordedHost(tape), f"{line} -f json") for tape in (loaded, redacted))
        assert plain.code == without.code, line
        assert SECRET not in without.out
        if plain.out:
            assert shape(json.loads(plain.out)) == shape(json.loads(without.out)), line


def shape(value):
    """A JSON value without its texts."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return "" if isinstance(value, str) else value


def test_secrets_are_hidden_in_replies(machine, redacted):
    """In the flags, the properties, the state of the JVM and all else."""
    replies = {key: each for _, key, each in redacted.all_of(REPLY)}
    for name in ("properties", "VM.command_line", "VM.info"):
        assert b"db.password=" in replies[f"{machine.jvm}/{name}"], name
    assert not [name for name, data in pack(redacted) if SECRET.encode() in data]
