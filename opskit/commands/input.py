"""Files and standard input that a command is given to read."""

from __future__ import annotations

import codecs
import sys
from typing import TYPE_CHECKING

from opskit.errors import BadInput, NotPermitted

if TYPE_CHECKING:
    from typing import BinaryIO

STDIN = "-"
_HEAD_BYTES = 64 << 10
UTF_16 = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))  # what PowerShell's > writes
_BOMS = ((codecs.BOM_UTF8, "utf-8"), *UTF_16)


def source_name(path: str) -> str:
    """How messages name what was read."""
    return "standard input" if path == STDIN else path


def read_text(path: str) -> str:
    """The text of a file, or of standard input for `-`. Raises BadInput and NotPermitted.

    Bytes that are no UTF-8 come as surrogates. Of a binary only the beginning is read: enough to see what it is, and a
    heap dump may be larger than the memory.
    """
    if path == STDIN:
        return decode(_read(sys.stdin.buffer))
    try:
        with open(path, "rb") as file:
            return decode(_read(file))
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


def _read(file: BinaryIO) -> bytes:
    head = file.read(_HEAD_BYTES)
    if b"\0" in head and not head.startswith(tuple(bom for bom, _ in _BOMS)):
        return head
    if file.seekable():
        file.seek(0)
        return file.read()
    return head + file.read()
