r"""The mapped files in an hs_err file: the section `Dynamic libraries:`.

7fa2a4206000-7fa2a43c9000 r-xp 00000000 fd:00 33557434                   /usr/lib64/libc-2.17.so     Linux
0x00007fff977e0000 - 0x00007fff979ce000 	C:\Windows\SYSTEM32\ntdll.dll                        Windows
0x00000001001e0000 	/Library/Java/…/lib/libjli.dylib                                              macOS
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.quantities import hexadecimal
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_RANGE = re.compile(r"(?:0x)?([0-9a-fA-F]{4,16})(?: ?- ?(?:0x)?([0-9a-fA-F]{4,16}))?\s+(\S.*)")
_LINUX = re.compile(r"([r-][w-][x-][sp-]) [0-9a-f]{1,16} [0-9a-f]{1,8}:[0-9a-f]{1,8} [0-9]{1,20}\s*(.*)")
_MOST_LIBRARIES = 10_000


class Mappings(NamedTuple):
    """`number`: of mappings, None without the section. `holder`: what is mapped at the address that was asked for."""

    number: int | None
    libraries: Sequence[str]
    holder: str | None


def parse_mappings(lines: Sequence[str], address: int | None) -> Mappings:
    """The mappings of a section's lines."""
    number = 0
    files: dict[str, None] = {}
    holder = None
    for line in lines:
        found = _RANGE.match(line)
        if found is None:
            continue
        number += 1
        rest = found[3].strip()
        linux = _LINUX.match(rest)
        name = linux[2] if linux else rest
        if name and not name.startswith("[") and len(files) < _MOST_LIBRARIES:
            files[name] = None
        if address and found[2] and holder is None:
            low, high = hexadecimal(found[1]), hexadecimal(found[2])
            if low is not None and high is not None and low <= address < high:
                holder = f"{name or 'anonymous memory'} ({linux[1]})" if linux else name
    return Mappings(number or None, tuple(files), holder)
