"""A capture of a busy machine: every command shows of it what it showed when it was captured."""

from __future__ import annotations

import copy
import json
import os
import socket
import subprocess
import sys

import jvms
import pytest
from taping import differences, packed_and_loaded, show

from opskit import cli
from opskit.analysis.capture.redact import redact
from opskit.commands.shared.capturing import Wanted, make_tape
from opskit.commands.shared.every_command import every_line
from opskit.host import Host
from opskit.recorded_host import RecordedHost

SECRET = "correct-horse"  # noqa: S105
WRITES = "import os, sys; os.write(1, b'x'); print(file=sys.stderr, flush=True); os.write(1, bytes(1 << 20))"
FINDINGS = {"jvm-deadlock", "pipe-full-writer-blocked"}


class Machine:
    """Two JVMs, a writer that is blocked on its pipe, a deleted file, a connection; and the capture of them."""

    def __init__(self, directory):
        self.jvms = [
            jvms.start("deadlock", "sleep=3", version=21, options=("-Xmx64m", f"-Dapp.password={SECRET}")),
            jvms.start("blocked=2", version=17, options=("-Xmx64m",)),
        ]
        reading, writing = os.pipe()
        self.ends = [reading]
        self.writer = subprocess.Popen(
            [sys.executable, "-c", WRITES],
            stdout=writing,
            stderr=subprocess.PIPE,
            env={**os.environ, "APP_TOKEN": SECRET},
        )
        os.close(writing)
        self.writer.stderr.readline()
        self.deleted = (directory / "deleted").open("wb")
        self.deleted.write(bytes(1 << 20))
        (directory / "deleted").unlink()
        listening = socket.create_server(("127.0.0.1", 0))
        self.sockets = [listening, socket.create_connection(listening.getsockname())]
        self.pids = [self.writer.pid, os.getpid()]
        self.host = Host.at(None, None)
        self.tape, self.captured = make_tape(
            self.host, cli.group, Wanted(pids=(self.writer.pid,), interval_s=0.5, redacts=False)
        )

    def close(self):
        for each in self.jvms:
            each.stop()
        self.writer.kill()
        self.writer.wait()
        for each in (*self.sockets, self.deleted, self.writer.stderr):
            each.close()
        os.close(self.ends[0])


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """The machine, which is staged and captured once."""
    staged = Machine(tmp_path_factory.mktemp("machine"))
    yield staged
    staged.close()


@pytest.fixture(scope="module")
def loaded(machine, tmp_path_factory):
    """The capture as it is read from its file."""
    return packed_and_loaded(machine.tape, tmp_path_factory.mktemp("capture"))


def lines(machine):
    """The lines that a capture runs, and a few others; for one JVM and the writer."""
    pids = machine.jvms[0].pid, machine.writer.pid
    return ["doctor -v --all", *every_line(pids[:1], pids), f"doctor {pids[1]} -v", f"jvms {pids[0]} -i 1"]


def test_a_capture_shows_what_was_there(machine, loaded):
    """The deadlock, the blocked writer and the deleted file are found again, and nothing else than there was."""
    assert [
        pair for pair in machine.captured.without if "no process" not in pair[1]
    ] == []  # JVMs of other tests may end
    found = json.loads(show(RecordedHost(loaded), "doctor -f json --all").out)
    codes = {each.code for each in machine.captured.seen}
    assert codes >= FINDINGS
    assert {each["code"] for each in every_finding(found)} <= codes
    assert "/deleted" in show(RecordedHost(loaded), f"fds {os.getpid()} --deleted -f json").out


def every_finding(value):
    """All objects with a `code` in a JSON value."""
    if isinstance(value, dict):
        if "code" in value and "severity" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from every_finding(each)


def test_every_command_shows_the_same_again(machine, loaded):
    """Byte for byte, while the machine can be asked and when there is only the file."""
    unlike = {}
    for line in lines(machine):
        recording = show(RecordedHost(machine.tape, machine.host.fs), f"{line} -f json")
        replayed = show(RecordedHost(loaded), f"{line} -f json")
        if recording != replayed:
            unlike[line] = differences(recording, replayed)
    assert unlike == {}


def test_only_values_are_hidden(machine, loaded):
    """A redacted capture gives the same answers, but for texts that held a secret."""
    hidden = copy.deepcopy(loaded)
    redact(hidden)
    jvm = machine.jvms[0].pid
    for line in (
        "doctor --all",
        "jvms --show-properties",
        f"jmx {jvm} -v",
        f"limits {jvm} --all",
        f"fds {machine.writer.pid}",
    ):
        plain, redacted = (show(RecordedHost(tape), f"{line} -f json") for tape in (loaded, hidden))
        assert plain.code == redacted.code, line
        assert SECRET not in redacted.out
        if plain.out:
            assert shape(json.loads(plain.out)) == shape(json.loads(redacted.out)), line


def shape(value):
    """A JSON value without its texts."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return "" if isinstance(value, str) else value
