"""Call frame instructions (DWARF 5, section 6.4.2): how to find the caller's registers at an address."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Literal

from opskit.proc.elf.dwarf_bytes import DwarfBytes, Malformed
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Union

    Value = Union[int, bytes]

# What a register's value in the caller is. offset: saved at CFA + value; value_offset: CFA + value itself; expression,
# value_expression: the same by an expression that starts with the CFA; register: in another register; same: kept;
# undefined: lost, or, of the return address, there is no caller.
How = Literal["undefined", "same", "offset", "value_offset", "register", "expression", "value_expression"]

_MOST_REMEMBERED, _MOST_REGISTERS = 64, 256
_U8, _U16, _U32, _U64 = struct.Struct("<B"), struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<Q")
_ADVANCES = {0x02: _U8, 0x03: _U16, 0x04: _U32, 0x1D: _U64}


class Cie(NamedTuple):
    """A common information entry. `encoding`: of the pointers in its FDEs; `return_address`: the number of that register."""

    code_factor: int
    data_factor: int
    return_address: int
    encoding: int
    is_augmented: bool
    is_signal: bool
    program: bytes


class Rule(NamedTuple):
    """One row: the canonical frame address (CFA), a register plus an offset or an expression, and where registers are saved.

    `is_signal`: the frame of a signal handler's return; its caller was interrupted, and did not call.
    """

    register: int
    offset: int
    expression: bytes | None
    saved: Mapping[int, tuple[How, Value]]
    return_address: int
    is_signal: bool


class _State:
    def __init__(self) -> None:
        self.register, self.offset, self.expression = -1, 0, None  # type: int, int, bytes | None
        self.saved: dict[int, tuple[How, Value]] = {}
        self.initial: dict[int, tuple[How, Value]] = {}
        self.remembered: list[tuple[int, int, bytes | None, dict[int, tuple[How, Value]]]] = []
        self.location = 0


def run(cie: Cie, program: bytes, begin: int, address: int, pointer: Callable[[DwarfBytes], int]) -> Rule:
    """The row at an address of the function that begins at `begin`. `pointer` reads one of DW_CFA_set_loc. Raises Malformed."""
    state = _State()
    state.location = begin
    _execute(DwarfBytes(cie.program), state, cie, address, pointer)
    state.initial, state.location = dict(state.saved), begin
    _execute(DwarfBytes(program), state, cie, address, pointer)
    return Rule(
        state.register, state.offset, state.expression, dict(state.saved), cie.return_address, cie.is_signal
    )  # fmt: skip


def _execute(code: DwarfBytes, state: _State, cie: Cie, address: int, pointer: Callable[[DwarfBytes], int]) -> None:
    end, factor = len(code.data), cie.data_factor
    while code.at < end:
        op = code.byte()
        low, high = op & 0x3F, op & 0xC0
        if high == 0x80:  # offset
            state.saved[low] = ("offset", code.uleb() * factor)
        elif high == 0x40 or op in _ADVANCES or op == 0x01:
            if high == 0x40:  # advance_loc
                location = state.location + low * cie.code_factor
            elif op == 0x01:  # set_loc
                location = pointer(code)
            else:
                location = state.location + code.unpack(_ADVANCES[op]) * cie.code_factor
            if location > address:
                return
            state.location = location
        elif high == 0xC0:  # restore
            _restore(state, low)
        elif op != 0x00:
            _other(op, code, state, factor)


def _restore(state: _State, register: int) -> None:
    if register in state.initial:
        state.saved[register] = state.initial[register]
    else:
        state.saved.pop(register, None)


def _other(op: int, code: DwarfBytes, state: _State, factor: int) -> None:
    """The instructions that take no operand in their first byte."""
    if 0x0C <= op <= 0x0F or op in (0x12, 0x13):
        _define_cfa(op, code, state, factor)
    elif op == 0x0A:  # remember_state
        if len(state.remembered) >= _MOST_REMEMBERED:
            raise Malformed
        state.remembered.append((state.register, state.offset, state.expression, dict(state.saved)))
    elif op == 0x0B:  # restore_state
        if not state.remembered:
            raise Malformed
        state.register, state.offset, state.expression, state.saved = state.remembered.pop()
    elif op == 0x2E:  # GNU_args_size
        code.uleb()
    elif op != 0x2D:  # GNU_window_save has no operand
        _define_register(op, code, state, factor)


def _define_cfa(op: int, code: DwarfBytes, state: _State, factor: int) -> None:
    if op == 0x0F:  # def_cfa_expression
        state.expression = code.block()
        return
    if op in (0x0C, 0x0D, 0x12):  # def_cfa, def_cfa_register, def_cfa_sf
        state.register = code.uleb()
    if op in (0x0C, 0x0E):  # def_cfa, def_cfa_offset
        state.offset = code.uleb()
    elif op in (0x12, 0x13):  # def_cfa_sf, def_cfa_offset_sf
        state.offset = code.sleb() * factor
    state.expression = None


def _define_register(op: int, code: DwarfBytes, state: _State, factor: int) -> None:
    register = code.uleb()
    if register >= _MOST_REGISTERS:
        raise Malformed
    if op == 0x05:  # offset_extended
        state.saved[register] = ("offset", code.uleb() * factor)
    elif op == 0x06:  # restore_extended
        _restore(state, register)
    elif op == 0x07:
        state.saved[register] = ("undefined", 0)
    elif op == 0x08:
        state.saved[register] = ("same", 0)
    elif op == 0x09:
        state.saved[register] = ("register", code.uleb())
    elif op == 0x10:
        state.saved[register] = ("expression", code.block())
    elif op == 0x11:  # offset_extended_sf
        state.saved[register] = ("offset", code.sleb() * factor)
    elif op in (0x14, 0x15):  # val_offset, val_offset_sf
        state.saved[register] = ("value_offset", (code.uleb() if op == 0x14 else code.sleb()) * factor)
    elif op == 0x16:
        state.saved[register] = ("value_expression", code.block())
    elif op == 0x2F:  # GNU_negative_offset_extended
        state.saved[register] = ("offset", -code.uleb() * factor)
    else:
        raise Malformed
