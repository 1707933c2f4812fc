"""`opskit capture`: the file, its name and place, refusals, --keep, Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys

import pytest
from jvmtree import LIBJVM, PROGRAM, Tree
from ownspaces import in_own_mounts

from opskit import cli
from opskit.analysis.capture.result import Captured
from opskit.commands.shared import capture_runs
from opskit.commands.shared.capturing import make_tape
from opskit.commands.shared.every_command import _run
from opskit.commands.shared.unseen import Unseen
from opskit.render.report import About
from opskit.render.views import capture as view

JVM = 40
STAMP = r"[0-9]{8}T[0-9]{6}Z"


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """A copy of a machine with one JVM, which has a secret."""
    root = tmp_path_factory.mktemp("machine")
    tree = Tree(root)
    tree.process(JVM, ("java", "-Ddb.password=hunter2secret", "Shop"), maps=PROGRAM + LIBJVM + tree.perf(str(JVM)))
    tree.write("proc/sys/kernel/hostname", "web 1/x\n")
    tree.write("proc/loadavg", "1.0 2.0 3.0 1/16 99\n")
    return root


@pytest.fixture(scope="module")
def tapes():
    """What was captured of the machine, by what was wanted of it: the same again and again."""
    return {}


@pytest.fixture
def capture(machine, tapes, inprocess, tmp_path, monkeypatch):
    """Run `opskit --root MACHINE capture ARGUMENTS` in a directory of its own."""

    def made(host, group, wanted, progress):
        if wanted not in tapes:
            tapes[wanted] = make_tape(host, group, wanted, progress)
        return tapes[wanted]

    monkeypatch.setattr(capture_runs, "make_tape", made)
    (tmp_path / "here").mkdir()
    return lambda *arguments: inprocess("--root", machine, "capture", *arguments, cwd=str(tmp_path / "here"))


def test_what_was_captured(capture, inprocess, tmp_path):
    """The file, its size, processes, JVMs, samples, what was hidden, and the command to type next."""
    done = capture("-o", "x.tar.gz")
    path = tmp_path / "here/x.tar.gz"
    assert (done.code, done.err) == (0, "next: opskit --from x.tar.gz doctor\n")
    assert re.search(r"wrote x\.tar\.gz \([0-9.]+ [KM]iB\): 1 process, 1 JVM, 1 sample\n", done.out), done.out
    assert "hidden: " in done.out
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"hunter2secret" not in subprocess.run(["gzip", "-dc", path], capture_output=True, check=True).stdout
    assert "com.example.Main" in inprocess("--from", path, "jvms").out


def test_json(capture, tmp_path):
    """The same as one object."""
    found = json.loads(capture("-o", "x.tgz", "-f", "json").out)
    assert (found["file"], found["processes"], found["jvms"], found["samples"]) == ("x.tgz", 1, 1, 1)
    assert found["size_bytes"] == (tmp_path / "here/x.tgz").stat().st_size
    assert found["hidden"]


def test_name_without_o(capture, tmp_path):
    """The machine's name and the time, in the current directory."""
    done = capture()
    (name,) = os.listdir(tmp_path / "here")
    assert re.fullmatch(rf"web-1-x-{STAMP}\.tar\.gz", name)
    assert f"wrote {name} " in done.out


def test_secrets_stay_if_asked(capture, tmp_path):
    """With a warning on stderr."""
    done = capture("--no-redact", "-o", "x.tar.gz")
    assert done.err.startswith("opskit: with --no-redact the file holds secrets of all processes in plain text\n")
    assert (
        b"hunter2secret"
        in subprocess.run(["gzip", "-dc", tmp_path / "here/x.tar.gz"], capture_output=True, check=True).stdout
    )


def test_a_bug_in_a_command_is_shown():
    """The capture goes on; its report names the command and the error."""
    why = _run(cli.group, Unseen(None), "limits")
    captured = Captured("x.tar.gz", 1, 1, 0, 1, 0.0, None, without=(("limits", why), ("jvms", "no JVM runs")))
    summary = view.report(About("web-1", "2026-11-24T01:00:00Z", "0.1.0", "opskit capture"), captured).summary
    assert [line for line in summary if "limits" in line or "jvms" in line] == [f"not captured: limits: {why}"]
    assert why.startswith("a bug in opskit: AttributeError: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-o", "x.zip"), "give a name such as incident.tar.gz"), (("-o", "-"), "give a name such as incident.tar.gz"),
        (("-o", "none/x.tar.gz"), "there is no directory"), (("-c", "2"), "is a copy, which does not change"), (("--what", "threads"), "--ask"),
        (("--when", "cpu>80"), "--when: "), (("--when", "load>8"), "write 'cpu>80'"), (("--keep", "0"), "--keep"), (("-i", "0"), "-i"),
        (("nosuchprocess",), "nosuchprocess"), (("--what", "heap"), "--what goes with --ask"),
        (("--ask", "--what", "heap"), "--what 'heap': choose among threads, histogram, flags, info"),
    ],
)  # fmt: skip
def test_refused(capture, tmp_path, arguments, said):
    """Exit code 2, the reason in one line, and no file."""
    done = capture(*arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert os.listdir(tmp_path / "here") == []


def test_capture_of_a_capture(capture, inprocess, tmp_path):
    """It would be the same file."""
    capture("-o", "x.tar.gz")
    done = inprocess("--from", tmp_path / "here/x.tar.gz", "capture", "-o", tmp_path / "y.tar.gz")
    assert done.code == 2
    assert "capture" in done.err


def test_keep(capture, tmp_path):
    """The time is added to the name; the oldest files go."""
    made = [re.search(r"wrote (\S+) ", capture("-o", "x.tar.gz", "--keep", "2").out)[1] for _ in range(3)]
    assert len(set(made)) == 3
    assert all(re.fullmatch(rf"x-{STAMP}(-[23])?\.tar\.gz", name) for name in made)
    assert sorted(os.listdir(tmp_path / "here")) == sorted(made[1:])


def test_full_disk(machine, capture, tmp_path, root_only):
    """One line, and nothing is left of the file; an older one stays."""
    capture("-o", "x.tar.gz")  # what it imports
    place = tmp_path / "small"
    place.mkdir()

    def on_a_full_disk():
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", place], check=True)
        (place / "x.tar.gz").write_text("old")
        done = capture("-o", place / "x.tar.gz")
        return done, os.listdir(place), (place / "x.tar.gz").read_text()

    done, names, text = in_own_mounts(on_a_full_disk)
    assert (done.code, done.out, names, text) == (2, "", ["x.tar.gz"], "old")
    assert done.err.startswith(f"opskit: cannot write {place}/x.tar.gz: No space left on device")


def test_ctrl_c_while_waiting(tmp_path):
    """Exit code 130, and no file."""
    words = ["capture", "--when", "cpu>=100", "-i", "1h", "-o", str(tmp_path / "x.tar.gz")]
    process = subprocess.Popen(
        [sys.executable, "-c", WAITER, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "waits\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "")
    assert os.listdir(tmp_path) == []


WAITER = """
import time
from opskit import cli
sleep = time.sleep
def told(seconds):
    print("waits", flush=True)
    sleep(seconds)
time.sleep = told
cli.main()
"""
