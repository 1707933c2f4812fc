"""Whether an address is one that a call would return to, by the instruction before it (Intel SDM, volume 2, CALL)."""

from __future__ import annotations

_LONGEST = 8
_NEAR = 0xE8
_INDIRECT = 0xFF


def ends_with_call(code: bytes) -> bool:
    """Whether the last bytes can be a call: relative, or through a register or memory (x86-64)."""
    code = code[-_LONGEST:]
    size = len(code)
    if size >= 5 and code[-5] == _NEAR:
        return True
    return any(
        size >= length
        and code[-length] == _INDIRECT
        and code[1 - length] & 0x38 == 0x10
        and _operand_bytes(code[1 - length :]) == length - 1
        for length in (2, 3, 4, 6, 7)
    )


def _operand_bytes(operand: bytes) -> int:
    """The length of a ModRM byte with what it needs: SIB byte, displacement."""
    mode, base = operand[0] >> 6, operand[0] & 7
    if mode == 3:
        return 1
    with_sib = base == 4
    if with_sib and len(operand) > 1 and mode == 0 and operand[1] & 7 == 5:
        return 6
    displacement = 4 if mode == 2 or (mode == 0 and base == 5) else 1 if mode == 1 else 0
    return 1 + with_sib + displacement
