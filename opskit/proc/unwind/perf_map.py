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
    from opskit.proc.fs import FileId, ProcFS

_MOST_BYTES, _MOST_LINE_BYTES = 64 << 20, 1024
_MOST_OVERLAPS = 8


class PerfMap:
    """The symbols of one process. The file is in its mount namespace, and has its PID there. It grows while the process runs."""

    def __init__(self, fs: ProcFS, pid: int) -> None:
        self._fs, self._pid = fs, pid
        self._path: str | None = None
        self._seen: FileId | None = None
        self._entries: dict[int, tuple[int, int, str]] = {}  # start: end, number of the line, name
        self._starts: list[int] = []

    def refresh(self) -> bool:
        """Read the file if it has changed; whether it has."""
        if self._path is None:
            numbers = self._fs.maybe(lambda text: parse_status(text).ns_pids, self._pid, "status") or (self._pid,)
            self._path = f"/tmp/perf-{numbers[-1]}.map"  # noqa: S108
        path = optional(self._fs.inside, self._pid, self._path)
        found = optional(self._fs.file_id_at, path) if path else None
        if found == self._seen:
            return False
        self._seen = found
        directory, _, name = (path or "").rpartition("/")
        read = optional(self._fs.read_untrusted, directory, name, _MOST_BYTES) if found else None
        self._entries = parse_perf_map(read[1]) if read else {}
        self._starts = sorted(self._entries)
        return True

    def name(self, pc: int) -> str | None:
        """The newest symbol at an address."""
        last = bisect_right(self._starts, pc) - 1
        best: tuple[int, str] | None = None
        for at in range(last, max(last - _MOST_OVERLAPS, -1), -1):
            end, number, name = self._entries[self._starts[at]]
            if pc < end and (best is None or number > best[0]):
                best = number, name
        return best[1] if best else None


def parse_perf_map(data: bytes) -> dict[int, tuple[int, int, str]]:
    """The symbols by their start: end, number of the line, name. Lines that are none are skipped; the last of a start counts."""
    found = {}
    for number, line in enumerate(data.split(b"\n")):
        start_text, _, rest = line[:_MOST_LINE_BYTES].partition(b" ")
        size_text, _, name = rest.partition(b" ")
        start, size = hexadecimal(start_text), hexadecimal(size_text)
        if start is not None and size and name.strip():
            found[start] = start + size, number, name.strip().decode("utf-8", "replace")
    return found
