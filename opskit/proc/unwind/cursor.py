"""A sampled stack and a place in it, shared by those who unwind native and Java frames.

A sample has the registers at one moment and a copy of the stack from the stack pointer up. An Unwinder adds the frames of the
function at the cursor's pc, and restores the caller's registers from that copy. It never reads the live stack, which goes on.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Literal, Protocol

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

# Of a Java method: interpreted, compiled by C1 (c1) or C2 (compiled), inlined into the frame below. `stub`: generated code
# without a method.
FrameKind = Literal["interpreted", "c1", "compiled", "inlined", "stub", "native", "kernel"]

# Why a walk ended. root: at the entry of a thread. dump: where the copied part of the stack ends. rule: no unwind information
# for this code. torn: what was read makes no sense, or changed meanwhile. deep: too many frames. none: no user registers.
# heap: at the root, but some frames of a virtual thread were in the heap and have changed meanwhile.
End = Literal["root", "dump", "rule", "torn", "deep", "none", "heap"]

# DWARF numbers of x86-64 (System V ABI, figure 3.36); 16 is the return address, here the pc.
RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15, PC = range(17)
REGISTERS = 17
_WORD = Struct("<Q").unpack_from


class Frame(NamedTuple):
    """One frame. `name`: package.Class.method or a symbol, `[libc.so.6]` without one. `source`, `line`: of Java code."""

    name: str
    kind: FrameKind
    source: str | None = None
    line: int | None = None


class Stack(NamedTuple):
    """A walked stack, leaf first. `virtual`: the name or `#id` of the virtual thread that ran; None: no virtual thread."""

    frames: tuple[Frame, ...]
    end: End
    virtual: str | None = None


class Cursor:
    """A place in a sampled stack. `registers`: by DWARF number, None where unknown. `is_leaf`: nothing was unwound yet.

    `signalled`: the frame was interrupted, so that its pc is no return address (the leaf, and below a signal handler).
    `has_gap`: a frame stands for others that could not be read: those of a virtual thread in the heap.
    """

    __slots__ = ("base", "end", "frames", "has_gap", "is_leaf", "registers", "signalled", "stack", "virtual")

    def __init__(self, registers: Sequence[int | None], stack: bytes) -> None:
        """`stack`: the bytes from the stack pointer up."""
        self.registers = [*registers]
        self.base, self.stack = registers[RSP] or 0, stack
        self.is_leaf = self.signalled = True
        self.frames: list[Frame] = []
        self.end: End = "torn"
        self.virtual: str | None = None
        self.has_gap = False

    def word(self, address: int) -> int | None:
        """Eight bytes of the copied stack; None outside of it."""
        at = address - self.base
        if 0 <= at <= len(self.stack) - 8:
            return _WORD(self.stack, at)[0]  # type: ignore[no-any-return]
        return None

    def is_beyond(self, address: int) -> bool:
        """Whether the address is above the copied part: the walk then ends with `dump`, not with `torn`."""
        return address > self.base + len(self.stack) - 8

    def stop(self, end: End) -> bool:
        """End the walk; False, for `return cursor.stop("rule")` in a step."""
        self.end = end
        return False


class Unwinder(Protocol):
    """Unwinds the code of one kind."""

    def owns(self, pc: int) -> bool:
        """Whether it can unwind this code."""

    def step(self, cursor: Cursor) -> bool:
        """Add the frames at the cursor and go to the caller. False: the walk ends, and cursor.end is set."""


class Modules(Protocol):
    """The names of native code."""

    def name(self, pc: int) -> str:
        """The symbol at the pc, or `[library.so]`, or `[unknown]`."""
