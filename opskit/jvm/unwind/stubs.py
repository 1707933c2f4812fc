"""Generated code that belongs to no Java method: its names and frames."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from opskit.jvm.memory.stub_descs import read_stub_descs
from opskit.jvm.unwind.code_index import is_last_sp, return_to
from opskit.proc.unwind.cursor import PC, R12, R13, R14, R15, RBP, RBX, RSP, Frame
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.jvm.memory.code_cache import CodeBlob
    from opskit.jvm.memory.stub_descs import StubDesc
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.jvm.unwind.code_index import CodeIndex
    from opskit.jvm.unwind.instructions import FrameState
    from opskit.jvm.unwind.java import Code
    from opskit.proc.unwind.cursor import Cursor

_HIGHEST = 1 << 64
_MOST_READS = 4
_LONGEST_FRAME = 4096
_ROUTINES, _UPCALL, _VTABLE = "StubRoutines", "upcall_stub", "vtable"
_FRAMELESS = ("adapter", _VTABLE, "inlinecache")  # in the names of blobs that jump to a method


_FRAMED = (b"\x55\x48\x8b\xec", b"\x55\x48\x89\xe5")  # push rbp; mov rbp, rsp
_POP_RBP, _RET = b"\x5d", b"\xc3"
_SMALLEST_FRAME, _MOST_ARGUMENT_BYTES = 16, 64


class _Return(NamedTuple):
    """A return address, where it is on the stack, the caller's rbp, and how far the frame is built if it is the right one."""

    pc: int
    at: int
    link: int | None
    state: FrameState


class Stubs:
    """The stubs of one JVM."""

    def __init__(self, structs: VmStructs, index: CodeIndex) -> None:
        self._structs, self._index = structs, index
        self._descs: list[StubDesc] = []
        self._reads_left, self._may_read = _MOST_READS, True

    def forget(self) -> None:
        """Read the names anew if a stub has none: those for C2 are generated late."""
        self._may_read = self._reads_left > 0

    def frames(self, blob: CodeBlob, pc: int) -> tuple[Frame, ...]:
        """The stub's frame."""
        if _VTABLE in blob.name:
            return (Frame("vtable or itable stub", "stub"),)
        desc = self._desc(blob, pc)
        return (Frame(desc.name if desc is not None else blob.name or "[stub]", "stub"),)

    def _desc(self, blob: CodeBlob | None, pc: int) -> StubDesc | None:
        """The stub at the pc, in a blob that has many. The list of all is read when it is needed."""
        if blob is None or not blob.name.startswith(_ROUTINES):
            return None
        at = bisect_right(self._descs, (pc, _HIGHEST)) - 1
        if at >= 0 and pc < self._descs[at].end:
            return self._descs[at]
        if not self._may_read:
            return None
        self._may_read, self._reads_left = False, self._reads_left - 1
        self._descs = read_stub_descs(self._structs, self._index.memory, self._index.low, self._index.high)
        return self._desc(blob, pc)

    def step_of(self, blob: CodeBlob, *, is_leaf: bool) -> Callable[[Cursor, Code], bool]:
        """How to unwind the blob. Code that jumps to a method has no frame."""
        if any(word in blob.name.lower() for word in _FRAMELESS):
            return self._step_frameless
        return self._step_upcall if blob.name.startswith(_UPCALL) and not is_leaf else self._step

    def _step(self, cursor: Cursor, code: Code) -> bool:
        """A stub: with a frame of a known size, with none, with one at rbp, or one whose end only a call of the stub shows."""
        cursor.frames += code.frames
        sp, leaf = cursor.registers[RSP] or 0, cursor.signalled
        found = self._find_return(cursor, list(self._places(cursor, code.size)), code.blob)
        if found is None:
            return cursor.stop("dump" if cursor.is_beyond(sp + max(code.size, 8) - 8) else "torn")
        return_to(cursor, found.pc, self._without_arguments(cursor, found), found.link)
        # The interpreter's registers are still those of the sample: it may be at a method's entry.
        cursor.signalled = leaf and self._index.is_interpreter(found.pc)
        return True

    def _step_upcall(self, cursor: Cursor, code: Code) -> bool:
        """The stub by which native code calls Java (java.lang.foreign): its frame is at rbp. It saves registers at places that no table has."""
        cursor.frames += code.frames
        registers = cursor.registers
        sp, bp = registers[RSP] or 0, registers[RBP] or 0
        pc = cursor.word(bp + 8)
        if not sp <= bp <= sp + _LONGEST_FRAME or pc is None:
            return cursor.stop("dump" if sp <= bp and cursor.is_beyond(bp + 8) else "torn")
        if self._index.low <= pc < self._index.high or not self._index.follows_call(pc):
            return cursor.stop("torn")
        registers[RBX] = registers[R12] = registers[R13] = registers[R14] = registers[R15] = None
        return return_to(cursor, pc, bp + 16, cursor.word(bp))

    def _step_frameless(self, cursor: Cursor, code: Code) -> bool:
        """An adapter or a stub on the way from a call to a method. An adapter may have moved the stack pointer, kept in r13."""
        sp, r13 = cursor.registers[RSP] or 0, cursor.registers[R13] or 0
        may_be_kept = sp < r13 <= sp + _LONGEST_FRAME and r13 & 7 == 0
        if cursor.signalled:  # the return address, and the stack pointer of the caller
            places = [(sp, sp + 8), *([(sp, r13), (r13 - 8, r13)] if may_be_kept else [])]
        else:  # it has called the JVM to change its caller's call, and kept the stack pointer before that
            places = [(r13, r13 + 8)] if may_be_kept else []
        found = [
            (pc, sender) for at, sender in places if (pc := cursor.word(at)) is not None and self._index.is_return(pc)
        ]
        if not found and is_last_sp(cursor, r13):
            found = [(self._index.interpreter, r13)]
        if not found:
            return cursor.stop("torn")
        cursor.frames += code.frames
        pc, sender = next((each for each in found if self._has_caller(cursor, *each)), found[0])
        return return_to(cursor, pc, sender, cursor.registers[RBP])

    def _has_caller(self, cursor: Cursor, pc: int, sp: int) -> bool:
        """Whether the compiled frame that begins at sp ends with a return address."""
        found = None if self._index.is_interpreter(pc) else self._index.find(pc)
        return found is not None and self._index.is_return(cursor.word(sp + found[0].frame_bytes - 8))

    def _places(self, cursor: Cursor, size: int) -> Iterator[_Return]:
        """The words that may be the stub's return address."""
        sp, bp = cursor.registers[RSP] or 0, cursor.registers[RBP] or 0
        places: list[tuple[FrameState, int, int | None]] = []
        if cursor.signalled:
            places += [("returning", sp, bp), ("pushed", sp + 8, cursor.word(sp))]
        if size >= _SMALLEST_FRAME:
            places.append(("built", sp + size - 8, cursor.word(sp + size - 16)))
        elif not cursor.signalled:  # it may have pushed a word before its call
            places += [("returning", sp, bp), ("returning", sp + 8, bp)]
        if sp <= bp <= sp + _LONGEST_FRAME and bp & 7 == 0:
            places.append(("unsaved", bp + 8, cursor.word(bp)))
        for state, at, link in places:
            pc = cursor.word(at)
            if pc is not None:
                yield _Return(pc, at, link, state)

    def _without_arguments(self, cursor: Cursor, found: _Return) -> int:
        """The caller's stack pointer: C1 pushes arguments for some stubs, above which its frame begins."""
        above, caller = found.at + 8, None if self._index.is_interpreter(found.pc) else self._index.find(found.pc)
        if caller is None or caller[1] is None:
            return above
        places = range(above, above + _MOST_ARGUMENT_BYTES, 8)
        frame = caller[0].frame_bytes
        return next((sp for sp in places if self._index.is_return(cursor.word(sp + frame - 8))), above)

    def _find_return(self, cursor: Cursor, places: Sequence[_Return], blob: CodeBlob | None) -> _Return | None:
        """The return address. The best proof is a call of this very stub before the pc, and that its frame fits."""
        leaf_pc = cursor.registers[PC] or 0
        returns = [each for each in places if self._index.is_return(each.pc)]
        if returns:
            best = max(returns, key=lambda each: self._proof(each, blob, leaf_pc))
            if any(self._proof(best, blob, leaf_pc)[:3]) or not self._index.is_libjvm_return(places[0].pc):
                return best
            return places[0]
        sp, bp = cursor.registers[RSP] or 0, cursor.registers[RBP]
        for at in range(sp + 16, sp + _LONGEST_FRAME, 8):
            pc = cursor.word(at)
            if pc is None:
                break
            if self._index.is_return(pc) and self._index.called_stub(pc, blob, leaf_pc):
                return _Return(pc, at, bp, "built")
        return next((each for each in places if self._index.is_libjvm_return(each.pc)), None)

    def _proof(self, found: _Return, blob: CodeBlob | None, leaf_pc: int) -> tuple[int, bool, int, bool]:
        """How well a return address is proven; more is better. Of an indirect call the target is unknown."""
        target, desc = self._index.called_stub(found.pc, blob, leaf_pc), self._desc(blob, leaf_pc)
        begin = desc.begin if desc is not None else target
        fits = begin and self._state(begin, leaf_pc) in ("built", found.state)
        return target if fits else 0, bool(fits), target, self._index.follows_call(found.pc)

    def _state(self, begin: int, leaf_pc: int) -> FrameState:
        """How far the frame of the stub that begins there is built: `unsaved`, it is at rbp; `built`: it has no such frame."""
        head, at_pc = self._index.memory.read(begin, 4), self._index.memory.read(leaf_pc, 1)
        if head not in _FRAMED:
            return "built"
        if leaf_pc == begin or at_pc == _RET:
            return "returning"
        return "pushed" if leaf_pc == begin + 1 or at_pc == _POP_RBP else "unsaved"
