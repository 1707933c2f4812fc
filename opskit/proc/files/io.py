"""/proc/PID/io (Documentation/filesystems/proc.rst, 3.3): what a process read and wrote since it was forked.

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
from opskit.quantities import integer
from opskit.records import NamedTuple


class ProcIo(NamedTuple):
    """Bytes that went through read() and write() calls of all its threads, to files, pipes and sockets."""

    read_bytes: int
    written_bytes: int


def parse_io(text: str) -> ProcIo:
    """The two counters. Raises BadInput where one is missing."""
    fields = dict(line.partition(":")[::2] for line in text.splitlines())
    found = [integer(fields.get(key, "").strip()) for key in ("rchar", "wchar")]
    if found[0] is None or found[1] is None:
        raise BadInput("io", "no rchar and wchar", found=text)
    return ProcIo(found[0], found[1])
