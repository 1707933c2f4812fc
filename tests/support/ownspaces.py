"""A call in namespaces of its own, by a forked child: what it mounts or starts, and the files it writes there, end with it."""

from __future__ import annotations

import ctypes
import os
import pickle

import pytest

_NEW_MOUNTS, _NEW_PIDS = 0x00020000, 0x20000000
_PRIVATE = 1 << 18 | 1 << 14  # and all below it


def in_own_mounts(work):
    """The value of `work()`, which may mount what it likes, or its exception. Skip where there is no such namespace."""
    return _value_of(work, _NEW_MOUNTS, ((b"none", b"/", None, _PRIVATE),))


def in_own_pids(work):
    """The same as PID 1: /proc has no process but those that it starts, and /tmp nothing of other tests."""
    mounts = ((b"none", b"/", None, _PRIVATE), (b"proc", b"/proc", b"proc", 0), (b"none", b"/tmp", b"tmpfs", 0))
    return _value_of(work, _NEW_MOUNTS | _NEW_PIDS, mounts)


def _value_of(work, spaces, mounts):
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        os.close(receive)
        _call(work, spaces, mounts, send)
    os.close(send)
    with open(receive, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    if not data:
        pytest.skip("cannot make namespaces")
    value, error = pickle.loads(data)  # noqa: S301  (our own child wrote it)
    if error is not None:
        raise error
    return value


def _call(work, spaces, mounts, send):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(spaces):
        os._exit(0)
    first = os.fork()  # in the PID namespace is a child
    if first:
        os.close(send)
        os.waitpid(first, 0)
        os._exit(0)
    if any(libc.mount(source, place, kind, flags, None) for source, place, kind, flags in mounts):
        os._exit(0)
    try:
        outcome = work(), None
    except BaseException as error:
        outcome = None, error
    with open(send, "wb") as pipe:
        pipe.write(pickle.dumps(outcome))
    os._exit(0)
