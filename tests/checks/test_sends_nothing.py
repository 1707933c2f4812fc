"""The system calls of `opskit doctor` without --ask: it reads, and sends nothing to any process or service."""

from __future__ import annotations

import re

import jvms
import pytest
from shells import NOBODY
from stracing import ACTS, FORKS, OPENS, traced

TALKS = ("connect", "sendto", "sendmsg", "sendmmsg", "write", "writev", "pwrite64", "bind", "listen", "execve")


@pytest.fixture(scope="module")
def jvm():
    """One that is asked for nothing."""
    running = jvms.start("sleep=2")
    yield running.pid
    running.stop()


@pytest.fixture(scope="module", params=[None, NOBODY], ids=["root", "nobody"])
def calls(request, jvm, root_only):
    """The calls of one run, as root or as an unprivileged user; each fd with what it is."""
    words = "doctor", "--deadline", "10s"
    return traced(*words, calls=(*OPENS, *ACTS, *FORKS, *TALKS), options=("-yy", "--seccomp-bpf"), uid=request.param)


def test_nothing_is_changed_or_signalled(calls):
    """No file is opened for writing, not even its own OOM score; no signal, no ptrace, no mount."""
    assert calls.code in (0, 1), calls.err
    assert "did not finish" not in calls.out
    done = [*calls.writing(), *calls.of(*ACTS)]
    assert [call[:200] for call in done if "ENOENT" not in call] == []


def test_nobody_is_talked_to(calls):
    """No connection and no program. It writes to its own streams, between its own two processes, and asks the kernel by netlink."""
    ours = re.compile(
        r"(write|writev)\([12]<|(sendto|sendmsg)\(\d+<(UNIX(-SEQPACKET)?:\[\d+->\d+\]|NETLINK:|socket:\[)|bind\(\d+<NETLINK:"
    )
    said = [call for call in calls.of(*TALKS) if not ours.match(call)]
    assert [call[:200] for call in said if not call.startswith("execve(")] == []
    assert len([call for call in said if "= 0" in call]) == 1  # the start of opskit itself


def test_it_starts_one_process(calls):
    """The others are threads."""
    assert len([call for call in calls.of(*FORKS) if "CLONE_THREAD" not in call]) == 1
