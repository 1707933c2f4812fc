r"""/proc/kallsyms (kernel/kallsyms.c): the symbols of the kernel and its modules, `address type name [module]` a line.

ffffffff81000000 T _stext
ffffffff810a1f20 t finish_task_switch.isra.0
ffffffffc0201000 t nft_do_chain\t[nf_tables]

All addresses are zero without CAP_SYSLOG where kernel.kptr_restrict is 1, or kernel.perf_event_paranoid 2; for everyone where
kptr_restrict is 2.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_HIDDEN = "0" * 16
_CODE = frozenset("tTwW")
_LARGEST_BYTES = 1 << 20  # of a function: an address further behind the last symbol is in none


class KernelSymbols:
    """Finds the function at an address. `lines`: sorted lines of functions, whose 16 digits sort as the numbers do."""

    def __init__(self, lines: Sequence[str] = ()) -> None:
        self._lines = lines
        self._names: dict[int, str | None] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def name(self, pc: int) -> str | None:
        """The function at an address, without its module; None: unknown, or the symbols are hidden from us."""
        if pc not in self._names:
            self._names[pc] = self._find(pc)
        return self._names[pc]

    def _find(self, pc: int) -> str | None:
        lines = self._lines
        at = bisect_right(lines, f"{pc:016x}~") - 1
        if at < 0:
            return None
        address = lines[at][:16]
        if pc - int(address, 16) > _LARGEST_BYTES:  # a number: 16 hexadecimal digits
            return None
        # Of several names of one function the first one: global ones come before local and weak ones.
        return lines[bisect_left(lines, address)][19:].partition("\t")[0] or None


def parse_kallsyms(text: str) -> KernelSymbols:
    """Parse the file; empty where the addresses are hidden, or for anything else."""
    lines = [line for line in text.split("\n") if line[17:18] in _CODE and line[16:17] == line[18:19] == " "]
    lines.sort()  # nearly sorted already
    first = bisect_right(lines, f"{_HIDDEN}~")
    lines = lines[first:]
    hexadecimal = frozenset("0123456789abcdef")
    return KernelSymbols([line for line in lines if hexadecimal.issuperset(line[:16])])
