"""DWARF expressions in call frame information (DWARF 5, section 2.5): PLT entries, signal frames, realigned stacks."""

from __future__ import annotations

import operator
import struct
from typing import TYPE_CHECKING

from opskit.proc.elf.dwarf_bytes import DwarfBytes, Malformed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Word = Callable[[int], "int | None"]

_MOST_STEPS, _MOST_VALUES = 512, 64
_MASK, _SIGN = (1 << 64) - 1, 1 << 63
_CONSTANTS = {
    op: struct.Struct(f"<{form}") for op, form in zip(range(0x08, 0x10), ("B", "b", "H", "h", "I", "i", "Q", "q"))
}
_I16 = struct.Struct("<h")
_DEREF, _DUP, _DROP, _OVER, _PICK, _SWAP, _ROT = 0x06, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17
_PLUS_UCONST, _BRA, _SKIP, _BREGX, _NOP = 0x23, 0x28, 0x2F, 0x92, 0x96


def _signed(value: int) -> int:
    return value - (1 << 64) if value & _SIGN else value


def _compared(compare: Callable[[int, int], bool]) -> Callable[[int, int], int]:
    return lambda a, b: 1 if compare(_signed(a), _signed(b)) else 0


_UNARY: dict[int, Callable[[int], int]] = {0x19: lambda a: abs(_signed(a)), 0x1F: operator.neg, 0x20: operator.invert}
_BINARY: dict[int, Callable[[int, int], int]] = {
    0x1A: operator.and_,
    0x1C: operator.sub,
    0x1E: operator.mul,
    0x21: operator.or_,
    0x22: operator.add,
    0x24: lambda a, b: a << min(b, 64),
    0x25: lambda a, b: a >> min(b, 64),
    0x26: lambda a, b: _signed(a) >> min(b, 64),
    0x27: operator.xor,
    0x29: _compared(operator.eq),
    0x2A: _compared(operator.ge),
    0x2B: _compared(operator.gt),
    0x2C: _compared(operator.le),
    0x2D: _compared(operator.lt),
    0x2E: _compared(operator.ne),
}  # fmt: skip


def evaluate(expression: bytes, registers: Sequence[int | None], word: Word, first: int | None = None) -> int | None:
    """The value of an expression; None where a register or a word of the stack is unknown, or it is malformed.

    `word` reads eight bytes at an address. `first` is on the stack of values at the begin: the CFA, for a register's rule.
    """
    values = [] if first is None else [first]
    code = DwarfBytes(expression)
    try:
        for _ in range(_MOST_STEPS):
            if code.at == len(expression):
                return values[-1] & _MASK
            if not 0 <= code.at < len(expression) or len(values) > _MOST_VALUES:
                return None
            _step(code, values, registers, word)
    except (Malformed, IndexError):
        pass
    return None


def _known(value: int | None) -> int:
    if value is None:
        raise Malformed
    return value


def _step(code: DwarfBytes, values: list[int], registers: Sequence[int | None], word: Word) -> None:
    op = code.byte()
    if 0x30 <= op <= 0x4F:  # lit0 to lit31
        values.append(op - 0x30)
    elif 0x70 <= op <= 0x8F:  # breg0 to breg31
        values.append(_known(registers[op - 0x70]) + code.sleb() & _MASK)
    elif op == _BREGX:
        number = code.uleb()
        values.append(_known(registers[number]) + code.sleb() & _MASK)
    elif op == _DEREF:
        values.append(_known(word(values.pop() & _MASK)))
    elif op in _CONSTANTS:
        values.append(code.unpack(_CONSTANTS[op]) & _MASK)
    elif op in (0x10, 0x11):  # constu, consts
        values.append((code.uleb() if op == 0x10 else code.sleb()) & _MASK)
    elif op == _PLUS_UCONST:
        values.append(values.pop() + code.uleb() & _MASK)
    elif op in _UNARY:
        values.append(_UNARY[op](values.pop()) & _MASK)
    elif op in _BINARY:
        right, left = values.pop(), values.pop()
        values.append(_BINARY[op](left, right) & _MASK)
    elif op in (_BRA, _SKIP):
        distance = code.unpack(_I16)
        if op == _SKIP or values.pop():
            code.at += distance
    elif op != _NOP:
        _reorder(op, code, values)


def _reorder(op: int, code: DwarfBytes, values: list[int]) -> None:
    """The operations that copy or move values of the stack."""
    if op == _DUP:
        values.append(values[-1])
    elif op == _DROP:
        values.pop()
    elif op == _OVER:
        values.append(values[-2])
    elif op == _PICK:
        values.append(values[-1 - code.byte()])
    elif op == _SWAP:
        values[-2:] = values[-1], values[-2]
    elif op == _ROT:
        values[-3:] = values[-1], values[-3], values[-2]
    else:
        raise Malformed
