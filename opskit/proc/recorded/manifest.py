"""The manifest of a capture: its format, who made it, where and when; and the same from JSON of a stranger."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, cast

from opskit.errors import BadInput
from opskit.proc.fs import optional
from opskit.proc.recorded.tape import FILE, LINK, Mark, Origin

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS
    from opskit.proc.recorded.tape import Tape

FORMAT = 1
NAME = "manifest.json"
_MOST_BYTES, _MOST_MARKS, _LONGEST_TEXT = 1 << 20, 10_000, 4096
_LAST_WALL_S, _LONGEST_S = 253_402_300_799.0, 1e12  # the year 9999
_LONG_NUMBER = re.compile(rb"[0-9]{401}")
_KERNEL, _BOOT_ID = ("sys", "kernel", "osrelease"), ("sys", "kernel", "random", "boot_id")
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")
_LIMITS = {"page_bytes": (512, 1 << 24), "clock_ticks": (1, 1_000_000), "euid": (0, 1 << 32), "egid": (0, 1 << 32)}


def manifest_of(tape: Tape) -> bytes:
    """The manifest of a tape. What the replay needs stands in `origin` and `marks`; the rest is for people and other tools."""
    origin = tape.origin
    about = {
        "opskit_capture": FORMAT,
        "opskit_version": origin.version,
        "host": origin.node_name,
        "kernel": _line(tape, _KERNEL),
        "machine": origin.machine,
        "boot_id": _line(tape, _BOOT_ID),
        "clock_ticks": origin.clock_ticks,
        "page_bytes": origin.page_bytes,
        "reader": {"uid": origin.euid, "gid": origin.egid, "namespaces": _namespaces(tape)},
        "processes": list(origin.words),
        "redacted": origin.is_redacted,
        "hidden_values": origin.hidden,
        "hidden_kinds": list(origin.hidden_kinds),
        "origin": origin._asdict(),
        "marks": [mark._asdict() for mark in tape.marks],
    }
    return json.dumps(about, indent=1).encode("ascii") + b"\n"


def read_for_manifest(fs: ProcFS) -> None:
    """Read what the manifest tells of the machine: of a recording, onto its tape."""
    for parts in (_KERNEL, _BOOT_ID):
        optional(fs.read, *parts)
    for name in _NAMESPACES:
        optional(fs.link, "self", "ns", name)


def _line(tape: Tape, parts: tuple[str, ...]) -> str | None:
    found = tape.answers[FILE][0].get("/".join((tape.origin.proc, *parts)))
    return found.decode("utf-8", "replace").strip() if isinstance(found, bytes) else None


def _namespaces(tape: Tape) -> dict[str, str]:
    links = tape.answers[LINK][0]
    found = {name: links.get(f"{tape.origin.proc}/self/ns/{name}") for name in _NAMESPACES}
    return {name: link.decode("utf-8", "replace") for name, link in found.items() if isinstance(link, bytes)}


def parse_manifest(data: bytes, source: str) -> tuple[Origin, tuple[Mark, ...]]:
    """The origin and the marks. Raises BadInput."""
    if len(data) > _MOST_BYTES:
        raise BadInput(source, f"has {len(data):,} bytes, more than a manifest")
    about = parse_json(data, source)
    if not isinstance(about, dict) or "opskit_capture" not in about:
        raise BadInput(source, "is not the manifest of a capture: it has no `opskit_capture`")
    number = about["opskit_capture"]
    if type(number) is not int or number < 1:
        raise BadInput(source, "`opskit_capture` is not the number of a format", found=str(number))
    if number > FORMAT:
        raise BadInput(source, f"has format {number}; this opskit reads formats up to {FORMAT}: update opskit")
    return _origin(about.get("origin"), source), _marks(about.get("marks"), source)


def parse_json(data: bytes, source: str, line: int | None = None) -> Any:
    """A JSON value of a stranger. Raises BadInput, for numbers too that would take long."""
    if _LONG_NUMBER.search(data):
        raise BadInput(source, "has a number of more than 400 digits", line)
    try:
        value = json.loads(data.decode(), parse_constant=_refuse, parse_float=_finite)
        if b"\\ud" in data.lower():  # bytes outside UTF-8 are written so; other halves of pairs can be no text here
            json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogateescape")
        return value
    except RecursionError:
        raise BadInput(source, "is nested too deeply", line) from None
    except ValueError as error:
        raise BadInput(source, f"is not JSON: {error}", line) from None


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is not a number")


def _finite(word: str) -> float:
    number = float(word)  # a number: as JSON writes it
    return number if math.isfinite(number) else cast("float", _refuse(word[:40]))


def _origin(given: object, source: str) -> Origin:
    if not isinstance(given, dict):
        raise BadInput(source, "`origin` is not an object")
    values: dict[str, Any] = {}
    for name, default in Origin._field_defaults.items():
        value = given.get(name, default)
        value = tuple(value) if isinstance(value, list) else value
        if not _is_like(value, default) or not _is_within(name, value):
            raise BadInput(source, f"`origin.{name}` is wrong", found=str(value))
        values[name] = value
    if values["page_bytes"] & (values["page_bytes"] - 1):
        raise BadInput(source, "`origin.page_bytes` is no power of two", found=str(values["page_bytes"]))
    return Origin(**values)


def _is_like(value: object, default: object) -> bool:
    if isinstance(default, tuple) and isinstance(value, tuple):
        return all(_is_text(each) or type(each) in (int, bool) for each in value)
    if default is None:
        return value is None or type(value) in (int, bool) or _is_text(value)
    return type(value) is type(default) and (not isinstance(value, str) or _is_text(value))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_TEXT and _is_encodable(value)


def _is_encodable(text: str) -> bool:
    """Whether it can be a file name here: JSON can hold halves of surrogate pairs."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def _is_within(name: str, value: object) -> bool:
    if type(value) is not int:
        return True
    least, most = _LIMITS.get(name, (0, 1 << 63))
    return least <= value <= most


def _marks(given: object, source: str) -> tuple[Mark, ...]:
    if not isinstance(given, list) or not 0 < len(given) <= _MOST_MARKS:
        raise BadInput(source, f"`marks` is not a list of 1 to {_MOST_MARKS:,} moments")
    marks: list[Mark] = []
    for each in given:
        wall_s: Any
        monotonic_s: Any
        wall_s, monotonic_s = map(each.get, Mark._fields) if isinstance(each, dict) else (None, None)
        if not _is_number(wall_s, _LAST_WALL_S) or not _is_number(monotonic_s, _LONGEST_S):
            raise BadInput(source, "a mark is not a pair of times", found=str(each))
        mark = Mark(wall_s * 1.0, monotonic_s * 1.0)
        if marks and mark.monotonic_s < marks[-1].monotonic_s:
            raise BadInput(source, "the marks are not in order", found=str(each))
        marks.append(mark)
    return tuple(marks)


def _is_number(value: Any, most: float) -> bool:
    return type(value) in (int, float) and 0 <= value <= most
