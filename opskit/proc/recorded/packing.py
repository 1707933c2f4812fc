"""A tape as the files of a capture (docs/captures.md). `unpack` in store.py is the exact inverse of `pack`.

manifest.json            who made it, where and when
tree/PATH                each file at the first sample;  samples/N/PATH: what has changed at sample N
attach/PID/NAME.txt      what JVMs replied
index/N/KIND.tsv         what is no file: links, stat, names of directories, fds, space, refused and missing files
index/N/calls.jsonl      questions to the kernel;  index/N/memory.bin: parts of memory
odd/N/NUMBER             a file whose path no archive should hold; index/N/odd.tsv has the path
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from opskit.proc.recorded import manifest
from opskit.proc.recorded import tape as kinds
from opskit.proc.recorded.archive import archive_chunks
from opskit.proc.recorded.layout import ODD, RANGES, REFUSED, SHAPES, index_of, range_row
from opskit.proc.recorded.tape import Failure, Tape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Paths that any tar and file system holds as they are: ASCII, short names, no `..`, and no backslash but systemd's `\x2d`.
_IN_NAME = r"[ !#-)+-.0-9:;=@A-Z\[\]^_a-z{}~]*"
_PLAIN = re.compile(rf"(?:/(?!\.{{0,2}}(?:/|\Z)){_IN_NAME}(?:\\x[0-9a-f]{{2}}{_IN_NAME})*)+\Z")
_LONGEST_PATH, _LONGEST_NAME = 1000, 200


def pack(tape: Tape) -> Iterator[tuple[str, bytes]]:
    """(name, content) of each file of a capture. The same answers give the same files, in the same order."""
    yield manifest.NAME, manifest.manifest_of(tape)
    odd: list[set[str]] = []  # by mark, the paths of files that cannot keep theirs
    for mark in range(max(map(len, tape.answers.values()))):
        by_kind = {kind: marks[mark] for kind, marks in tape.answers.items() if len(marks) > mark and marks[mark]}
        files, replies = by_kind.get(kinds.FILE, {}), by_kind.get(kinds.REPLY, {})
        odd.append(_odd_keys(files))
        odd_replies = _odd_keys(replies, "/", ".txt") if mark == 0 else _contents(replies)
        yield from _indexes(by_kind, mark + 1)
        yield from ((f"attach/{name}.txt", replies[name]) for name in sorted(_contents(replies) - odd_replies))
        yield from _odd([(kinds.REPLY, replies, odd_replies), (kinds.FILE, files, odd[-1])], mark + 1)
    yield from _files(tape.answers[kinds.FILE], odd)


def capture_chunks(tape: Tape) -> Iterator[bytes]:
    """The bytes of the .tar.gz, in chunks."""
    return archive_chunks(pack(tape), round(tape.marks[0].wall_s) if tape.marks else 0)


def _indexes(by_kind: dict[str, dict[str, Any]], sample: int) -> Iterator[tuple[str, bytes]]:
    failures: list[tuple[str, Any]] = []
    for kind, answers in by_kind.items():
        failed = [(key, (kind, answer)) for key, answer in answers.items() if isinstance(answer, Failure)]
        failures += failed
        if kind in (kinds.FILE, kinds.REPLY) or len(failed) == len(answers):
            continue
        keys = sorted([key for key, answer in answers.items() if not isinstance(answer, Failure)])
        rest = ((key, answers[key]) for key in keys)
        if kind == kinds.CALL:
            yield f"index/{sample}/calls.jsonl", _calls(rest)
        elif kind == kinds.RANGES:
            rows, memory = _ranges(rest)
            yield f"index/{sample}/ranges.tsv", index_of(RANGES, rows)
            yield f"index/{sample}/memory.bin", memory
        else:
            yield f"index/{sample}/{kind}.tsv", index_of(SHAPES[kind], rest)
    if failures:
        failures.sort(key=lambda failure: (failure[0], failure[1][0]))
        yield f"index/{sample}/refused.tsv", index_of(REFUSED, failures)


def _calls(answers: Iterable[tuple[str, Any]]) -> bytes:
    write = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
    lines = [write({"ask": key, "answer": answer}) + "\n" for key, answer in answers]
    return "".join(lines).encode("ascii")


def _ranges(answers: Iterable[tuple[str, dict[int, Any]]]) -> tuple[list[tuple[str, list[str]]], bytes]:
    rows, parts, at = [], [], 0
    for key, ranges in answers:
        lines = []
        for offset, data in ranges.items():
            if isinstance(data, Failure):
                lines.append(range_row(offset, data))
                continue
            lines.append(f"\t{offset}\t{len(data)}\t{at}")
            parts.append(data)
            at += len(data)
        rows.append((key, lines or [""]))
    return rows, b"".join(parts)


def _odd(kept: list[tuple[str, dict[str, Any], set[str]]], sample: int) -> Iterator[tuple[str, bytes]]:
    """What cannot keep its path, of (kind, answers, their keys)."""
    odd: list[tuple[str, Any]] = []
    for kind, answers, keys in kept:
        for key in sorted(keys):
            odd.append((key, (kind, len(odd) + 1)))
            yield f"odd/{sample}/{len(odd)}", answers[key]
    if odd:
        yield f"index/{sample}/odd.tsv", index_of(ODD, odd)


def _files(by_mark: list[dict[str, Any]], odd: list[set[str]]) -> Iterator[tuple[str, bytes]]:
    """The files by their paths. Those of one name and all samples of one stand beside each other: a third less in the archive."""
    by_name: dict[str, list[str]] = {}
    for answers in by_mark:
        for path in answers:
            by_name.setdefault(path.rpartition("/")[2], []).append(path)
    above = ["tree", *(f"samples/{sample}" for sample in range(2, len(odd) + 1))]
    for name in sorted(by_name):
        for path in sorted(set(by_name.pop(name))):
            for place, answers, without in zip(above, by_mark, odd):
                data = answers.get(path)
                if data is not None and path not in without and not isinstance(data, Failure):
                    yield place + path, data


def _odd_keys(answers: dict[str, Any], before: str = "", after: str = "") -> set[str]:
    """The keys of contents that are no plain paths, or a directory of another. `before`, `after`: what is put around a key.

    They are few: a set of the others would take much memory.
    """
    odd: set[str] = set()
    directories: set[str] = set()
    for key, data in answers.items():
        if isinstance(data, Failure):
            continue
        if _PLAIN.match(before + key) and (len(key) <= _LONGEST_NAME or _is_short(key)):
            directories.add(key.rpartition("/")[0])
        else:
            odd.add(key)
    todo = list(directories)
    while todo:
        above = todo.pop().rpartition("/")[0]
        if above and above not in directories:
            directories.add(above)
            todo.append(above)
    odd.update([key for key, data in answers.items() if key + after in directories and not isinstance(data, Failure)])
    return odd


def _contents(answers: dict[str, Any]) -> set[str]:
    """The keys of all that is no failure."""
    return {key for key, data in answers.items() if not isinstance(data, Failure)}


def _is_short(key: str) -> bool:
    return len(key) <= _LONGEST_PATH and max(map(len, key.split("/"))) <= _LONGEST_NAME
