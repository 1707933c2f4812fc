"""Log files as a user names them: plain or gzipped, rotated, a pipe or standard input; read in chunks, in the order of time."""

from __future__ import annotations

import codecs
import os
import stat
import sys
import zlib
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO

from opskit import shell
from opskit.commands.shared.input import UTF_16, to_read_a_file
from opskit.errors import BadInput, NotPermitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

CHUNK_BYTES = 1 << 16
_HEAD_BYTES = 1 << 16
_STDIN_NAME = "standard input"
_OTHER_COMPRESSIONS = {
    b"\xfd7zXZ\0": ("xzcat",),
    b"BZh": ("bzcat",),
    b"\x28\xb5\x2f\xfd": ("zstdcat",),
    b"PK\x03\x04": ("unzip", "-p"),
}


@dataclass
class LogFile:
    """One log. `head` is its beginning, decompressed: enough to know what it is and when it begins."""

    name: str
    head: bytes
    _chunks: Callable[[], Iterator[bytes]]

    def chunks(self) -> Iterator[bytes]:
        """The whole of it, decompressed. Raises BadInput for what cannot be read, or a damaged gzip."""
        return self._chunks()


def open_logs(names: Sequence[str]) -> list[LogFile]:
    """Look at each of them. `-` is standard input. Raises BadInput and NotPermitted before anything is summed up."""
    doubled = {name for name in names if names.count(name) > 1}
    if doubled:
        raise BadInput(min(doubled), "the file is named twice: its safepoints would count twice")
    return [_open(name) for name in names]


def in_order(logs: Sequence[LogFile], begin_s: Callable[[bytes], tuple[float | None, float | None]]) -> list[LogFile]:
    """By the date at which each begins, or where not all have one, by the uptime; as they were named where neither is told."""
    begins = [begin_s(log.head) for log in logs]
    for clock in (0, 1):
        if all(begin[clock] is not None for begin in begins):
            order = sorted(range(len(logs)), key=lambda index: begins[index][clock] or 0.0)
            return [logs[index] for index in order]
    return list(logs)


def _open(name: str) -> LogFile:
    if name == "-":
        stream = sys.stdin.buffer
        return _once(_STDIN_NAME, stream)
    try:
        file = open(name, "rb", buffering=0)  # noqa: SIM115  (a pipe stays open until it is read)
    except PermissionError:
        raise NotPermitted(f"cannot read {name}: permission denied; {to_read_a_file()}") from None
    except IsADirectoryError:
        directory = f"./{name}" if name.startswith("-") else name
        inside = shell.quote(directory.rstrip("/")) if directory.strip("/") else ""
        raise BadInput(name, f"is a directory; name the logs in it: {inside}/*.log*") from None
    except OSError as error:
        raise BadInput(name, f"cannot be read: {error.strerror}") from None
    mode = os.fstat(file.fileno()).st_mode
    if not stat.S_ISREG(mode):
        return _once(name, file)
    with file:
        head = _beginning(name, _raw(name, file))

    def again() -> Iterator[bytes]:
        with open(name, "rb", buffering=0) as reopened:
            yield from _text(name, _raw(name, reopened))

    return LogFile(name, head, again)


def _once(name: str, stream: BinaryIO) -> LogFile:
    """What can be read only once: its head is kept for the reading proper."""
    chunks = _text(name, _raw(name, stream))
    first: list[bytes] = []
    size = 0
    for chunk in chunks:
        first.append(chunk)
        size += len(chunk)
        if size >= 4096:
            break

    def rest() -> Iterator[bytes]:
        yield from first
        yield from chunks

    return LogFile(name, b"".join(first), rest)


def _beginning(name: str, raw: Iterator[bytes]) -> bytes:
    found = b""
    for chunk in _text(name, raw):
        found += chunk
        if len(found) >= _HEAD_BYTES:
            break
    return found[:_HEAD_BYTES]


def _raw(name: str, file: BinaryIO) -> Iterator[bytes]:
    try:
        while chunk := os.read(file.fileno(), CHUNK_BYTES):
            yield chunk
    except OSError as error:
        raise BadInput(name, f"cannot be read: {error.strerror}") from None


def _text(name: str, raw: Iterator[bytes]) -> Iterator[bytes]:
    """Decompressed, and of UTF-16 (what PowerShell's > writes) UTF-8."""
    chunks = _decompressed(name, raw)
    first = next(chunks, b"")
    for bom, encoding in UTF_16:
        if first.startswith(bom):
            decoder = codecs.getincrementaldecoder(encoding)("replace")
            for chunk in chain((first[len(bom) :],), chunks):
                yield decoder.decode(chunk).encode()
            return
    if first:
        yield first
    yield from chunks


def _decompressed(name: str, raw: Iterator[bytes]) -> Iterator[bytes]:
    first = next(raw, b"")
    if first.startswith(b"\x1f\x8b"):
        yield from _gunzip(name, first, raw)
        return
    for magic, tool in _OTHER_COMPRESSIONS.items():
        if first.startswith(magic):
            raise BadInput(name, f"is compressed: {_unpacked(tool, name)}")
    if first:
        yield first
    yield from raw


def _unpacked(tool: tuple[str, ...], name: str, *redirections: shell.Syntax) -> str:
    """The pipeline that reads a log through another program."""
    if name == _STDIN_NAME:
        return f"{shell.command(*tool)} in front of opskit in the pipe"
    # unzip takes `--` for something else.
    file = (f"./{name}",) if name.startswith("-") and tool[0] == "unzip" else shell.operands(name)
    return shell.command(*tool, *file, *redirections, shell.Syntax("|"), "opskit", "safepoints", "-")


def _gunzip(name: str, first: bytes, raw: Iterator[bytes]) -> Iterator[bytes]:
    """Every member of a gzip file, never more than a chunk at a time."""
    member, data = zlib.decompressobj(wbits=31), first
    try:
        while True:
            if text := member.decompress(data, CHUNK_BYTES):
                yield text
            data = member.unconsumed_tail
            if member.eof:
                data = member.unused_data.lstrip(b"\0") or next(raw, b"").lstrip(b"\0")
                if not data:
                    return
                member = zlib.decompressobj(wbits=31)
            elif not data:
                data = next(raw, b"")
                if not data:
                    raise BadInput(
                        name,
                        "truncated gzip: the data end in the middle; what there is can be had with: "
                        + _unpacked(("zcat",), name, shell.Syntax("2>/dev/null")),
                    )
    except zlib.error as error:
        raise BadInput(name, f"damaged gzip data ({error}); fetch the file again") from None
