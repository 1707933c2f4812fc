"""The call frame information of a file as binutils' readelf prints it, row by row, to compare with."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_FDE = re.compile(r"[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)")
_ROW = re.compile(r"([0-9a-f]{16}) (\S+(?: \(\S+\))?) +(.*)")
NAMES = ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", *(f"r{number}" for number in range(8, 16)), "ra"]


class Row(NamedTuple):
    """One row: the addresses for which it holds, the CFA and the registers' columns as they are printed."""

    begin: int
    end: int
    cfa: str
    columns: dict[str, str]


def rows_of(path: str, every: int = 1) -> Iterator[Row]:
    """The rows of every n-th function."""
    text = subprocess.run(
        ["readelf", "--debug-dump=frames-interp", "-W", path], check=False, capture_output=True, text=True
    ).stdout
    for number, block in enumerate(text.split("\n\n")):
        lines = block.strip().splitlines()
        found = _FDE.match(lines[0]) if lines else None
        if found is None or number % every or len(lines) < 3:
            continue
        names = lines[1].split()[2:]
        rows = [_ROW.match(line) for line in lines[2:]]
        assert all(rows), block
        begins = [*(int(row[1], 16) for row in rows), int(found[2], 16)]
        for row, begin, end in zip(rows, begins, begins[1:]):
            if begin < end:
                yield Row(begin, end, row[2], dict(zip(names, re.sub(r" \(\w+\)", "", row[3]).split())))


def printed(rule) -> tuple[str, dict[str, str]]:
    """A rule of opskit as readelf prints it. Columns of registers without a rule are left out."""
    cfa = "exp" if rule.expression is not None else f"{NAMES[rule.register]}{rule.offset:+d}"
    forms = {
        "undefined": "u", "same": "s", "offset": "c{:+d}", "value_offset": "v{:+d}", "expression": "exp", "value_expression": "vexp",
        "register": "r{}",
    }  # fmt: skip
    return cfa, {
        NAMES[number]: forms[how].format(value if isinstance(value, int) else 0)
        for number, (how, value) in rule.saved.items()
    }
