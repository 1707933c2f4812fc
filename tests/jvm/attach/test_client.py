"""The attach layer against real JVMs: each of 11, 17, 21 and 25, as itself, as root, and in everything that goes wrong."""

from __future__ import annotations

import os

import pytest

from opskit.errors import AttachCommandFailed, NoSuchProcess, NotAJvm, UsageError
from opskit.jvm.attach.client import AttachClient
from opskit.proc.fs import ProcFS

APP = 1234  # a user without a name


def client(workload, timeout_s=60.0):
    return AttachClient(ProcFS(), workload.pid, timeout_s)


def triggers(workload):
    """Trigger files that were left behind."""
    places = ("/tmp", f"/proc/{workload.pid}/cwd")
    return [place for place in places if os.path.lexists(f"{place}/.attach_pid{workload.pid}")]


@pytest.mark.parametrize("user", [None, APP], ids=["same user", "root to another user"])
def test_dump_histogram_and_jcmd(workload, jvm_version, user, request):
    """The listener is started without a trace but its socket; the same client asks again and again."""
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
    """A command that the JVM refuses gives the JVM's own words."""
    asked = client(workload(version=jvm_version))
    with pytest.raises(AttachCommandFailed, match="nonsense"):
        asked.execute("nonsense")
    with pytest.raises(AttachCommandFailed, match="Unknown diagnostic command"):
        asked.jcmd("No.such.command")
    with pytest.raises(UsageError, match="one word of up to 16 bytes"):
        asked.execute("much-too-long-a-command")


def test_no_such_process_and_no_jvm(spawn):
    """A pid that is nobody's, and one that is no JVM's: nothing is sent."""
    other = spawn("import time; print('up', flush=True); time.sleep(1000)")
    with pytest.raises(NotAJvm, match="no JVM"):
        AttachClient(ProcFS(), other.pid).thread_dump()
    with pytest.raises(NoSuchProcess):
        AttachClient(ProcFS(), 2**22 - 1).thread_dump()
    assert other.poll() is None
