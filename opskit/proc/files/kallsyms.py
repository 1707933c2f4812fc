r"""/proc/kallsyms (kernel/kallsyms.c): the symbols of the kernel and its modules, `address type name [module]` a line.

ffffffff81000000 T _stext
ffffffff810a1f20 t finish_task_switch.isra.0
ffffffffc0201000 t nft_do_chain\t[nf_tables]

All addresses are zero without CAP_SYSLOG where kernel.kptr_restrict is 1, or kernel.perf_event_paranoid 2; for everyone where
kptr_restrict is 2.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from opskit.quantities import hexadecimal

_CODE = frozenset("tTwW")
_ADDRESS = 16  # its digits, which sort as the numbers do
_LARGEST_BYTES = 1 << 20  # of a function: an address further behind a symbol is in none
_MOST_ALIASES = 64


class KernelSymbols:
    """Finds the function at an address. The kernel's own symbols come first, by address: they are searched in the text."""

    def __init__(self, text: str = "") -> None:
        """`text`: of the file."""
        module = text.find("\t[")
        self._core_end = text.rfind("\n", 0, module) + 1 if module >= 0 else len(text)
        self._text = text
        self._names: dict[int, str | None] = {}

    def name(self, pc: int) -> str | None:
        """The function at an address, without its module; None: unknown, or the symbols are hidden from us."""
        if pc not in self._names:
            key = f"{pc:016x}"
            self._names[pc] = _function(self._core_line(key), pc) or _function(self._module_line(key), pc)
        return self._names[pc]

    def _core_line(self, key: str) -> str:
        """The first of the lines with the highest address up to the key."""
        text, low, high = self._text, 0, self._core_end
        while True:
            # Both are the begins of lines, or ends of the text; only lines between them are unknown.
            at = text.rfind("\n", low, (low + high) // 2) + 1
            if at <= low:
                at = text.find("\n", low, high) + 1
                if not low < at < high:
                    break
            if text[at : at + _ADDRESS] <= key:
                low = at
            else:
                high = at
        for _ in range(_MOST_ALIASES):
            before = text.rfind("\n", 0, max(low - 1, 0)) + 1
            if before >= low or text[before : before + _ADDRESS] != text[low : low + _ADDRESS]:
                break
            low = before
        return text[low : max(text.find("\n", low), 0) or len(text)]

    def _module_line(self, key: str) -> str:
        at = bisect_right(self._module_lines, f"{key}~") - 1
        return self._module_lines[at] if at >= 0 else ""

    @cached_property
    def _module_lines(self) -> list[str]:
        lines = self._text[self._core_end :].split("\n")
        return sorted(line for line in lines if line[_ADDRESS + 1 : _ADDRESS + 2] in _CODE)


def _function(line: str, pc: int) -> str | None:
    """The name in a line, if the address is in its function. An address of zero is hidden."""
    address, kind, name = [*line.partition("\t")[0].split(" ", 2), "", ""][:3]
    begin = hexadecimal(address)
    return name or None if begin and kind in _CODE and 0 <= pc - begin <= _LARGEST_BYTES else None
