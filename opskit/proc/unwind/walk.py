"""Walk a sampled stack to the entry of its thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.unwind.cursor import PC, REGISTERS, RSP, Cursor, Stack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.proc.unwind.cursor import End, Frame, Unwinder

_MOST_FRAMES = 2048


def walk(
    registers: Sequence[int | None], stack: bytes, unwinders: Sequence[Unwinder], kernel: Sequence[Frame] = ()
) -> Stack:
    """The frames of a sample, leaf first, below those of the kernel. Each step goes up the stack, so that every walk ends.

    The first unwinder that owns a pc unwinds it. An empty `registers` (no user code ran) gives the kernel's frames alone.
    """
    if len(registers) < REGISTERS or registers[PC] is None:
        return Stack(tuple(kernel), "none")
    cursor = Cursor(registers, stack)
    frames = cursor.frames
    frames += kernel
    pc, sp = cursor.registers[PC], cursor.registers[RSP]
    while True:
        for owner in unwinders:
            if pc is not None and owner.owns(pc):
                break
        else:
            cursor.stop("rule")
            break
        if not owner.step(cursor):
            break
        below, before = sp, pc
        pc, sp = cursor.registers[PC], cursor.registers[RSP]
        if sp is None or below is None or sp < below or (sp == below and pc == before):
            cursor.stop("torn")
            break
        cursor.is_leaf = False
        if len(frames) > _MOST_FRAMES:
            cursor.stop("deep")
            break
    end: End = "heap" if cursor.has_gap and cursor.end == "root" else cursor.end
    return Stack(tuple(frames), end, cursor.virtual)
