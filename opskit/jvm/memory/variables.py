"""Static variables of libjvm that vmStructs does not describe, by their mangled names in its table of symbols (.symtab).

OpenJDK's build removes the debug information of libjvm and keeps this table; some distributions remove that too.
"""

from __future__ import annotations

import errno
import struct
from array import array
from typing import TYPE_CHECKING

from opskit.errors import NotSupported
from opskit.jvm.memory.vmstructs import find_libjvm
from opskit.proc.elf.file import open_elf
from opskit.proc.elf.symbols import complete_source

if TYPE_CHECKING:
    from collections.abc import Collection

    from opskit.proc.fs import ProcFS

_ENTRY = struct.Struct("<IBBHQQ")
_MOST_SYMBOLS_BYTES, _MOST_NAMES_BYTES = 16 << 20, 32 << 20
_UNDEFINED, _RESERVED = 0, 0xFF00  # section numbers


def read_variables(fs: ProcFS, pid: int, names: Collection[str]) -> dict[str, int]:
    """The addresses of those of these variables that this JVM has. Raises NotSupported without a table of symbols."""
    wanted = tuple(sorted(names))
    try:
        return fs.calls.work_out(
            fs, "libjvm_variables", "dict[str, int]", (pid, wanted), lambda machine: _read(machine, pid, wanted)
        )
    except OSError as error:
        if error.errno != errno.ENODATA:  # it is not in a capture
            raise
        raise NotSupported(f"the table of symbols of {pid}: {error.strerror}") from None


def _read(fs: ProcFS, pid: int, names: Collection[str]) -> dict[str, int]:
    begin, path = find_libjvm(fs, pid)
    image = open_elf(fs, path)
    source = complete_source(image) if image is not None else None
    if image is None or source is None:
        raise NotSupported(f"{path} has no table of symbols (.symtab), or cannot be read")
    symbols = source.read(source.symbols_at, min(source.size, _MOST_SYMBOLS_BYTES))
    texts = source.read(source.names_at, min(source.names_size, _MOST_NAMES_BYTES))
    words = array("I", symbols[: len(symbols) // _ENTRY.size * _ENTRY.size])
    column = words[:: _ENTRY.size // words.itemsize].tobytes()
    found = {}
    for name in names:
        at = _place(texts, name.encode("ascii"))
        number = _index(column, at) if at is not None else None
        if number is None:
            continue
        _, _, _, section, value, _ = _ENTRY.unpack_from(symbols, number * _ENTRY.size)
        if _UNDEFINED < section < _RESERVED and value:
            found[name] = begin + value
    return found


def _place(texts: bytes, name: bytes) -> int | None:
    """Where a name begins in the table of strings; linkers may let it be the end of another one."""
    at = texts.find(name + b"\0")
    return at if at >= 0 else None


def _index(column: bytes, wanted: int) -> int | None:
    """The number of the symbol whose name begins there. `column`: four bytes of each symbol."""
    key = struct.pack("<I", wanted)
    at = column.find(key)
    while at >= 0:
        if at % 4 == 0:
            return at // 4
        at = column.find(key, at + 1)
    return None
