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
    _checked(result)
    return result


def _checked(result: int) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


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


_CLONE_NEWNS = 0x20000
_MS_REC_PRIVATE = 0x4000 | 0x40000


def enter_private_mounts() -> None:
    """Give this process mounts of its own: what it mounts from now on nobody else sees. Needs CAP_SYS_ADMIN."""
    _checked(_libc.unshare(_CLONE_NEWNS))
    _checked(_libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC_PRIVATE), None))


def mount(fs_type: str, target: str) -> None:
    """Mount a file system of the kernel's own (tracefs, debugfs) on a directory."""
    kind = fs_type.encode()
    _checked(_libc.mount(kind, os.fsencode(target), kind, ctypes.c_ulong(0), None))
