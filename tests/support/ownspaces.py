"""A call in namespaces of its own, by a forked child: what it mounts or starts, and the files it writes there, end with it."""

from __future__ import annotations

import ctypes
import os
import pickle
import sys
from pathlib import Path

import jvms
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
_NEW_MOUNTS, _NEW_PIDS = 0x00020000, 0x20000000
_PRIVATE, _BIND = 1 << 18 | 1 << 14, 1 << 12  # private: and all below it


def in_own_mounts(work):
    """The value of `work()`, which may mount what it likes, or its exception. Skip where there is no such namespace."""
    return _value_of(work, _NEW_MOUNTS, lambda _: None)


def in_own_pids(work):
    """The same as PID 1: /proc has no process but those that it starts, and /tmp nothing of other tests."""
    return _value_of(work, _NEW_MOUNTS | _NEW_PIDS, _hide_others)


def _hide_others(mount):
    # A checkout, a virtual environment or the JVMs may be in /tmp.
    programs = sorted({str(ROOT), str(jvms.cache()), sys.prefix, sys.base_prefix})
    kept = {path: os.open(path, os.O_PATH) for path in programs if path.startswith("/tmp/")}
    mount(b"proc", b"/proc", b"proc", 0)
    mount(b"none", b"/tmp", b"tmpfs", 0)
    for path, number in kept.items():
        os.makedirs(path, exist_ok=True)
        mount(b"/proc/self/fd/%d" % number, os.fsencode(path), None, _BIND)


def _value_of(work, spaces, prepare):
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        os.close(receive)
        _call(work, spaces, prepare, send)
    os.close(send)
    with open(receive, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    if not data:
        pytest.skip("cannot make namespaces")
    value, error, lacking = pickle.loads(data)  # noqa: S301  (our own child wrote it)
    if lacking is not None:
        pytest.skip(lacking)
    if error is not None:
        raise error
    return value


def _call(work, spaces, prepare, send):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(spaces):
        os._exit(0)
    first = os.fork()  # in the PID namespace is a child
    if first:
        os.close(send)
        os.waitpid(first, 0)
        os._exit(0)

    def mount(source, place, kind, flags):
        if libc.mount(source, place, kind, flags, None):
            os._exit(0)

    mount(b"none", b"/", None, _PRIVATE)
    try:
        prepare(mount)
        outcome = work(), None, None
    except pytest.skip.Exception as error:
        outcome = None, None, str(error)
    except BaseException as error:
        outcome = None, error, None
    try:
        data = pickle.dumps(outcome)
    except Exception as error:
        data = pickle.dumps((None, AssertionError(f"{error!r} for {outcome!r:.2000}"), None))
    with open(send, "wb") as pipe:
        pipe.write(data)
    os._exit(0)
