r"""Messages of systemd's journal and of Docker, as lines of JSON or in the export format.

{"__REALTIME_TIMESTAMP":"1764000000000000","_SOURCE_MONOTONIC_TIMESTAMP":"1215612345","SYSLOG_IDENTIFIER":"kernel","MESSAGE":"…"}
{"log":"…\n","stream":"stderr","time":"2026-11-22T13:06:24.123456789Z"}

__REALTIME_TIMESTAMP=1764000000000000
_TRANSPORT=kernel
MESSAGE=java invoked oom-killer: …

MESSAGE is an array of bytes where it holds what is not printable; in the export format its length follows, in 8 bytes.
Only what came over _TRANSPORT=kernel is the kernel's: any user may log as SYSLOG_IDENTIFIER=kernel.
"""

from __future__ import annotations

from typing import Any

from opskit.proc.oom.lines import Line
from opskit.quantities import integer

_US = 1_000_000
_FIELDS = (
    "MESSAGE",
    "_TRANSPORT",
    "SYSLOG_IDENTIFIER",
    "__REALTIME_TIMESTAMP",
    "_SOURCE_MONOTONIC_TIMESTAMP",
    "SYSLOG_FACILITY",
)
_LONGEST_MESSAGE = 1 << 16
_LONGEST_KEY = 64
_DEEPEST = 20


def read_json(text: str) -> list[Line] | None:
    """The lines of one message; None for what is no message of the journal or of Docker."""
    if text.count("[") > _DEEPEST or text.count("{") > _DEEPEST:
        return None  # nothing that a journal writes; a deep one would exhaust the stack
    import json

    try:
        found = json.loads(text, parse_int=integer)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    if isinstance(found.get("log"), str) and isinstance(found.get("time"), str):
        return [Line("container", found["time"][:40], "", "", found["log"].rstrip("\n")[:_LONGEST_MESSAGE])]
    return lines_of_entry(found) if "MESSAGE" in found else None


def lines_of_entry(entry: dict[str, Any]) -> list[Line]:
    """The lines of an entry of the journal."""
    message = _text(entry.get("MESSAGE"))
    transport, program = _text(entry.get("_TRANSPORT")), _text(entry.get("SYSLOG_IDENTIFIER"))
    is_kernels = transport == "kernel" and _text(entry.get("SYSLOG_FACILITY")) in ("", "0")
    program = "kernel" if is_kernels else "user space" if program in ("", "kernel") else program
    date = _seconds(entry.get("__REALTIME_TIMESTAMP"))
    uptime = _seconds(entry.get("_SOURCE_MONOTONIC_TIMESTAMP")) if is_kernels else ""
    # A newline in a name was escaped by the kernel and not by the journal.
    escaped = message[:_LONGEST_MESSAGE].replace("\n", "\\x0a")
    return [Line(program, date, uptime, "", escaped)]


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and len(value) <= _LONGEST_MESSAGE:
        kept = [byte for byte in value if isinstance(byte, int) and 0 <= byte < 256]
        return bytes(kept).decode("utf-8", "surrogateescape") if len(kept) == len(value) else ""
    return ""


def _seconds(value: object) -> str:
    """`1764000000.000000` of a number of microseconds; "" for anything else."""
    number = integer(value) if isinstance(value, str) else None
    return "" if number is None or number >= 10**18 else f"{number // _US}.{number % _US:06d}"


class ExportReader:
    """Entries of the export format, line by line. A field with a length is read up to the line feed after it."""

    def __init__(self) -> None:
        self._entry: dict[str, Any] = {}
        self._key: str | None = None  # of the field with a length that is being read
        self._data = b""
        self._left = 0  # bytes of it that are not kept

    def take(self, raw: bytes) -> list[Line]:
        """A line without its line feed; the lines of the entry that it ends."""
        if self._key is not None:
            self._add(self._key, raw)
            return []
        if not raw:
            entry, self._entry = self._entry, {}
            return lines_of_entry(entry) if "MESSAGE" in entry else []
        name, equals, value = raw.partition(b"=")
        key = name[:_LONGEST_KEY].decode("latin-1")
        if not equals:
            self._key, self._data, self._left = key, b"", 0
        elif key in _FIELDS:
            self._entry[key] = value.decode("utf-8", "surrogateescape")
        return []

    def end(self) -> list[Line]:
        """The lines of the last entry."""
        return self.take(b"") if self._key is None else []

    def _add(self, key: str, raw: bytes) -> None:
        """A part of a field with a length, which may hold line feeds, also in the length."""
        raw += b"\n"
        if self._left:
            self._left = max(0, self._left - len(raw))
            self._key = key if self._left else None
            return
        self._data += raw
        length = int.from_bytes(self._data[:8], "little")
        missing = 8 + length + 1 - len(self._data)
        if len(self._data) < 8 or (missing > 0 and length <= _LONGEST_MESSAGE):
            return
        if length > _LONGEST_MESSAGE:
            self._left = max(0, missing)
        elif key in _FIELDS:
            self._entry[key] = self._data[8 : 8 + length].decode("utf-8", "surrogateescape")
        self._data = b""
        self._key = key if self._left else None
