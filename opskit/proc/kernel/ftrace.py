"""Text of the kernel's tracer (Documentation/trace/ftrace.rst, events.rst) about failed system calls.

A line of trace_pipe with the syscalls events, and one with raw_syscalls; the comm may hold any bytes:

         python3-9372    [000] .....  3697.270890: sys_access -> 0xfffffffffffffffe
         python3-9372    [000] .....  3697.270890: sys_exit: NR 21 = -2
CPU:1 [LOST 150800 EVENTS]

per_cpu/cpuN/stats:

entries: 9380
overrun: 366125
dropped events: 0
read events: 20495
"""

from __future__ import annotations

import errno
import platform
import re
from typing import TYPE_CHECKING, Optional

from opskit.quantities import integer, signed
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

# The system calls that look up a path, by number; epoll_ctl, bpf and others fail with ENOENT too, without a lookup.
_X86_64 = {
    2: "open", 4: "stat", 6: "lstat", 21: "access", 42: "connect", 59: "execve", 76: "truncate", 80: "chdir", 82: "rename",
    83: "mkdir", 84: "rmdir", 85: "creat", 86: "link", 87: "unlink", 88: "symlink", 89: "readlink", 90: "chmod", 92: "chown",
    94: "lchown", 132: "utime", 133: "mknod", 137: "statfs", 161: "chroot", 188: "setxattr", 189: "lsetxattr",
    191: "getxattr", 192: "lgetxattr", 194: "listxattr", 195: "llistxattr", 197: "removexattr", 198: "lremovexattr",
    235: "utimes", 254: "inotify_add_watch", 257: "openat", 258: "mkdirat", 259: "mknodat", 260: "fchownat",
    261: "futimesat", 262: "newfstatat", 263: "unlinkat", 264: "renameat", 265: "linkat", 266: "symlinkat",
    267: "readlinkat", 268: "fchmodat", 269: "faccessat", 280: "utimensat", 303: "name_to_handle_at", 316: "renameat2",
    322: "execveat", 332: "statx", 437: "openat2", 439: "faccessat2", 452: "fchmodat2",
}  # fmt: skip
_GENERIC = {
    5: "setxattr", 6: "lsetxattr", 8: "getxattr", 9: "lgetxattr", 11: "listxattr", 12: "llistxattr", 14: "removexattr",
    15: "lremovexattr", 27: "inotify_add_watch", 33: "mknodat", 34: "mkdirat", 35: "unlinkat", 36: "symlinkat",
    37: "linkat", 38: "renameat", 43: "statfs", 45: "truncate", 48: "faccessat", 49: "chdir", 51: "chroot", 53: "fchmodat",
    54: "fchownat", 56: "openat", 78: "readlinkat", 79: "newfstatat", 88: "utimensat", 203: "connect", 221: "execve",
    264: "name_to_handle_at", 276: "renameat2", 281: "execveat", 291: "statx", 437: "openat2", 439: "faccessat2",
    452: "fchmodat2",
}  # fmt: skip
CALL_NUMBERS = {"x86_64": _X86_64, "aarch64": _GENERIC, "riscv64": _GENERIC, "loongarch64": _GENERIC}
CALLS: dict[int, str] = CALL_NUMBERS.get(platform.machine(), {})  # of this machine
_OTHERS = (
    "uselib",
    "newstat",
    "newlstat",
    "fstatat64",
    "stat64",
    "lstat64",
    "truncate64",
    "statfs64",
    "open_by_handle_at",
)
PATH_CALLS = (*dict.fromkeys((*_X86_64.values(), *_GENERIC.values())), *_OTHERS)

# Each part is bounded (a comm has 15 bytes): the match stays linear in the length of a line.
_EVENT = re.compile(
    rb"^ {0,24}(.{0,32})-([0-9]{1,10}) {1,16}(?:\([ 0-9-]{1,16}\) {1,8})?\[[0-9]{1,5}\] .{0,64}: "
    rb"(?:[Ss]y[Ss]_(\w{1,64}) -> 0x[0-9a-f]{1,16}|sys_exit: NR (-?[0-9]{1,10}) = -?[0-9]{1,20})$",
    re.MULTILINE,
)


class Failure(NamedTuple):
    """A failed call: the thread's comm and TID, the call's name, and the PID where the event has it."""

    comm: bytes
    tid: int
    call: str
    pid: int | None = None


Seen = set[tuple[bytes, int, Optional[int]]]  # threads: comm, TID, PID where it is known
_PATH_NAMES = "(?:filename|pathname|path|oldname|name)"
_PATH_FIELD = re.compile(rf"^\tfield:const char \* ?{_PATH_NAMES};\toffset:([0-9]{{1,4}});", re.MULTILINE)


def failed_lookups(without: Iterable[int], numbers: Iterable[int] = ()) -> str:
    """The filter of failed lookups: none of the PIDs `without`, and only the calls `numbers` where there are any."""
    rules = [f"ret == -{errno.ENOENT}", *(f"common_pid != {pid}" for pid in without)]
    calls = " || ".join(f"id == {number}" for number in numbers)
    return " && ".join([*rules, f"({calls})"] if calls else rules)


def parse_path_offset(text: str) -> int | None:
    """The offset of the path's address in the raw record of a call's entry, from the event's `format` file."""
    found = _PATH_FIELD.search(text)
    return integer(found[1]) if found else None


def parse_failures(chunk: bytes) -> list[tuple[bytes, bytes, bytes, bytes]]:
    """(comm, TID, name, number) of each event in whole lines, as bytes: there may be hundreds of thousands per second."""
    return _EVENT.findall(chunk)


def named(event: tuple[bytes, bytes, bytes, bytes]) -> Failure:
    """An event of parse_failures as a record."""
    comm, tid, name, number = event
    return Failure(comm, integer(tid) or 0, name.decode() or call_name(signed(number)))


def call_name(number: int | None) -> str:
    """The name of a system call of this machine."""
    return CALLS.get(number or 0, f"system call {number}")


def parse_buffer_stats(text: str) -> int:
    """The events of one CPU since the buffer was made: read, waiting, overwritten and dropped."""
    pairs = (line.split(": ", 1) for line in text.splitlines())
    numbers = {pair[0]: integer(pair[1].strip()) for pair in pairs if len(pair) == 2}
    return sum(numbers.get(key) or 0 for key in ("entries", "overrun", "dropped events", "read events"))
