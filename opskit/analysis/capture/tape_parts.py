"""The parts of a tape that are no whole files: memory in ranges, answers, paths and names."""

from __future__ import annotations

import base64
import binascii
import posixpath
import zlib
from operator import is_
from typing import TYPE_CHECKING, Any

from opskit.analysis.capture.known_values import decoded, encoded
from opskit.proc.recorded import tape as kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opskit.proc.recorded.tape import Tape

    Change = Callable[[bytes], bytes]

_MOST_ANSWER_BYTES = 256 << 20


def redact_ranges(ranges: Any, change: Change) -> Any:
    """{offset: bytes or Failure} of a file; ranges that overlap or adjoin are changed as one. `change` keeps the length."""
    if not isinstance(ranges, dict):
        return ranges
    new = dict(ranges)
    for start, offsets, data in _joined(ranges):
        changed = change(data)
        if changed != data:
            for offset in offsets:
                new[offset] = changed[offset - start : offset - start + len(ranges[offset])]
    return new


def _joined(ranges: dict[int, Any]) -> Iterator[tuple[int, list[int], bytes]]:
    start, data = 0, bytearray()
    offsets: list[int] = []
    for offset in sorted(each for each, found in ranges.items() if isinstance(found, bytes)):
        if offsets and offset <= start + len(data):
            data += ranges[offset][start + len(data) - offset :]
            offsets.append(offset)
            continue
        if offsets:
            yield start, offsets, bytes(data)
        start, offsets, data = offset, [offset], bytearray(ranges[offset])
    if offsets:
        yield start, offsets, bytes(data)


def redact_answer(answer: Any, text: Change, binary: Change) -> Any:
    """An answer to a question as JSON: its texts, and the bytes in it. See opskit/proc/recorded/answers.py."""
    if isinstance(answer, str):
        raw = encoded(answer)
        return answer if (changed := text(raw)) == raw else decoded(changed)
    if isinstance(answer, bytes):
        return binary(answer)
    if isinstance(answer, list):
        new = [each if type(each) is int else redact_answer(each, text, binary) for each in answer]
        return answer if all(map(is_, new, answer)) else new
    if isinstance(answer, tuple):
        parts = [redact_answer(each, text, binary) for each in answer]
        return type(answer)(*parts) if hasattr(answer, "_fields") else tuple(parts)
    if isinstance(answer, dict):
        if len(answer) == 1 and (found := _bytes_in(answer)) is not None:
            name, data = found
            return {name: _packed(name, binary(data) if b"\0" in data else text(data))}
        return {key: redact_answer(each, text, binary) for key, each in answer.items()}
    return answer


def _bytes_in(answer: dict[str, Any]) -> tuple[str, bytes] | None:
    ((name, value),) = answer.items()
    if name not in ("base64", "deflated") or not isinstance(value, str):
        return None
    try:
        data = base64.b64decode(value)
        return name, zlib.decompressobj().decompress(data, _MOST_ANSWER_BYTES) if name == "deflated" else data
    except (binascii.Error, zlib.error, ValueError):
        return None


def _packed(name: str, data: bytes) -> str:
    return base64.b64encode(zlib.compress(data) if name == "deflated" else data).decode()


def bytes_of(answer: Any) -> Iterator[bytes]:
    """Every text in an answer, and ranges of memory that adjoin as one."""
    if isinstance(answer, dict) and all(isinstance(key, int) for key in answer):
        yield from (data for _, _, data in _joined(answer))
    elif isinstance(answer, bytes):
        yield answer
    elif isinstance(answer, str):
        yield encoded(answer)
    elif isinstance(answer, (list, tuple)):
        for each in answer:
            yield from bytes_of(each)
    elif isinstance(answer, dict):
        found = _bytes_in(answer) if len(answer) == 1 else None
        for each in (found[1],) if found else answer.values():
            yield from bytes_of(each)


def redact_names(tape: Tape, change: Change) -> None:
    """The paths that were asked for, the names in directories, and where links and file descriptors point."""
    known: dict[bytes, bytes] = {}
    for piece in names_on(tape):
        if piece not in known:
            changed = change(piece)
            if changed != piece:
                known[piece] = changed
    if not known:
        return

    def renamed(name: Any) -> Any:
        if isinstance(name, str):
            raw = encoded(name)
            return decoded(known[raw]) if raw in known else name
        return known.get(name, name)

    for kind, by_mark in tape.answers.items():
        for answers in by_mark:
            for key, answer in list(answers.items()):
                new = _renamed(kind, answer, renamed)
                if kind in (kinds.CALL, kinds.REPLY) or renamed(key) == key:
                    answers[key] = new
                else:
                    del answers[key]
                    answers[renamed(key)] = new


def _renamed(kind: str, answer: Any, renamed: Callable[[Any], Any]) -> Any:
    if kind == kinds.LINK:
        return renamed(answer) if isinstance(answer, bytes) else answer
    if not isinstance(answer, tuple) or hasattr(answer, "_fields"):
        return answer
    if kind in (kinds.NAMES, kinds.SOME):
        return tuple(map(renamed, answer))
    if kind == kinds.ENTRIES:
        return tuple((renamed(name), *rest) for name, *rest in answer)
    if kind == kinds.FDS:
        return tuple((name, renamed(target), mode) for name, target, mode in answer)
    return answer


def names_on(tape: Tape) -> set[bytes]:
    """Every path and name that is not the kernel's own."""
    proc = f"{tape.origin.proc}/"
    texts: set[str] = set()
    raw: set[bytes] = set()
    for kind, by_mark in tape.answers.items():
        for answers in by_mark:
            if kind not in (kinds.CALL, kinds.REPLY):
                texts.update([key for key in answers if not key.startswith(proc) or "/root/" in key or "/cwd/" in key])
            if kind == kinds.LINK:
                raw.update([answer for answer in answers.values() if isinstance(answer, bytes)])
            elif kind in (kinds.NAMES, kinds.SOME, kinds.ENTRIES, kinds.FDS):
                for answer in answers.values():
                    if not isinstance(answer, tuple) or hasattr(answer, "_fields"):
                        continue
                    if kind == kinds.FDS:
                        raw.update([target for _, target, _ in answer])
                    else:
                        texts.update(answer if kind != kinds.ENTRIES else [entry[0] for entry in answer])
    raw.update(encoded(text) for text in texts if not text.isdecimal())
    raw.difference_update([each for each in raw if each.startswith((b"pipe:[", b"socket:[", b"anon_inode:"))])
    return raw


def names_in_use(tape: Tape, threads: set[bytes]) -> frozenset[str]:
    """The names of users, groups, threads, programs and the host: a secret of the same name is hidden in its own place alone."""
    found = {*threads, *(encoded(name) for name in (tape.origin.node_name, *tape.origin.words))}
    for name in ("passwd", "group"):
        data = tape.answers[kinds.FILE][0].get(f"{tape.origin.root.rstrip('/')}/etc/{name}")
        if isinstance(data, bytes):
            found.update(line.partition(b":")[0] for line in data.split(b"\n"))
    found.update(
        posixpath.basename(target)
        for _, path, target in tape.all_of(kinds.LINK)
        if isinstance(target, bytes) and path.endswith("/exe")
    )
    return frozenset(map(decoded, found))


def thread_name(path: str, data: bytes) -> bytes:
    """The name of a thread in its stat, status or comm; empty: none."""
    if path.endswith("/comm"):
        return data.rstrip(b"\n")
    if path.endswith("/stat"):
        return data[data.find(b"(") + 1 : data.rfind(b")")]
    return data[6 : data.find(b"\n")] if data.startswith(b"Name:\t") else b""
