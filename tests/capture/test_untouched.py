"""A replay asks nothing of the machine that it runs on: no file of /proc or /sys, no process, no socket, no name of a user."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
import questions
import stracing
import taping
from ownspaces import in_own_pids

import opskit
from opskit.host import Host
from opskit.proc.fs import ProcFS
from opskit.proc.recorded.answers import encode
from opskit.proc.recorded.call_samples import CallSamples
from opskit.proc.recorded.packing import capture_chunks
from opskit.proc.recorded.store import load_capture
from opskit.proc.recorded.tape import CALL, Mark
from opskit.recorded_host import RecordedHost

ALL, REFUSED = (
    ("doctor -v --all", "tcp {pid}", "fds {pid}", "fds --deleted", "pipes --fill", "hsperf-check", "irqs", "clock {pid}", "limits {pid}"),
    ("irqs --jitter 0", "cswitch --bench", "clock --server localhost", "dentry --drop all", "profile {pid}", "limits {pid} --probe"),
)  # fmt: skip
BEGINS = "/opskit-test-begins"
REPLAY = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent.parent / "support")!r})
import inprocess
archive, *lines = sys.argv[1:]
ran = inprocess.run("--from", archive, "doctor")
os.path.exists({BEGINS!r})
print(*(inprocess.run("--from", archive, *line.split()).code for line in lines))
"""
TRACED = (
    "%file", "%network", "%process", "ptrace", "kcmp", "setns", "unshare", "pidfd_open", "pidfd_getfd", "sched_getaffinity",
    "sched_setaffinity", "sched_getscheduler", "getpriority", "adjtimex", "clock_adjtime", "syslog", "perf_event_open",
    "process_vm_readv", "kill", "tgkill", "bpf", "fsopen",
)  # fmt: skip
# Python's own: modules, messages of argument parsers, the working directory of a command line.
OWN = re.compile(r'\w+\((?:\d+, "",|"/"\)|AT_FDCWD, "(?P<path>[^"]*)"|"(?P<other>/[^"]*)")|exit_group')


class Archive(NamedTuple):
    """A capture, the lines that can be asked of it, with their exit codes when it was made, and the PID that they name."""

    path: str
    lines: list[str]
    codes: list[int]
    pid: int


@pytest.fixture(scope="module")
def archive(tmp_path_factory, root_only):
    """A capture of a machine, with two samples, in which a process has a socket."""
    data, *found = in_own_pids(captured)
    path = tmp_path_factory.mktemp("capture") / "x.tgz"
    path.write_bytes(data)
    return Archive(str(path), *found)


def captured():
    with subprocess.Popen([sys.executable, "-c", STAGED], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as staged:
        staged.stdout.readline()
        host = Host(ProcFS())
        tape = taping.tape_of(host)
        samples = CallSamples(tape, host.fs)
        samples.sample(0)
        tape.marks.append(Mark(time.time() + 1, time.monotonic() + 1))
        samples.sample(1)
        samples.keep()
        lines = [line.format(pid=staged.pid) for line in ALL]
        codes = [taping.show(RecordedHost(tape, host.fs), line).code for line in lines]
        staged.kill()
    return b"".join(capture_chunks(tape)), lines, codes, staged.pid


STAGED = "import socket; server = socket.create_server(('127.0.0.1', 0)); print(1, flush=True); input()"


def test_a_replay_touches_nothing_here(archive, tmp_path):
    """By strace: it opens the capture and its own modules; what must run here is refused."""
    stracing.needs_strace()
    log = tmp_path / "strace"
    refused = [line.format(pid=archive.pid) for line in REFUSED]
    done = subprocess.run(
        ["strace", "-f", "--seccomp-bpf", "-qq", "-e", "signal=none", "-o", log, "-e", f"trace={','.join(TRACED)}",
         sys.executable, "-c", REPLAY, archive.path, *archive.lines, *refused],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert [*map(int, done.stdout.split())] == [*archive.codes, *[2] * len(refused)]
    calls = [line.split(None, 1)[1] for line in log.read_text(encoding="utf-8").splitlines()]
    begins = next(at for at, call in enumerate(calls) if BEGINS in call)
    assert [call for call in calls[begins + 1 :] if not _is_pythons(call, archive.path)] == []


def test_nonsense_in_the_answers(archive):
    """Answers of the right types, and of no machine: no command fails for them."""
    types = {f"{module.removeprefix('opskit.')}.{name}": (module, name) for module, name in questions.questions()}
    tape, chance = load_capture(archive.path), random.Random(7)  # noqa: S311
    for answers in tape.answers[CALL]:
        for key in [key for key in answers if key.partition("(")[0] in types and chance.random() < 0.5]:
            annotation = questions.function(*types[key.partition("(")[0]]).__annotations__["return"]
            answers[key] = ["answer", encode(questions.any_answer(annotation, chance))]
    assert {taping.show(RecordedHost(tape), line).code for line in archive.lines} <= {0, 1, 2}


def _is_pythons(call, archive):
    found = OWN.match(call)
    where = found and (found["path"] or found["other"])
    homes = (
        sys.prefix,
        sys.base_prefix,
        *(each for each in sys.path if each),
        str(Path(opskit.__file__).parent.parent),
    )
    return bool(found) and (
        where is None or where == archive or where.startswith(tuple(map(os.path.realpath, homes)) + homes)
    )
