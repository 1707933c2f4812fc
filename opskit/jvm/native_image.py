"""GraalVM native images: compiled Java programs without a JVM to attach to.

Such an ELF file has a section `.svm_heap` with the heap's first content, which survives strip(1).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_HEAP_SECTION = b"\0.svm_heap\0"
_MOST_BYTES = 1 << 20  # of section names


def is_native_image(read: Callable[[int, int], bytes]) -> bool:
    """Whether an executable is a native image. `read(offset, size)` gives bytes of the file, fewer at its end."""
    head = read(0, 64)
    if len(head) < 64 or head[:5] != b"\x7fELF\x02":  # native-image builds for 64 bits only
        return False
    order = "<" if head[5] == 1 else ">"
    (table,) = struct.unpack_from(order + "Q", head, 0x28)
    entry_bytes, _, names_index = struct.unpack_from(order + "HHH", head, 0x3A)
    if not table or entry_bytes < 64 or table >= 1 << 62:
        return False
    header = read(table + names_index * entry_bytes, 64)
    if len(header) < 64:
        return False
    offset, size = struct.unpack_from(order + "QQ", header, 0x18)
    return offset < 1 << 62 and _HEAP_SECTION in b"\0" + read(offset, min(size, _MOST_BYTES))
