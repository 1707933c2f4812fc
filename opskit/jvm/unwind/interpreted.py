"""Interpreted frames: words at fixed places around rbp (cpu/x86/frame_x86.hpp), built word by word at a method's entry."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from opskit.jvm.unwind.code_index import MOST_ENTRIES, is_last_sp, return_to
from opskit.proc.unwind.cursor import R13, RBP, RBX, RSP, Frame

if TYPE_CHECKING:
    from opskit.jvm.unwind.code_index import CodeIndex
    from opskit.proc.unwind.cursor import Cursor

# From [rbp - 64] on: the bytecode's address (in JDK 8 one word further up), …, method, last sp, sender's sp; rbp, return address.
_INTERPRETED = Struct("<10Q")
_BELOW_RBP = 64
_MOST_ARGUMENT_BYTES = 4096


class Interpreted:
    """Unwinds the interpreter."""

    def __init__(self, index: CodeIndex) -> None:
        self._index, self._methods = index, index.methods
        self._frames: dict[tuple[int, int], tuple[Frame, ...]] = {}

    def forget(self) -> None:
        """Read methods anew before their next use."""
        self._frames.clear()

    def step(self, cursor: Cursor) -> bool:
        """Add the frame of an interpreted method, and go to its caller."""
        registers = cursor.registers
        sp, bp = registers[RSP] or 0, registers[RBP] or 0
        at = bp - _BELOW_RBP - cursor.base
        if cursor.signalled and self._step_entry(cursor, sp, bp):
            return True
        if not 0 <= at <= len(cursor.stack) - _INTERPRETED.size:
            return cursor.stop("dump" if at > 0 and bp > sp and cursor.is_beyond(bp + 8) and bp & 7 == 0 else "torn")
        bcp, jdk8_bcp, _, _, _, method, _, sender, link, pc = _INTERPRETED.unpack_from(cursor.stack, at)
        if cursor.signalled:
            bcp = self._leaf_bcp(method, registers[R13], bcp)
        key = (method, bcp)
        frames = self._frames.get(key)
        if frames is None:
            frames, is_key = self._read_interpreted(method, bcp, jdk8_bcp)
            if is_key:
                if len(self._frames) >= MOST_ENTRIES:
                    self._frames.clear()
                self._frames[key] = frames
        if not frames or not bp < sender or not self._index.low <= pc < self._index.high:
            return cursor.stop("torn")
        cursor.frames += frames
        return return_to(cursor, pc, sender, link)

    def _leaf_bcp(self, address: int, r13: int | None, saved: int) -> int:
        """The interpreter keeps the bytecode's address in r13, and saves it before calls only."""
        method = self._methods.get(address)
        return r13 if r13 is not None and method is not None and method.begin <= r13 < method.end else saved

    def _read_interpreted(self, address: int, bcp: int, jdk8_bcp: int) -> tuple[tuple[Frame, ...], bool]:
        """The frame, none where no method is; whether it is that of each frame with this method and `bcp`."""
        method = self._methods.get(address)
        if method is None:
            return (), True
        found = next((each for each in (bcp, jdk8_bcp) if method.begin <= each < method.end), None)
        line = method.line(found - method.begin) if found is not None else None
        return (Frame(method.name, "interpreted", method.source, line),), found in (bcp, None)

    def _step_entry(self, cursor: Cursor, sp: int, bp: int) -> bool:
        """The entry of a method, whose frame is not built yet: rbx is the method, r13 the stack pointer of the caller at first."""
        address, sender = cursor.registers[RBX], cursor.registers[R13]
        method = self._methods.get(address) if address is not None else None
        if method is None or sender is None:
            return False
        if sp <= bp < sp + _BELOW_RBP:  # its fixed part is being pushed
            pc, link = cursor.word(bp + 8), cursor.word(bp)
            pushed = cursor.word(bp - 8) if bp > sp else sender
            found = (pc, pushed, link) if pushed is not None and pushed > bp and self._index.is_return(pc) else None
        elif not sp < sender <= sp + _MOST_ARGUMENT_BYTES or sender in (cursor.word(bp - 8), bp):
            return False
        else:
            found = self._entry_return(cursor, sp, sender), sender, bp
        if found is None or found[0] is None:
            return False
        cursor.frames.append(Frame(method.name, "interpreted", method.source, method.line(0)))
        return return_to(cursor, found[0], found[1], found[2])

    def _entry_return(self, cursor: Cursor, sp: int, sender: int) -> int | None:
        """The return address at a method's entry: on its stack, or proven by an interpreted caller's last sp."""
        for at in (sender - 8, sp, sp + 8):
            pc = cursor.word(at)
            if self._index.is_return(pc):
                return pc
        return self._index.interpreter if is_last_sp(cursor, sender) else None
