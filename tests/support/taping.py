"""Machines on a tape, and command lines run on them and on the machine itself."""

from __future__ import annotations

import difflib
import re
import time
from contextlib import contextmanager
from datetime import datetime, timezone

import inprocess
import pytest

from opskit import cli
from opskit.collect.capture.origin import origin_of
from opskit.collect.capture.sample import Sampler
from opskit.commands.shared import declare
from opskit.commands.shared.every_command import run_every_command
from opskit.jvm.discover import find_jvms
from opskit.proc.recorded.archive import archive_chunks
from opskit.proc.recorded.packing import pack
from opskit.proc.recorded.store import load_capture
from opskit.proc.recorded.tape import Mark, Tape
from opskit.recorded_host import RecordedHost

# Option lines beside those that a capture runs. {pid}: a process or JVM that it knows.
HOST_LINES = (
    *("pipes", "pipes --by-process", "pipes --ends", "pipes --fill --by-process", "pipes --fifos", "pipes -u root", "pipes --sort inode"),
    *("tcp", "tcp -n 3", "tcp --peer 127.0.0.1", "tcp -u root", "cswitch -v", "cswitch -u root", "irqs", "io", "io -u root"),
    *("limits", "limits -v", "limits --stack 1M", "fds -v", "fds --deleted -v", "dentry --check 50", "mem -v", "mem --files -v"),
    *("oom -v", "clock", "jvms --vm-args", "jvms --show-properties", "jvms --sort rss", "jvms -u root", "crash", "hsperf-check"),
    *("doctor -v --all --deadline 1h", "doctor --only jvms,limits --deadline 1h", "doctor --skip pipes --deadline 1h"),
)  # fmt: skip
PROCESS_LINES = (
    *("pipes {pid}", "pipes {pid} --ends --by-process", "tcp {pid}", "tcp {pid} --listen", "cswitch {pid} -v", "io {pid}", "limits {pid}"),
    *("limits {pid} -v", "fds {pid}", "fds {pid} --deleted", "mem {pid}", "mem {pid} --files", "clock {pid} -v", "doctor {pid} -v --all --deadline 1h"),
)  # fmt: skip
JVM_LINES = ("jvms {pid}", "jmx {pid} -v", "jmx {pid} java.lang:*", "hsperf-check {pid}")
WATCHES = tuple(
    f"{name} -w -c 2 -i 1"
    for name in ("pipes", "tcp", "cswitch", "irqs", "io", "limits", "fds", "dentry", "mem", "clock", "jvms", "doctor")
)


def lines_for(*, pids=(), jvms=()):
    """All lines, for these processes, and these of them that are JVMs."""
    each = [line.format(pid=pid) for line in PROCESS_LINES for pid in pids]
    return [*HOST_LINES, *each, *(line.format(pid=pid) for line in JVM_LINES for pid in jvms)]


def tape_of(host, words=()):
    """An empty tape for a machine, with one mark: now."""
    return Tape(origin_of(host, words, asked=False), (Mark(time.time(), time.monotonic()),))


def sampled(host, interval_s):
    """A tape with two samples of the counters of a machine and its JVMs."""
    tape = Tape(origin_of(host, (), asked=False), (Mark(0.0, 0.0),) * 2)
    recorded = RecordedHost(tape, host.fs)
    find_jvms(recorded.fs)
    Sampler(host, recorded).take(interval_s)
    return tape


def recorded(host, named=()):
    """A tape of a machine on which every command has run; with what they found."""
    tape = tape_of(host)
    return tape, run_every_command(cli.group, RecordedHost(tape, host.fs), named)


def stopped(host, mark):
    """A machine whose clocks stand at a mark."""
    host.now = lambda: datetime.fromtimestamp(mark.wall_s, timezone.utc)
    host.monotonic = lambda: mark.monotonic_s
    return host


def show(host, line):
    """What `opskit LINE` shows of a host."""
    with _on(host), pytest.MonkeyPatch.context() as patch:
        patch.setattr(inprocess, "MAIN", "/opskit/__main__.py")
        return inprocess.run(*line.split())


@contextmanager
def _on(host):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(declare, "open_host", lambda *_, **__: host)
        yield


def differences(one, other):
    """The first lines in which two runs differ."""
    lines = [[f"exit {ran.code}", *ran.out.splitlines(), *ran.err.splitlines()] for ran in (one, other)]
    return list(difflib.unified_diff(*lines, lineterm="", n=0))[2:14]


def without_cpu_times(ran):
    """What doctor shows without the CPU times of its checks, which a replay has not."""
    return ran._replace(out=re.sub(r", CPU [\d.]+ [mu]?s| cpu_s=[\d.]+|\"cpu_s\": [\w.]+", "", ran.out))


def codes_in(value):
    """The codes of all findings in a JSON value."""
    if isinstance(value, dict):
        if "code" in value and "severity" in value:
            yield value["code"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from codes_in(each)


def packed_and_loaded(tape, directory):
    """The tape as it is read from its file."""
    path = directory / "capture.tar.gz"
    path.write_bytes(b"".join(archive_chunks(pack(tape), 0)))
    return load_capture(str(path))
