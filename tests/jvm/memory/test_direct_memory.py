"""The direct memory of real JVMs, as java.nio.Bits counts it."""

from __future__ import annotations

import os
import time

import jvms
import pytest

from opskit.host import Host
from opskit.jvm.memory.direct_memory import DirectMemory

ZGC = ("-XX:+UnlockExperimentalVMOptions", "-XX:+UseZGC")


@pytest.mark.parametrize("options", [("-XX:+UseSerialGC",), ZGC], ids=["Serial", "ZGC"])
def test_what_is_reserved_is_read(jvm_version, options):
    """Buffers of 64 KiB: all that exist, and no more, with compressed and coloured pointers."""
    fs = Host.at(None, None).fs
    jvm = jvms.run([jvms.java(jvm_version), "-Xmx64m", *options, "-cp", jvms.classes(), "Leaks", "direct=500"])
    try:
        memory = DirectMemory(fs, jvm.pid)
        seen = [memory.read_bytes() for _ in range(3)]
        deadline = time.monotonic() + jvms.START_S
        while (seen[-1] or 0) < 40 * 65536 and time.monotonic() < deadline:
            seen.append(memory.read_bytes())
        if None in seen:  # while the class is initialized: before the first buffer
            first = len(seen) - seen[::-1].index(None)
            assert not any(seen[:first])
            seen = seen[first:]
        assert seen == sorted(seen)
        assert seen[-1] >= 40 * 65536
        assert all(used % 65536 == 0 for used in seen)
    finally:
        jvm.stop()


def test_a_jvm_that_has_ended_and_no_jvm(workload):
    """Unknown, never 0; before the first buffer it is 0."""
    fs = Host.at(None, None).fs
    assert DirectMemory(fs, os.getpid()).read_bytes() is None
    jvm = workload()
    memory = DirectMemory(fs, jvm.pid)
    assert memory.read_bytes() == 0
    jvm.stop()
    assert memory.read_bytes() is None


def test_another_users_jvm_is_unknown(as_user, workload):
    """It needs ptrace rights."""
    jvm = workload()
    assert as_user(65534, lambda: DirectMemory(Host.at(None, None).fs, jvm.pid).read_bytes()) is None
