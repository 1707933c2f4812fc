"""System calls that Python has no name for. Raises OSError, as os does.

pidfd_getfd(2) since Linux 5.6, kcmp(2) since 3.5; both need ptrace-attach permission over the target.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import sys
import termios

_PIDFD_GETFD = 438  # the same on every architecture
_KCMP = {"x86_64": 312, "aarch64": 272, "riscv64": 272, "ppc64le": 354, "s390x": 343}
_KCMP_FILES = 2
_F_GETPIPE_SZ = 1032
_PIDFD_THREAD = os.O_EXCL  # Linux 6.9

_libc = ctypes.CDLL(None, use_errno=True)


def _syscall(number: int, *arguments: int) -> int:
    result: int = _libc.syscall(ctypes.c_long(number), *(ctypes.c_long(argument) for argument in arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def same_fd_table(pid: int, tid: int) -> bool:
    """Whether two threads share one table of fds."""
    number = _KCMP.get(platform.machine())
    if number is None:
        raise OSError(38, "kcmp is not known for this architecture")
    return _syscall(number, pid, tid, _KCMP_FILES, 0, 0) == 0


def pipe_fill(pid: int, fd: int, *, thread: bool = False) -> tuple[int, int, int]:
    """(bytes queued, capacity in bytes, creator's uid) of the pipe that is `fd` in another process.

    Works on either end. The copy of the fd lives for three calls: never open() the link instead, which would add a
    reader or writer and hide a broken pipe from the others.
    """
    pidfd = os.pidfd_open(pid, _PIDFD_THREAD if thread else 0)
    try:
        copy = _syscall(_PIDFD_GETFD, pidfd, fd, 0)
    finally:
        os.close(pidfd)
    try:
        queued = int.from_bytes(fcntl.ioctl(copy, termios.FIONREAD, b"\0" * 4), sys.byteorder)
        return queued, fcntl.fcntl(copy, _F_GETPIPE_SZ), os.fstat(copy).st_uid
    finally:
        os.close(copy)
