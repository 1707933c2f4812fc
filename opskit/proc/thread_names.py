"""The names of a process's threads (/proc/PID/task/TID/comm, at most 15 bytes), with `*` for numbers and what is cut off."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from opskit.proc.fs import optional

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS

_LONGEST_NAME = 15


def pattern_of(name: bytes) -> str:
    """`leak-17` becomes `leak-*`. A name of 15 bytes may be cut: `pool-12-thread-` becomes `pool-*-thread-*`."""
    pattern = re.sub(rb"[0-9]+", b"*", name)
    if len(name) >= _LONGEST_NAME and not pattern.endswith(b"*"):
        pattern += b"*"
    return pattern.decode("utf-8", "surrogateescape")


def thread_name(fs: ProcFS, pid: int, tid: int) -> str | None:
    """The name of a thread; None: it has ended."""
    comm = fs.maybe(str, pid, "task", tid, "comm")
    return None if comm is None else comm.removesuffix("\n")


def thread_names(fs: ProcFS, pid: int) -> dict[str, int]:
    """How many threads have a name of each pattern, most first; empty where none can be read."""
    names = (optional(fs.read, pid, "task", tid, "comm") for tid in optional(fs.tids, pid, default=[]))
    counts = Counter(pattern_of(name.removesuffix(b"\n")) for name in names if name is not None)
    return dict(counts.most_common())
