"""Whether a JVM logs on level info for a set of tags, as the attributes Verbose of MBeans ask: LogTagSet (logging/logTagSet.hpp)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.proc.memory import c_string, u64

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opskit.proc.memory import Memory

_LIST, _NAMES, _STDOUT = "_ZN9LogTagSet5_listE", "_ZN6LogTag5_nameE", "_ZTV15LogStdoutOutput"
LOG_VARIABLES = (_LIST, _NAMES, _STDOUT)
_MOST_SETS, _MOST_TAGS, _MOST_OUTPUTS, _LONGEST_TAG = 4096, 1024, 64, 64
_SET = struct.Struct("<QQ5I4xQQQQ")  # next, number of tags, tags, outputs of off, trace, debug, info
_NODE = struct.Struct("<QQ")  # output, next
_BEFORE_TABLE = 16  # from the symbol of a class's virtual method table to the table


def read_logs_info(
    memory: Memory, variables: Mapping[str, int], wanted: Collection[tuple[str, ...]]
) -> dict[tuple[str, ...], bool | None]:
    """By tags: whether there is an output. None: to files only, which later releases do not count. Empty: not found (JDK 8)."""
    found: dict[tuple[str, ...], bool | None] = {}
    if _LIST not in variables or _NAMES not in variables:
        return found
    address = u64(memory, variables[_LIST]) or 0
    for _ in range(_MOST_SETS):
        data = memory.read(address, _SET.size) if address else b""
        if len(data) < _SET.size or len(found) == len(wanted):
            break
        address, count, *rest = _SET.unpack(data)
        tags = tuple(_tag(memory, variables[_NAMES], number) for number in rest[: min(count, 5)])
        if tags in wanted:
            found[tags] = _has_output(memory, rest[8], variables.get(_STDOUT))
    return found


def _tag(memory: Memory, names: int, number: int) -> str:
    at = u64(memory, names + 8 * number) if number < _MOST_TAGS else None
    return ((c_string(memory, at, _LONGEST_TAG) if at else None) or b"").decode("latin-1")


def _has_output(memory: Memory, node: int, stdout: int | None) -> bool | None:
    if not node:
        return False
    for _ in range(_MOST_OUTPUTS):
        data = memory.read(node, _NODE.size) if node else b""
        if len(data) < _NODE.size:
            break
        output, node = _NODE.unpack(data)
        if stdout is not None and u64(memory, output) == stdout + _BEFORE_TABLE:
            return True
    return None
