"""Clients of time daemons: which daemon is asked, programs that hang, fail, write without end, and a signal meanwhile."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from clockfacts import CHRONYD

from opskit.actions import programs, time_daemons
from opskit.actions.time_daemons import DaemonReader
from opskit.collect.clock.facts import Daemon
from opskit.host import Host
from opskit.proc.fs import ProcFS

TRACKING = "Reference ID    : 0A000001 (10.0.0.1)\nStratum         : 3\nLeap status     : Normal\n"


@pytest.fixture
def client(tmp_path, monkeypatch):
    """Make a chronyc of this shell script the only one."""

    def make(script):
        path = tmp_path / "chronyc"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setattr(programs, "_DIRECTORIES", (str(tmp_path), "/bin", "/usr/bin"))
        return DaemonReader(Host(ProcFS()))

    return make


def children():
    """Those of ours that are clients, also if they have ended and were not reaped."""
    own = os.getpid()
    pids = Path(f"/proc/{own}/task/{own}/children").read_text().split()
    return [pid for pid in pids if Path(f"/proc/{pid}/comm").read_text().strip() in ("chronyc", "sleep", "yes")]


def test_its_words_and_its_answer(client, tmp_path):
    """Fixed words, an environment of its own, no standard input."""
    said = tmp_path / "said"
    reader = client(f'echo "$0 $*" > {said}; env >> {said}; cat >> {said}; printf "{TRACKING}"'.replace("\n", "\\n"))
    [answer] = reader.ask([CHRONYD])
    assert (answer.is_synchronised, answer.reference, answer.pid, answer.problem) == (True, "10.0.0.1", 412, None)
    words, *environment = said.read_text().splitlines()
    assert words.endswith("chronyc -n tracking")
    assert {line.partition("=")[0] for line in environment} <= {
        "LC_ALL",
        "PATH",
        "SYSTEMD_PAGER",
        "TERM",
        "PWD",
        "_",
        "SHLVL",
        "OLDPWD",
    }


def test_it_is_asked_once_in_ten_seconds(client, tmp_path):
    """A watch looks more often."""
    reader = client(f"echo x >> {tmp_path}/times; echo no")
    for _ in range(3):
        assert reader.ask([CHRONYD])[0].problem == "chronyc: no"
    assert (tmp_path / "times").read_text() == "x\n"


def test_it_is_asked_again_when_the_clock_was_set(client, tmp_path, monkeypatch):
    """Its offset is from before that; not more than once a second."""
    reader = client(f"echo x >> {tmp_path}/times; echo no")
    for steps in (0, 1, 2):
        reader.ask([CHRONYD], steps)
    assert (tmp_path / "times").read_text() == "x\n"
    monkeypatch.setattr(time_daemons, "_EACH_STEP_S", 0.0)
    for _ in range(2):
        reader.ask([CHRONYD], 2)
    assert (tmp_path / "times").read_text() == "x\nx\n"


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("exit 3", "chronyc: exit code 3"),
        ("echo 506 Cannot talk to daemon; exit 1", "chronyc: 506 Cannot talk to daemon"),
        ("echo error >&2; exit 1", "chronyc: error"),
        ("kill -9 $$", "chronyc: exit code 255"),
        ("printf '\\377\\376\\n'", "chronyc: \ufffd\ufffd"),
    ],
)
def test_a_client_that_fails(client, script, problem):
    """Its first line is the reason."""
    assert client(script).ask([CHRONYD])[0].problem == problem
    assert children() == []


@pytest.mark.parametrize("script", ["exec sleep 600", "exec >&- 2>&-; sleep 600", "trap '' TERM; exec sleep 600"])
def test_a_client_that_hangs(client, monkeypatch, script):
    """It is killed, also after it has closed its output."""
    monkeypatch.setattr(time_daemons, "_TIMEOUT_S", 0.2)
    begun = time.monotonic()
    assert client(script).ask([CHRONYD])[0].problem == "chronyc did not end within 0.2 s"
    assert time.monotonic() - begun < 30
    assert children() == []


def test_a_client_that_writes_without_end(client, monkeypatch):
    """16 KiB are read."""
    monkeypatch.setattr(time_daemons, "_TIMEOUT_S", 0.3)
    assert client("exec yes").ask([CHRONYD])[0].is_synchronised is None
    assert children() == []


def test_no_client(client, tmp_path, monkeypatch):
    """It is not installed, or is no program."""
    reader = client("exit 0")
    (tmp_path / "chronyc").write_bytes(b"\x7fELF no program")
    assert reader.ask([CHRONYD])[0].problem.startswith("chronyc: ")
    (tmp_path / "chronyc").unlink()
    monkeypatch.setattr(programs, "_DIRECTORIES", (str(tmp_path),))
    assert DaemonReader(Host(ProcFS())).ask([CHRONYD])[0].problem == "chronyc is not installed"


def test_which_is_asked(client):
    """One of each kind, the one that its client reaches; none that cannot set the clock."""
    reader = client("echo no")
    far = CHRONYD._replace(pid=1, shares_network=False)
    assert reader.ask([far])[0].problem == "it runs in another network namespace"
    assert [answer.pid for answer in reader.ask([far, CHRONYD, CHRONYD._replace(pid=413)])] == [412]
    assert reader.ask([CHRONYD._replace(may_set=False), Daemon("phc2sys", 7, 1, True, 1.0, True)]) == []
