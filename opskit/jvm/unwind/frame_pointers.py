"""Java frames by frame pointers (-XX:+PreserveFramePointer), with the names of a perf map that the JVM has written.

    0x00007f2f808ca080 0x00000000000000e0 long Workload.work(long)        compiled by C1 or C2
    0x00007f2f8033fb00 0x0000000000018ae8 Interpreter                     all interpreted methods
    0x00007f2f80341c00 0x0000000000000050 I2C/C2I adapters                a stub

The map has no inlined methods. Code that was compiled after the map was written has its address as its name.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from opskit.proc.unwind.cursor import PC, RBP, REGISTERS, RSP, Frame
from opskit.quantities import hexadecimal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.proc.unwind.cursor import Cursor
    from opskit.proc.unwind.modules import Modules

INTERPRETER = "Interpreter"
_MOST_FRAMES = 1 << 16
_ADDRESS = "0x"


class CompiledCode:
    """The symbols of a perf map, by address. `entries`: start: end, number of the line, name."""

    def __init__(self, entries: Mapping[int, tuple[int, int, str]]) -> None:
        self._entries = entries
        self._starts = sorted(entries)

    def frame(self, pc: int) -> Frame | None:
        """The frame of the code at a pc; None where the map has none."""
        at = bisect_right(self._starts, pc) - 1
        if at < 0:
            return None
        end, _, name = self._entries[self._starts[at]]
        return frame_of(name) if pc < end else None


def frame_of(symbol: str) -> Frame:
    """The frame of a symbol: `int java.lang.String.hashCode()` is a method, the others are stubs."""
    if symbol == INTERPRETER:
        return Frame(INTERPRETER, "interpreted")
    method = symbol.partition("(")[0].rpartition(" ")[2]
    return Frame(method, "compiled") if symbol.endswith(")") and "." in method else Frame(symbol, "stub")


def named_later(frame: Frame, code: CompiledCode) -> Frame:
    """A frame that has an address as its name, named by a later map."""
    if frame.kind != "stub" or not frame.name.startswith(_ADDRESS):
        return frame
    address = hexadecimal(frame.name[len(_ADDRESS) :])
    return (code.frame(address) if address is not None else None) or frame


class FramePointers:
    """An Unwinder of the code that no file has."""

    def __init__(self, modules: Modules, code: CompiledCode) -> None:
        self._modules, self._code = modules, code
        self._frames: dict[int, Frame] = {}

    def owns(self, pc: int) -> bool:
        """Whether the code is generated."""
        module = self._modules.find(pc)
        return module is not None and not module.is_file

    def step(self, cursor: Cursor) -> bool:
        """Add the frame at the cursor and go to the frame below the frame pointer. A leaf in its prologue loses its caller."""
        registers = cursor.registers
        pc, sp, bp = registers[PC] or 0, registers[RSP], registers[RBP]
        cursor.frames.append(self._frame(pc if cursor.signalled else pc - 1))
        cursor.signalled = False
        if sp is None or bp is None or bp < sp or bp % 8:
            return cursor.stop("rule")
        back, below = cursor.word(bp + 8), cursor.word(bp)
        if back is None or below is None:
            return cursor.stop("dump" if cursor.is_beyond(bp + 8) else "torn")
        registers[:] = [None] * REGISTERS
        registers[PC], registers[RSP], registers[RBP] = back, bp + 16, below
        return True if back else cursor.stop("root")

    def _frame(self, at: int) -> Frame:
        frame = self._frames.get(at)
        if frame is None:
            if len(self._frames) >= _MOST_FRAMES:
                self._frames.clear()
            frame = self._frames[at] = self._code.frame(at) or Frame(f"{_ADDRESS}{at:x}", "stub")
        return frame
