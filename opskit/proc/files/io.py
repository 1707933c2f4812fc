"""/proc/PID/io and task/TID/io (Documentation/filesystems/proc.rst, 3.3): what was read and written since the fork or clone.

rchar: 323934931
wchar: 323929600
syscr: 632687
syscw: 632675
read_bytes: 0
write_bytes: 323932160
cancelled_write_bytes: 0
"""

from __future__ import annotations

from opskit.errors import BadInput
from opskit.quantities import integer, integers
from opskit.records import NamedTuple


class ProcIo(NamedTuple):
    """Of a process, with its threads that ended, or of a thread.

    `read_bytes`, `written_bytes`: through read() and write() calls, to files, pipes and sockets. `reads`, `writes`: these calls.
    `disk_read_bytes`, `disk_written_bytes`: fetched from storage, and made dirty for it. `cancelled_bytes`: made dirty, then deleted.
    """

    read_bytes: int
    written_bytes: int
    reads: int = 0
    writes: int = 0
    disk_read_bytes: int = 0
    disk_written_bytes: int = 0
    cancelled_bytes: int = 0

    def since(self, before: ProcIo) -> ProcIo:
        """What has been added."""
        return ProcIo(*(max(0, now - then) for now, then in zip(self, before)))


_KEYS = ("rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes")

_COLUMNS = tuple(f"{key}:" for key in _KEYS)
_WORDS = 2 * len(_KEYS)


def parse_io(text: str) -> ProcIo:
    """The counters. Raises BadInput where rchar or wchar is missing; the others are 0 then (CONFIG_TASK_IO_ACCOUNTING)."""
    words = text.split(None, _WORDS)
    if tuple(words[::2]) == _COLUMNS and (numbers := integers(words[1::2])) is not None:
        return ProcIo(*numbers)  # of a thousand threads, in half the time
    fields = dict(line.partition(":")[::2] for line in text.splitlines())
    read, written, *others = (integer(fields.get(key, "").strip()) for key in _KEYS)
    if read is None or written is None:
        raise BadInput("io", "no rchar and wchar", found=text)
    return ProcIo(read, written, *(number or 0 for number in others))
