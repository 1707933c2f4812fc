"""Temporary files with names that identify their process; removal of those whose process was killed (SIGKILL).

    .opskit-PID-STARTTICKS-MACHINE-RANDOM

MACHINE is the boot id with the inodes of the pid and time namespaces, since PID and start time are unique only there. A
directory may be shared between containers and machines: files of another MACHINE are never removed. A name is no proof:
whoever may write to the directory can make one, which risks only that file.
"""

from __future__ import annotations

import os
import re
import stat
from itertools import islice

from opskit.proc.files.stat import parse_stat
from opskit.proc.fs import ProcFS
from opskit.quantities import integer

PREFIX = ".opskit-"
_NAME = re.compile(r"\.?opskit-([0-9]{1,10})-([0-9]{1,20})-([0-9a-f.]{1,60})-[0-9a-f]{16}(?:\.[a-z]{1,9})?")
_MOST_NAMES = 100_000  # per directory
_UNKNOWN = "0"


def new_name(suffix: str = "") -> str:
    """An unpredictable name for a temporary file of this process."""
    start = _start_ticks(os.getpid())
    machine = _UNKNOWN if start is None else _machine()
    return f"{PREFIX}{os.getpid()}-{start or 0}-{machine}-{os.urandom(8).hex()}{suffix}"


def is_abandoned(name: str) -> bool:
    """Whether `new_name` made this name, in a process that is proven to have ended."""
    found = _NAME.fullmatch(name)
    if not found or found[3] == _UNKNOWN or found[3] != _machine():
        return False
    pid, start = integer(found[1]) or 0, integer(found[2])
    try:
        os.kill(pid, 0)  # 0: our own process group
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    return _start_ticks(pid) not in (None, start)


def remove_abandoned(directory: int, uid: int) -> None:
    """Remove what killed runs left in a directory (an fd): regular files of that user with one link."""
    for name in abandoned(directory):
        try:
            file = os.lstat(name, dir_fd=directory)
            if stat.S_ISREG(file.st_mode) and file.st_nlink == 1 and file.st_uid == uid:
                os.unlink(name, dir_fd=directory)
        except OSError:  # removed by another process, or not permitted
            continue


def abandoned(directory: int) -> list[str]:
    """The names in a directory (an fd) that killed runs left, of whatever file type."""
    try:
        with os.scandir(f"/proc/self/fd/{directory}") as entries:
            names = [entry.name for entry in islice(entries, _MOST_NAMES) if entry.name.startswith(PREFIX)]
    except OSError:
        return []
    return [name for name in names if is_abandoned(name)]


def _machine() -> str:
    """Identify where our PIDs and start times are unique; `_UNKNOWN` where /proc does not allow it."""
    try:
        if os.readlink("/proc/self") != str(os.getpid()):  # the proc tree of another pid namespace
            return _UNKNOWN
        boot = ProcFS().load(str.strip, "sys", "kernel", "random", "boot_id").replace("-", "")
        kinds = ("pid", "time") if os.path.exists("/proc/self/ns/time") else ("pid",)  # Linux 5.6
        spaces = [f"{os.stat(f'/proc/self/ns/{kind}').st_ino:x}" for kind in kinds]
    except OSError:
        return _UNKNOWN
    return ".".join((boot[:16], *spaces))


def _start_ticks(pid: int) -> int | None:
    """The start time of a process; None where it cannot be read, 0 for a zombie."""
    found = ProcFS().maybe(parse_stat, pid, "stat")
    is_zombie = found and found.state in ("Z", "X") and found.threads <= 1
    return found and (0 if is_zombie else found.start_ticks)
