"""perf-PID.map in /tmp: symbols of generated code, by the program itself (Linux, tools/perf/Documentation/jit-interface.txt).

7f1c2a0401c0 2e0 LazyCompile:~fib /srv/app.js:3
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from opskit.proc.files.status import parse_status
from opskit.proc.fs import optional
from opskit.quantities import hexadecimal

if TYPE_CHECKING:
    from opskit.proc.file_id import FileId
    from opskit.proc.fs import ProcFS

_MOST_BYTES, _MOST_LINE_BYTES = 64 << 20, 1024
_MOST_OVERLAPS, _TAIL_BYTES = 8, 256


class PerfMap:
    """The symbols of one process. The file is in its mount namespace, and has its PID there. It grows while the process runs."""

    def __init__(self, fs: ProcFS, pid: int) -> None:
        self._fs, self._pid = fs, pid
        self._path: str | None = None
        self._owners: tuple[int, ...] = (0,)
        self._seen: FileId | None = None
        self._read_bytes = self._lines = 0
        self._tail = b""  # the last bytes that were read, to know whether the file has only grown
        self._entries: dict[int, tuple[int, int, str]] = {}  # start: end, number of the line, name
        self._starts: list[int] = []

    def refresh(self) -> bool:
        """Read what is new in the file; whether it has changed."""
        if self._path is None:
            status = self._fs.maybe(parse_status, self._pid, "status")
            numbers = status.ns_pids if status is not None else ()
            self._path = f"/tmp/perf-{(numbers or (self._pid,))[-1]}.map"  # noqa: S108
            self._owners = (0, status.effective_uid) if status is not None else (0,)
        path = optional(self._fs.inside, self._pid, self._path)
        found = optional(self._fs.file_id_at, path) if path else None
        if found is not None and found.uid not in self._owners:  # /tmp is everyone's
            found = None
        if found == self._seen:
            return False
        self._seen = found
        held = optional(self._fs.hold_regular, path) if found is not None else None
        begin = max(self._read_bytes - len(self._tail), 0)
        data = b"" if held is None else optional(held.read_at, begin, _MOST_BYTES - begin, default=b"")
        if not data.startswith(self._tail):  # another file, or written anew
            data = b"" if held is None else optional(held.read_at, 0, _MOST_BYTES, default=b"")
            self._tail, self._read_bytes, self._lines, self._entries = b"", 0, 0, {}
        if held is not None:
            held.close()
        self._add(data[len(self._tail) :])
        return True

    def _add(self, data: bytes) -> None:
        """Parse the complete lines."""
        size = data.rfind(b"\n") + 1
        self._entries.update(parse_perf_map(data[:size], self._lines))
        self._starts = sorted(self._entries)
        self._read_bytes += size
        self._lines += data.count(b"\n", 0, size)
        self._tail = (self._tail + data[:size])[-_TAIL_BYTES:]

    def name(self, pc: int) -> str | None:
        """The newest symbol at an address."""
        last = bisect_right(self._starts, pc) - 1
        best: tuple[int, str] | None = None
        for at in range(last, max(last - _MOST_OVERLAPS, -1), -1):
            end, number, name = self._entries[self._starts[at]]
            if pc < end and (best is None or number > best[0]):
                best = number, name
        return best[1] if best else None


def parse_perf_map(data: bytes, first_line: int = 0) -> dict[int, tuple[int, int, str]]:
    """The symbols by their start: end, number of the line, name. Lines that are none are skipped; the last of a start counts."""
    found = {}
    for number, line in enumerate(data.split(b"\n"), first_line):
        start_text, _, rest = line[:_MOST_LINE_BYTES].partition(b" ")
        size_text, _, name = rest.partition(b" ")
        start, size = hexadecimal(start_text), hexadecimal(size_text)
        if start is not None and size and name.strip():
            found[start] = start + size, number, name.strip().decode("utf-8", "replace")
    return found
