"""/proc/PID/task/TID/syscall (proc_pid_syscall(5)): the system call that a thread sleeps in.

running                                                                  it is on a CPU, or wants to be
-1 0x7ffd1c3c8a88 0x7f3c3a1f2a90                                         it sleeps outside of a call: stack pointer, pc
1 0x4 0x7f3c2c0008b0 0x10000 0x0 0x0 0x0 0x7ffd1c3c8a88 0x7f3c3a1f2a90   number, six arguments, stack pointer, pc
"""

from __future__ import annotations

import re

from opskit.quantities import hexadecimal, integer
from opskit.records import NamedTuple

# The calls that somebody asks about: their numbers on x86-64 and in include/uapi/asm-generic/unistd.h (None: not there).
_NUMBERS: dict[str, tuple[int, int | None]] = {
    "read": (0, 63), "readv": (19, 65), "write": (1, 64), "writev": (20, 66), "vmsplice": (278, 75), "sendfile": (40, 71),
    "splice": (275, 76), "open": (2, None), "creat": (85, None), "openat": (257, 56), "openat2": (437, 437),
    "connect": (42, 203), "accept": (43, 202), "accept4": (288, 242), "sendto": (44, 206), "recvfrom": (45, 207),
    "sendmsg": (46, 211), "recvmsg": (47, 212), "recvmmsg": (299, 243), "sendmmsg": (307, 269), "poll": (7, None), "ppoll": (271, 73),
    "epoll_wait": (232, None), "epoll_pwait": (281, 22), "epoll_pwait2": (441, 441),
    "select": (23, None), "pselect6": (270, 72), "wait4": (61, 260), "waitid": (247, 95), "pause": (34, None),
    "futex": (202, 98), "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "rt_sigsuspend": (130, 133),
    "rt_sigtimedwait": (128, 137), "pread64": (17, 67), "pwrite64": (18, 68), "preadv": (295, 69), "pwritev": (296, 70),
    "preadv2": (327, 286), "pwritev2": (328, 287), "fsync": (74, 82), "fdatasync": (75, 83), "msync": (26, 227),
    "sync": (162, 81), "syncfs": (306, 267), "sync_file_range": (277, 84), "fallocate": (285, 47), "ftruncate": (77, 46),
    "copy_file_range": (326, 285), "getdents64": (217, 61), "io_getevents": (208, 4), "io_pgetevents": (333, 292),
    "io_uring_enter": (426, 426), "close": (3, 57), "flock": (73, 32), "fcntl": (72, 25), "unlink": (87, None),
    "unlinkat": (263, 35), "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276), "stat": (4, None),
    "lstat": (6, None), "fstat": (5, 80), "newfstatat": (262, 79), "statx": (332, 291), "statfs": (137, 43), "fstatfs": (138, 44),
    "access": (21, None), "faccessat": (269, 48), "faccessat2": (439, 439), "readlink": (89, None), "readlinkat": (267, 78),
}  # fmt: skip
_X86_64: dict[int | None, str] = {number: name for name, (number, _) in _NUMBERS.items()}
_GENERIC: dict[int | None, str] = {number: name for name, (_, number) in _NUMBERS.items() if number is not None}
_ARGUMENTS = re.compile(" 0x([0-9a-f]{1,16})" * 6)


class SystemCall(NamedTuple):
    """A system call by its name, and its six arguments as the registers hold them: an fd is an int of 32 bits."""

    name: str
    arguments: tuple[int, ...]


def parse_stack_pointer(text: str) -> int | None:
    """The stack pointer of a sleeping thread; None of one that is running."""
    words = text.split()
    return hexadecimal(words[-2]) if len(words) in (3, 9) else None


def parse_syscall(text: str, machine: str) -> SystemCall | None:
    """The call of a sleeping thread, if it is one of those above; else None."""
    number, _, _ = text.partition(" ")
    name = (_X86_64 if machine == "x86_64" else _GENERIC).get(integer(number))
    found = None if name is None else _ARGUMENTS.match(text, len(number))
    if name is None or found is None:
        return None
    values = [int(word, 16) for word in found.groups()]  # a number; hexadecimal() takes twice as long
    return SystemCall(name, tuple(values))
