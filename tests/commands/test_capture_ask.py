"""`opskit capture --ask` of a JVM: commands with --ask answer from the file, and secrets are hidden in the replies, too."""

from __future__ import annotations

import jvms
import pytest

from opskit.proc.recorded.packing import pack
from opskit.proc.recorded.store import load_capture
from opskit.proc.recorded.tape import REPLY

LINES = (
    "doctor --ask", "doctor {} --ask", "jpmp {}", "jpmp {} 9 --by-thread", "jpmp {} --locks", "jmap-diff {}", "mem {} --ask", "jmx {} --ask",
    "tcp {} --ask", "fds {} --ask", "io {} --ask", "cswitch {} --ask",
)  # fmt: skip
HIDDEN = "hunter2" + "secret"


@pytest.fixture(scope="module")
def captured(inprocess, tmp_path_factory):
    """A file, the PID of the JVM in it, which has ended, and what the command said."""
    path = tmp_path_factory.mktemp("captured") / "x.tar.gz"
    running = jvms.start("lock=2", version=17, properties=(f"-Ddb.password={HIDDEN}",))
    try:
        done = inprocess(
            "capture", running.pid, "--ask", "--what", "threads,histogram,flags,info", "-i", "0.2", "-o", path
        )
    finally:
        running.stop()
    assert done.code == 0, done
    return path, running.pid, done


@pytest.mark.parametrize("line", LINES)
def test_commands_answer_from_the_file(captured, inprocess, line):
    """All that they read is there."""
    path, pid, _ = captured
    done = inprocess("--from", path, *line.format(pid).split())
    assert done.code in (0, 1), done
    assert "not in the capture" not in done.err
    assert done.out


def test_the_threads_are_those_of_the_jvm(captured, inprocess):
    """And doctor says that one was taken."""
    path, pid, _ = captured
    assert 'held by "reentrant-holder"' in inprocess("--from", path, "jpmp", pid, "--locks").out
    assert f"took a thread dump of {pid} (java)" in inprocess("--from", path, "doctor", pid, "--ask", "-f", "table").out
    assert "2 class histograms" in inprocess("--from", path, "jmap-diff", pid).err


def test_secrets_are_hidden_in_replies(captured):
    """In the flags, the properties, the state of the JVM and all else."""
    replies = {key: each for _, key, each in load_capture(str(captured[0])).all_of(REPLY)}
    pid = captured[1]
    for name in ("properties", "VM.command_line", "VM.info"):
        assert b"db.password=" in replies[f"{pid}/{name}"], name
    assert not [name for name, data in pack(load_capture(str(captured[0]))) if HIDDEN.encode() in data]


def test_what_to_ask_for_goes_with_asking(inprocess, tmp_path):
    """--what needs --ask, and knows four words."""
    for words, said in (
        ((), "--what goes with --ask"),
        (("--ask",), "--what 'heap': choose among threads, histogram, flags, info"),
    ):
        done = inprocess("capture", *words, "--what", "heap", "-o", tmp_path / "x.tar.gz")
        assert (done.code, done.out, said in done.err) == (2, "", True)
