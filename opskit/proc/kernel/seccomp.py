"""The answer of a seccomp filter to the system calls that start a thread (seccomp(2), kernel/seccomp.c, net/core/filter.c).

A filter is a program of classic BPF, 8 bytes an instruction (code, jump if true, jump if false, k):

    20 00 00 00 00 00 00 00     load the number of the system call
    15 00 00 01 b3 01 00 00     is it 435, clone3?
    06 00 00 00 01 00 05 00     then EPERM
    06 00 00 00 00 00 ff 7f     else allow
"""

from __future__ import annotations

import errno
import operator
import struct
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.proc.files.syscall import parse_syscall

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opskit.proc.fs import ProcFS

CLONE3 = 435  # the same on every architecture
_CLONE = {"x86_64": 56, "aarch64": 220, "riscv64": 220}
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "riscv64": 0xC00000F3}
# CLONE_VM, FS, FILES, SIGHAND, THREAD, SYSVSEM, SETTLS, PARENT_SETTID, CHILD_CLEARTID: what pthread_create asks for
_THREAD_FLAGS = 0x003D0F00
_ACTION, _DATA = 0xFFFF0000, 0x0000FFFF
_ERRNO = 0x00050000
# SECCOMP_RET_LOG and ALLOW; KILL_PROCESS, KILL_THREAD and TRAP
_NAMES = {**dict.fromkeys((0x7FFC0000, 0x7FFF0000), "allowed"), **dict.fromkeys((0x80000000, 0, 0x00030000), "SIGSYS")}
_WORD = 0xFFFFFFFF

Program = list[tuple[int, int, int, int]]


class Undecided(Exception):  # noqa: N818
    """The filter's answer depends on data that are unknown beforehand."""


def parse_filter(data: bytes) -> Program:
    """The instructions. Raises BadInput."""
    if not data or len(data) % 8:
        raise BadInput("seccomp filter", f"{len(data)} bytes are not a whole number of instructions")
    return list(struct.iter_unpack("=HBBI", data))


def start_answer(filters: Sequence[Program], machine: str) -> str | None:
    """What clone3, and after ENOSYS clone, meets: "allowed", an errno's name, or "SIGSYS"; None: undecided."""
    if machine not in _AUDIT_ARCH:
        return None
    try:
        answer = _answer(filters, {0: CLONE3, 4: _AUDIT_ARCH[machine]})
        if answer == "ENOSYS":
            return _answer(filters, {0: _CLONE[machine], 4: _AUDIT_ARCH[machine], 16: _THREAD_FLAGS, 20: 0})
        return answer
    except Undecided:
        return None


def _answer(filters: Sequence[Program], data: Mapping[int, int]) -> str | None:
    """The strictest of all filters' answers: the kernel takes the lowest, as a signed number."""
    results = [run(program, data) for program in filters]
    result = min(results, key=lambda value: (value & _ACTION) - (1 << 32 if value & 0x80000000 else 0))
    action = result & _ACTION
    if action == _ERRNO:
        return errno.errorcode.get(result & _DATA, f"errno {result & _DATA}")
    return _NAMES.get(action)  # a supervisor decides (SECCOMP_RET_TRACE, SECCOMP_RET_USER_NOTIF): undecided


def run(program: Program, data: Mapping[int, int]) -> int:
    """The value a filter returns for this seccomp_data, given as its 32-bit words by offset. Raises Undecided."""
    accumulator = index = 0
    memory = [0] * 16
    at = 0
    while at < len(program):
        code, if_true, if_false, k = program[at]
        at += 1
        kind = code & 0x07
        if kind == 0x06:  # RET: a constant, or the accumulator
            return k if code & 0x18 == 0 else accumulator
        if kind == 0x00:  # LD
            accumulator = _loaded(code, k, data, memory)
        elif kind == 0x01:  # LDX
            index = _loaded(code, k, data, memory)
        elif kind == 0x02:  # ST
            memory[k & 15] = accumulator
        elif kind == 0x03:  # STX
            memory[k & 15] = index
        elif kind == 0x04:  # ALU
            accumulator = _computed(code, accumulator, index if code & 0x08 else k)
        elif kind == 0x05:  # JMP
            operand = index if code & 0x08 else k
            at += k if code & 0xF0 == 0 else (if_true if _compared(code, accumulator, operand) else if_false)
        elif code & 0x80:  # TXA
            accumulator = index
        else:  # TAX
            index = accumulator
    raise Undecided


def _loaded(code: int, k: int, data: Mapping[int, int], memory: list[int]) -> int:
    mode = code & 0xE0
    if mode == 0x00:
        return k
    if mode == 0x60:
        return memory[k & 15]
    if mode == 0x80:
        return 64  # the size of seccomp_data
    if k not in data:
        raise Undecided
    return data[k]


_ALU: dict[int, Callable[[int, int], int]] = {
    0x00: operator.add, 0x10: operator.sub, 0x20: operator.mul, 0x30: operator.floordiv, 0x40: operator.or_,
    0x50: operator.and_, 0x60: lambda left, right: left << (right & 31), 0x70: lambda left, right: left >> (right & 31),
    0x80: lambda left, _: -left, 0xA0: operator.xor,
}  # fmt: skip


def _computed(code: int, left: int, right: int) -> int:
    operation = code & 0xF0
    if operation not in _ALU or (operation == 0x30 and right == 0):
        raise Undecided
    return _ALU[operation](left, right) & _WORD


def _compared(code: int, left: int, right: int) -> bool:
    operation = code & 0xF0
    if operation == 0x10:
        return left == right
    if operation == 0x20:
        return left > right
    return left >= right if operation == 0x30 else bool(left & right)


# The kernel restarts these calls after a short stop. A process in another call (epoll_wait) would get EINTR and is left alone.
_RESTARTED = frozenset(
    {
        "poll", "ppoll", "select", "pselect6", "pause", "nanosleep", "clock_nanosleep", "wait4", "waitid", "rt_sigsuspend",
        "futex",
    }
)  # fmt: skip
_TRIED = ("x86_64", "aarch64")


def filter_answer(fs: ProcFS, pid: int, machine: str, read_filters: Callable[[int], list[bytes]]) -> str | None:
    """The `start_answer` of a process's own filters; None where reading them could interrupt it."""
    try:
        if not _stays_uninterrupted(fs, pid, machine):
            return None
        filters = [parse_filter(data) for data in read_filters(pid)]
    except (OSError, BadInput):
        return None
    return start_answer(filters, machine) if filters else None


def _stays_uninterrupted(fs: ProcFS, pid: int, machine: str) -> bool:
    """Whether a short stop fails no system call."""
    text = fs.load(str.strip, pid, "syscall")
    call = parse_syscall(text, machine) if machine in _TRIED else None
    if call is None:
        return text == "running"
    if call.name == "read":  # from a socket with a timeout it would return EINTR
        return not fs.link(pid, "fd", call.arguments[0]).startswith(b"socket:")
    return call.name in _RESTARTED


def own_answer(clone3_errno: int, start_a_thread: Callable[[], bool]) -> str | None:
    """The same for opskit itself, by trying: unfiltered clone3() gives EINVAL; after ENOSYS a thread is started."""
    name = errno.errorcode.get(clone3_errno)
    if name in ("EINVAL", "EFAULT"):
        return "allowed"
    return ("allowed" if start_a_thread() else None) if name == "ENOSYS" else name
