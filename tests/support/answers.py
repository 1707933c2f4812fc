"""What the tests of every command look at alike: valid JSON, one line for bad usage and for what is no process."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from hostcaches import wait_until
from schemafiles import keeps_to_schema

FORMATS = ("table", "text", "json", "csv", "markdown", "prometheus")
_WITH_A_THREAD = "import threading; threading.Thread(target=threading.Event().wait).start(); print(1, flush=True)"


def valid(command, text):
    """The JSON object that a command has printed, valid by its schema."""
    document = json.loads(text)
    keeps_to_schema(document, command)
    return document


def answer(run, command, *words, codes=(0, 1)):
    """The JSON object of a run. `run`: the fixture `inprocess` or `opskit`."""
    done = run(command, *words, "-f", "json")
    assert done.code in codes, done
    return valid(command, done.out)


def refused(done, message):
    """Exit code 2, nothing on stdout, and on stderr what begins with the message."""
    assert (done.code, done.out) == (2, ""), done
    assert done.err.startswith(message), done.err


def is_zombie(pid):
    """Whether a process has ended, but was not reaped."""
    return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")


def no_thread(run, command, spawn):
    """A thread's ID is no PID: one line names the process that it is of."""
    held = spawn(_WITH_A_THREAD)
    thread = max(map(int, os.listdir(f"/proc/{held.pid}/task")))
    done = run(command, thread)
    refused(done, f"opskit: {thread} (")
    assert done.err.endswith(f") is a thread of process {held.pid}: give {held.pid} instead\n")


def no_zombie(run, command, message, *, gone=""):
    """Nor is there anything to be seen of a zombie, or of a PID that nobody has: one line each. `gone` follows the latter."""
    with subprocess.Popen(["true"]) as ended:
        assert wait_until(lambda: is_zombie(ended.pid))
        done = run(command, ended.pid)
    refused(done, message.format(pid=ended.pid))
    assert done.err.count("\n") == 1
    done = run(command, ended.pid)
    assert (done.code, done.out, done.err) == (2, "", f"opskit: no process {ended.pid}{gone}\n")
