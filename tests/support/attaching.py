"""Helpers for the tests of the attach layer."""

from __future__ import annotations

import contextlib
import os
import time

import pytest

import opskit.proc.kernel.syscalls  # noqa: F401  (a child that became another user may not be able to import ctypes)
from opskit.errors import AttachError
from opskit.jvm.attach.client import AttachClient
from opskit.jvm.attach.listener import listener_at
from opskit.proc.fs import ProcFS


def client(running, timeout_s=60.0):
    return AttachClient(ProcFS(), running.pid, timeout_s)


@contextlib.contextmanager
def refused(reason, says=None):
    """The block raises AttachError with this reason, and a message that matches."""
    with pytest.raises(AttachError, match=says) as caught:
        yield caught
    assert caught.value.reason == reason


def socket_of(running):
    return f"/tmp/.java_pid{running.pid}"


def triggers_of(running):
    return f"/tmp/.attach_pid{running.pid}", f"/proc/{running.pid}/cwd/.attach_pid{running.pid}"


def remove_dead_socket(path):
    """Remove what a JVM with this PID in another namespace may have left in our /tmp: another user's JVM cannot replace it."""
    if listener_at(path)[0] is False and os.path.lexists(path):
        os.unlink(path)


def assert_unharmed(running):
    """It runs, and no thread dump was printed into its output."""
    time.sleep(0.05)
    assert not running.has_ended()
    assert "Full thread dump" not in running.output()
