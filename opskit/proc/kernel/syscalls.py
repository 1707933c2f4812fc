"""System calls that Python lacks. They raise OSError, as those of os.

pidfd_getfd(2) since Linux 5.6, kcmp(2) since 3.5; both need ptrace-attach permission over the target.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import struct
import sys
import termios
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from opskit.interrupts import Guard
from opskit.proc.file_id import FileId
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PIDFD_OPEN, _OPENAT2, _PIDFD_GETFD, _CACHESTAT = 434, 437, 438, 451  # the same on every architecture
_RESOLVE_NO_MAGICLINKS, _RESOLVE_IN_ROOT = 0x02, 0x10
PROC_SUPER_MAGIC = 0x9FA0
_KCMP = {"x86_64": 312, "aarch64": 272, "riscv64": 272, "ppc64le": 354, "s390x": 343}
_KCMP_FILE, _KCMP_FILES = 0, 2
_STATX = {"x86_64": 332, "aarch64": 291, "riscv64": 291, "ppc64le": 383, "s390x": 379}
_STATX_INODE_AT = 32
_F_GETPIPE_SZ = 1032
_CLONE3 = 435
_PTRACE_SEIZE, _PTRACE_INTERRUPT, _PTRACE_DETACH, _PTRACE_SECCOMP_GET_FILTER = 0x4206, 0x4207, 17, 0x420C
_WALL = 0x40000000
_STOP_TRIES = 2000  # of half a millisecond
_NS_GET_PARENT, _NS_GET_OWNER_UID = 0xB702, 0xB704
_DEEPEST_NAMESPACE = 33  # user_namespaces(7): 32 levels below the first
_PIDFD_THREAD = os.O_EXCL  # Linux 6.9

_libc = ctypes.CDLL(None, use_errno=True)


def _syscall(number: int, *arguments: int) -> int:
    return _checked(_libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments)))


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_in_root(base: int, path: bytes, flags: int) -> int:
    """openat2(2) with the directory `base` as the root of links and `..`, without magic links (Linux 5.6).

    Raises OSError: ENOSYS before, EPERM from a seccomp filter without the call, EAGAIN in a race with a rename.
    """
    how = _OpenHow(flags | os.O_CLOEXEC, 0, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS)
    size = ctypes.c_size_t(ctypes.sizeof(how))
    call = ctypes.c_long(_OPENAT2), ctypes.c_int(base), ctypes.c_char_p(path), ctypes.byref(how), size
    return _checked(_libc.syscall(*call))


def file_system_type(fd: int) -> int:
    """The magic number of an open file's file system (statfs(2), f_type)."""
    buffer = ctypes.create_string_buffer(256)  # struct statfs has 120 bytes or less
    _checked(_libc.fstatfs(ctypes.c_int(fd), buffer))
    size = 4 if platform.machine() == "s390x" else ctypes.sizeof(ctypes.c_long)
    return int.from_bytes(buffer.raw[:size], sys.byteorder)


def cached_pages(fd: int) -> int:
    """How many pages of an open file are in the page cache: cachestat(2), since Linux 6.5. It reads none of them."""
    whole, counts = (
        (ctypes.c_uint64 * 2)(),
        (ctypes.c_uint64 * 5)(),
    )  # struct cachestat_range, struct cachestat: nr_cache first
    _syscall(_CACHESTAT, fd, ctypes.addressof(whole), ctypes.addressof(counts), 0)
    return counts[0]


_STATX_BTIME, _STATX_BYTES = 0x800, 256
_TIMESTAMP = struct.Struct("=qI4x")  # struct statx_timestamp
_ACCESSED_AT, _BORN_AT, _CHANGED_AT, _MODIFIED_AT = 64, 80, 96, 112  # in struct statx (include/uapi/linux/stat.h)


class FileTimes(NamedTuple):
    """The times of a file, in seconds since 1970. `born_s`: when it was made; None: its file system does not tell."""

    inode: int
    accessed_s: float
    modified_s: float
    changed_s: float
    born_s: float | None


def file_times(path: str) -> FileTimes:
    """The times of the file that a path leads to: statx(2), since Linux 4.11."""
    at_fdcwd, basic_stats = -100, 0x7FF
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    name = ctypes.create_string_buffer(os.fsencode(path))
    number = _STATX.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, "statx is not known for this architecture")
    _syscall(number, at_fdcwd, ctypes.addressof(name), 0, basic_stats | _STATX_BTIME, ctypes.addressof(buffer))
    (mask,) = struct.unpack_from("=I", buffer)
    (inode,) = struct.unpack_from("=Q", buffer, _STATX_INODE_AT)
    accessed, modified, changed, born = (
        seconds + nanoseconds / 1e9
        for at in (_ACCESSED_AT, _MODIFIED_AT, _CHANGED_AT, _BORN_AT)
        for seconds, nanoseconds in (_TIMESTAMP.unpack_from(buffer, at),)
    )
    return FileTimes(inode, accessed, modified, changed, born if mask & _STATX_BTIME else None)


def socket_protocol(path: str) -> str:
    """The protocol of the socket that a link of /proc/PID/fd leads to, `TCP`, `UNIX-STREAM` (net/socket.c, sockfs_xattr_get)."""
    return os.getxattr(path, "system.sockprotoname").rstrip(b"\0").decode("utf-8", "replace")


def same_fd_table(pid: int, tid: int) -> bool:
    """Whether two threads share one fd table."""
    return _kcmp(pid, tid, _KCMP_FILES, 0, 0) == 0


def compare_files(one: tuple[int, int], other: tuple[int, int]) -> int:
    """Compare the open files behind two (pid, fd): 0 the same one, else -1 or 1, the kernel's order of them."""
    return (0, -1, 1, 1)[_kcmp(one[0], other[0], _KCMP_FILE, one[1], other[1])]


def _kcmp(pid: int, other: int, kind: int, *operands: int) -> int:
    number = _KCMP.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, "kcmp is not known for this architecture")
    return _syscall(number, pid, other, kind, *operands)


def pidfd_open(pid: int, flags: int = 0) -> int:
    """An fd of a process; a Python built with old kernel headers lacks the call."""
    ready: Callable[[int, int], int] = getattr(os, "pidfd_open", partial(_syscall, _PIDFD_OPEN))
    return ready(pid, flags)


def pipe_fill(pid: int, fd: int, thread: bool = False) -> tuple[int, int, FileId]:
    """(bytes queued, capacity in bytes, identity) of the pipe that is `fd`, of either end, in another process."""
    # open() of the link would add a reader or writer, and hide a broken pipe from the others.
    pidfd = pidfd_open(pid, _PIDFD_THREAD if thread else 0)
    try:
        copy = _syscall(_PIDFD_GETFD, pidfd, fd, 0)
    finally:
        os.close(pidfd)
    try:
        queued = int.from_bytes(fcntl.ioctl(copy, termios.FIONREAD, b"\0" * 4), sys.byteorder)
        return queued, fcntl.fcntl(copy, _F_GETPIPE_SZ), FileId.of(os.fstat(copy))
    finally:
        os.close(copy)


_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432  # Linux 5.2; the same on every architecture
_FSCONFIG_CMD_CREATE = 6
_CLOEXEC = 1  # FSOPEN_CLOEXEC, FSMOUNT_CLOEXEC
_NOSUID_NODEV_NOEXEC = 2 | 4 | 8  # MOUNT_ATTR_…
_CLONE_NEWNS, _CLONE_NEWNET = 0x20000, 0x40000000
_MS_REC_PRIVATE = 0x4000 | 0x40000


def mount_detached(fs_type: str) -> int:
    """Mount a kernel file system at no path: an fd of its root, with which it ends. Needs CAP_SYS_ADMIN.

    No other process sees it, and it works in a chroot. ENOSYS before Linux 5.2, ENODEV without such a file system.
    """
    name = ctypes.create_string_buffer(fs_type.encode())
    context = _syscall(_FSOPEN, ctypes.addressof(name), _CLOEXEC)
    try:
        _syscall(_FSCONFIG, context, _FSCONFIG_CMD_CREATE, 0, 0, 0)
        return _syscall(_FSMOUNT, context, _CLOEXEC, _NOSUID_NODEV_NOEXEC)
    finally:
        os.close(context)


def enter_private_mounts() -> None:
    """Enter a private mount namespace: other processes do not see later mounts. Needs CAP_SYS_ADMIN."""
    _checked(_libc.unshare(_CLONE_NEWNS))
    _checked(_libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC_PRIVATE), None))


def mount(fs_type: str, target: str) -> None:
    """Mount a kernel file system (tracefs, debugfs) on a directory."""
    kind = fs_type.encode()
    _checked(_libc.mount(kind, os.fsencode(target), kind, ctypes.c_ulong(0), None))


def set_network_namespace(fd: int) -> None:
    """Move the calling thread to the network namespace of an open /proc/PID/ns/net: setns(2). Needs CAP_SYS_ADMIN."""
    _checked(_libc.setns(ctypes.c_int(fd), ctypes.c_int(_CLONE_NEWNET)))


def user_namespace_owner(path: str) -> int:
    """The uid of a user namespace's creator, in ours. `path` is a /proc/PID/ns/user (ioctl_ns(2), Linux 4.11)."""
    namespace = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _owner_uid(namespace)
    finally:
        os.close(namespace)


def charged_uid(path: str) -> int | None:
    """The uid of our user namespace that pays for what is counted in the one below it; None: `path` is ours, or not below it.

    It owns the child of ours that is, or is above, the user namespace /proc/PID/ns/user (ioctl_ns(2), Linux 4.9).
    """
    ours = os.stat("/proc/self/ns/user")
    namespace = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for _ in range(_DEEPEST_NAMESPACE):
            if os.path.samestat(os.fstat(namespace), ours):
                return None
            parent = fcntl.ioctl(namespace, _NS_GET_PARENT)
            if os.path.samestat(os.fstat(parent), ours):
                os.close(parent)
                return _owner_uid(namespace)
            os.close(namespace)
            namespace = parent
    except PermissionError:  # it has no parent that we may see
        pass
    finally:
        os.close(namespace)
    return None


def _owner_uid(namespace: int) -> int:
    return int.from_bytes(fcntl.ioctl(namespace, _NS_GET_OWNER_UID, b"\0" * 4), sys.byteorder)


def clone3_errno() -> int:
    """The errno of clone3() without arguments: EINVAL from the kernel, any other from a seccomp filter."""
    try:
        _syscall(_CLONE3, 0, 0)
    except OSError as error:
        return error.errno or 0
    return 0


def can_start_a_thread() -> bool:
    """Whether a thread that does nothing starts."""
    thread = threading.Thread(target=int)
    try:
        thread.start()
    except RuntimeError:
        return False
    thread.join()
    return True


def seccomp_filters(pid: int) -> list[bytes]:
    """The seccomp filters of a process, newest first (ptrace(2), PTRACE_SECCOMP_GET_FILTER). Needs CAP_SYS_ADMIN.

    It stops the process for less than a millisecond. Raises OSError; TimeoutError if it does not stop.
    """
    with Guard():  # a signal must not leave it stopped
        _ptrace(_PTRACE_SEIZE, pid, 0, 0)
        pending = 0
        try:
            _ptrace(_PTRACE_INTERRUPT, pid, 0, 0)
            pending = _wait_for_stop(pid)
            return list(_filters_of(pid))
        finally:
            with suppress(OSError):  # it ended, or never stopped: the kernel detaches when opskit ends
                _ptrace(_PTRACE_DETACH, pid, 0, pending)


def _filters_of(pid: int) -> Iterator[bytes]:
    number = 0
    while True:
        try:
            count = _ptrace(_PTRACE_SECCOMP_GET_FILTER, pid, number, 0)
        except FileNotFoundError:  # that was the last one
            return
        buffer = ctypes.create_string_buffer(count * 8)
        _ptrace(_PTRACE_SECCOMP_GET_FILTER, pid, number, ctypes.addressof(buffer))
        yield buffer.raw
        number += 1


def _wait_for_stop(pid: int) -> int:
    """The signal that it stopped at, which it gets only if the tracer passes it on; 0 where our interrupt stopped it."""
    for _ in range(_STOP_TRIES):
        done, status = os.waitpid(pid, os.WNOHANG | _WALL)
        if done == pid:
            if os.WIFSTOPPED(status):
                return 0 if status >> 16 else os.WSTOPSIG(status)
            raise ProcessLookupError(errno.ESRCH, "it ended")
        time.sleep(0.0005)
    raise TimeoutError(errno.ETIMEDOUT, "it did not stop within a second")


def _ptrace(request: int, pid: int, address: int, data: int) -> int:
    _libc.ptrace.restype = ctypes.c_long
    where, what = ctypes.c_void_p(address), ctypes.c_void_p(data)
    return _checked(_libc.ptrace(ctypes.c_long(request), ctypes.c_int(pid), where, what))


def kernel_log() -> str:
    """The kernel's log (syslog(2)); a newer part of it where it is large. Raises OSError: EPERM without CAP_SYSLOG."""
    read_all, size_buffer, most = 3, 10, 16 << 20
    size = min(_checked(_libc.klogctl(size_buffer, None, 0)), most)
    buffer = ctypes.create_string_buffer(size)
    length = _checked(_libc.klogctl(read_all, buffer, size))
    return buffer.raw[:length].decode("utf-8", "replace")
