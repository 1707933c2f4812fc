"""A call with fewer rights: another user, some capabilities, a seccomp filter."""

from __future__ import annotations

import ctypes
import errno
import os
import pickle
import struct

from opskit.proc.rights import _BY_BIT

PERF_EVENT_OPEN = 298  # x86-64
_KEEP_CAPABILITIES, _SET_DUMPABLE, _NO_NEW_PRIVS, _SET_SECCOMP = 8, 4, 38, 22
_FILTER = 2
_VERSION_3 = 0x20080522
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


def call(function, uid=None, capabilities=None, forbidden=None):
    """Call a function in a forked child with the ids of a user and these capabilities only; return its value.

    `capabilities`: without CAP_, as in shells.py; None: those that the ids bring. `forbidden`: an errno of perf_event_open, by a real filter as a container has it.
    """
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        try:
            _take_on(uid, capabilities, forbidden)
            outcome = function()
        except BaseException as error:
            outcome = error
        os.write(send, pickle.dumps(outcome))
        os._exit(0)
    os.close(send)
    with open(receive, "rb") as pipe:
        outcome = pickle.loads(pipe.read())  # noqa: S301  (our own child wrote it)
    os.waitpid(child, 0)
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def _take_on(uid, capabilities, forbidden):
    libc = ctypes.CDLL(None, use_errno=True)
    if uid is not None:
        libc.prctl(_KEEP_CAPABILITIES, 1, 0, 0, 0)
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    if capabilities is not None or uid is not None:
        mask = sum(1 << _BY_BIT.index(f"CAP_{name.upper()}") for name in capabilities or ())
        low, high = mask & 0xFFFFFFFF, mask >> 32
        sets = struct.pack("<6I", low, low, 0, high, high, 0)
        _check(libc.capset(struct.pack("<Ii", _VERSION_3, 0), sets))
    libc.prctl(_SET_DUMPABLE, 1, 0, 0, 0)
    if forbidden is not None:
        code = [(0x20, 0, 0, 0), (0x15, 0, 1, PERF_EVENT_OPEN), (0x06, 0, 0, _ERRNO | forbidden), (0x06, 0, 0, _ALLOW)]
        program = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *each) for each in code))
        _check(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
        described = struct.pack("@HP", len(code), ctypes.addressof(program))
        _check(libc.prctl(_SET_SECCOMP, _FILTER, described, 0, 0))


def _check(result):
    if result:
        raise OSError(ctypes.get_errno() or errno.EINVAL, "the test's own rights")
