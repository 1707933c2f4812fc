"""A call in a PID namespace of its own: /proc has no process but those that it starts, and /tmp nothing of other tests."""

from __future__ import annotations

import ctypes
import os
import pickle

import pytest

_NEW_MOUNTS, _NEW_PIDS = 0x00020000, 0x20000000
_PRIVATE = 1 << 18 | 1 << 14  # and all below it


def in_own_pids(work):
    """The value of `work()`, called in a forked child that is PID 1 there, or its exception. Skip where there can be no such child."""
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        os.close(receive)
        _call(work, send)
    os.close(send)
    with open(receive, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    if not data:
        pytest.skip("cannot make a PID namespace")
    value, error = pickle.loads(data)  # noqa: S301  (our own child wrote it)
    if error is not None:
        raise error
    return value


def _call(work, send):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_MOUNTS | _NEW_PIDS):
        os._exit(0)
    first = os.fork()
    if first:
        os.waitpid(first, 0)
        os._exit(0)
    mounts = ((b"none", b"/", None, _PRIVATE), (b"proc", b"/proc", b"proc", 0), (b"none", b"/tmp", b"tmpfs", 0))
    if any(libc.mount(source, place, kind, flags, None) for source, place, kind, flags in mounts):
        os._exit(0)
    try:
        outcome = work(), None
    except BaseException as error:
        outcome = None, error
    with open(send, "wb") as pipe:
        pipe.write(pickle.dumps(outcome))
    os._exit(0)  # what it started ends with the namespace
