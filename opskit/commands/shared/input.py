"""Files and standard input that a command is given to read."""

from __future__ import annotations

import codecs
import os
import sys
from typing import TYPE_CHECKING

from opskit.errors import BadInput, NotPermitted

if TYPE_CHECKING:
    from typing import BinaryIO

STDIN = "-"
LARGEST_BYTES = (
    1 << 30
)  # of what is held in memory as a whole: a dump of a million virtual threads has three quarters of that
_HEAD_BYTES = 64 << 10
_CHUNK_BYTES = 1 << 20
UTF_16 = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))  # what PowerShell's > writes
_BOMS = ((codecs.BOM_UTF8, "utf-8"), *UTF_16)


def source_name(path: str) -> str:
    """How messages name what was read."""
    return "standard input" if path == STDIN else path


def read_text(path: str) -> str:
    """The text of a file, or of standard input for `-`. Raises BadInput, also above LARGEST_BYTES, and NotPermitted.

    Bytes that are no UTF-8 come as surrogates. Of a binary only the beginning is read: enough to see what it is, and a
    heap dump may be larger than the memory.
    """
    if path == STDIN:
        return decode(_read(sys.stdin.buffer, source_name(path)))
    try:
        with open(path, "rb") as file:
            return decode(_read(file, path))
    except FileNotFoundError:
        raise BadInput(path, "no such file") from None
    except IsADirectoryError:
        raise BadInput(path, "this is a directory; name a file in it") from None
    except PermissionError:
        raise NotPermitted(f"{path}: we may not read this file; {to_read_a_file()}") from None
    except OSError as error:
        raise BadInput(path, f"cannot be read: {error.strerror}") from None


def to_read_a_file() -> str:
    """What to do where a file of the user's is closed to us."""
    from opskit.proc.fs import ProcFS  # noqa: PLC0415  (only after a refusal)
    from opskit.proc.rights import RUN_AS_ROOT, how_to_be_allowed  # noqa: PLC0415

    advice = how_to_be_allowed(ProcFS(), "CAP_DAC_READ_SEARCH")
    return "run as its owner or as root" if advice == RUN_AS_ROOT else f"run as its owner, or: {advice}"


def decode(data: bytes) -> str:
    """UTF-8, or UTF-16 where a byte order mark says so."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(encoding, "surrogateescape" if encoding == "utf-8" else "replace")
    return data.decode("utf-8", "surrogateescape")


def read_whole(file: BinaryIO, source: str, begun: bytes = b"") -> bytes:
    """`begun` and all that follows in a file or pipe, which may never end. Raises BadInput above LARGEST_BYTES."""
    size = len(begun)
    chunks = [begun] if begun else []  # a single one is not copied
    expected = _size_of(file)
    if expected > LARGEST_BYTES:
        raise _too_large(source)
    while chunk := file.read(max(expected + 1, _CHUNK_BYTES)):
        expected = 0
        chunks.append(chunk)
        size += len(chunk)
        if size > LARGEST_BYTES:
            raise _too_large(source)
    return b"".join(chunks)


def _too_large(source: str) -> BadInput:
    return BadInput(source, f"more than {LARGEST_BYTES >> 30} GiB, the most that is read at once; give it in parts")


def _size_of(file: BinaryIO) -> int:
    """Of a regular file, its size; 0 for what has none."""
    try:
        return os.fstat(file.fileno()).st_size
    except OSError:  # no file of the system's
        return 0


def _read(file: BinaryIO, source: str) -> bytes:
    head = file.read(_HEAD_BYTES)
    if b"\0" in head and not head.startswith(tuple(bom for bom, _ in _BOMS)):
        return head
    if file.seekable():
        file.seek(0)
        head = b""
    return read_whole(file, source, head)
