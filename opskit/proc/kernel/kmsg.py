r"""The kernel's log, record by record (Documentation/ABI/testing/dev-kmsg).

4,6156,51910671720,-;python3 invoked oom-killer: …          priority, sequence number, microseconds since boot, flags; text
6,6157,51910671730,-,caller=T4242;Call Trace:
4,6158,51910671740,c;Task in /a                             until 4.19: a line in pieces, `c` the first, `+` the others
 SUBSYSTEM=pci                                               further lines are keys

/dev/kmsg writes a line feed in a name as \x0a; syslog(2) begins a new line there, so that a process could forge one.
Records of user space have a facility above 0.
"""

from __future__ import annotations

import errno
import os
import stat

from opskit.proc.kernel.syscalls import kernel_log
from opskit.quantities import integer
from opskit.records import NamedTuple

_RECORD_BYTES = 8192  # CONSOLE_EXT_LOG_MAX
_MOST_RECORDS = 4_000_000
_PATH = "/dev/kmsg"
_DEVICE = os.makedev(1, 11)


class KernelLog(NamedTuple):
    """The log as `dmesg -r` writes it; `is_whole`: nothing since boot was overwritten. None: unknown."""

    text: str
    is_whole: bool | None


def read_kernel_log() -> KernelLog:
    """The records of /dev/kmsg; of syslog(2) where that cannot be read. Raises OSError: EPERM without CAP_SYSLOG."""
    try:
        fd = os.open(_PATH, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return KernelLog(kernel_log(), None)
    try:
        if _is_kernels(fd):
            return _of_records(_records(fd))
    finally:
        os.close(fd)
    return KernelLog(kernel_log(), None)


def _is_kernels(fd: int) -> bool:
    """Whether it is the kernel's log: a container may have /dev/null or a terminal in its place."""
    found = os.fstat(fd)
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == _DEVICE


def _records(fd: int) -> list[str]:
    found: list[str] = []
    while len(found) < _MOST_RECORDS:
        try:
            record = os.read(fd, _RECORD_BYTES)
        except BlockingIOError:
            break
        except OSError as error:
            if error.errno == errno.EPIPE:  # overwritten meanwhile: the next read goes on with the oldest
                continue
            raise
        if not record:
            break
        found.append(record.decode("utf-8", "surrogateescape"))
    return found


def _of_records(records: list[str]) -> KernelLog:
    lines: list[str] = []
    first: int | None = None
    for record in records:
        head, _, rest = record.partition(";")
        fields = head.split(",", 4)
        if len(fields) < 4:
            continue
        priority, microseconds = integer(fields[0]), integer(fields[2])
        text = rest.partition("\n")[0]
        if priority is None or microseconds is None:
            continue
        if first is None:
            first = integer(fields[1])
        if fields[3] == "+" and lines:
            lines[-1] += text
            continue
        seconds, fraction = divmod(microseconds, 1_000_000)
        caller = _caller(fields[4]) if len(fields) > 4 else ""
        lines.append(f"<{priority}>[{seconds:>5}.{fraction:06d}]{caller} {text}")
    return KernelLog("\n".join(lines), None if first is None else first == 0)


def _caller(fields: str) -> str:
    return next((f"[{field[7:]}]" for field in fields.split(",") if field.startswith("caller=")), "")
