"""Unwind Java code from outside: interpreted and compiled frames, stubs, and the entry from native code.

A compiled frame has a fixed size, an interpreted one begins at rbp. A return address is only followed where the tables support it:
a call precedes it in a known blob, or it is the interpreter's. Else the stack is incomplete.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from opskit.errors import NotSupported
from opskit.jvm.unwind.code_index import MOST_ENTRIES, UNKNOWN, CodeIndex, is_continuation, return_to
from opskit.jvm.unwind.instructions import EPILOGUE_BYTES, frame_state
from opskit.jvm.unwind.interpreted import Interpreted
from opskit.jvm.unwind.stubs import Stubs
from opskit.proc.elf.file import X86_64
from opskit.proc.unwind.cursor import PC, R12, R13, R14, R15, RBP, RBX, RSP, Frame
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.jvm.memory.code_cache import CodeBlob
    from opskit.jvm.memory.nmethods import NMethod
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.jvm.unwind.instructions import FrameState
    from opskit.proc.memory import Memory
    from opskit.proc.unwind.cursor import Cursor

_TWO_WORDS = Struct("<QQ").unpack_from
_CALL_STUB_WORDS = Struct("<6Q")  # from [rbp - 88] on: r15, r14, r13, r12, rbx, the JavaCallWrapper
_BELOW_CALL_STUB = 88
_MOST_HEAD_BYTES = 4096
_SMALLEST_FRAME = 16
_MOST_PUSHED_BYTES = 128
_MACHINE_AT = 18  # in the ELF header of libjvm
_FREED = Frame("[freed Java method]", "stub")


class Code(NamedTuple):
    """What is known of a pc. `step`: how to unwind it; None: a built frame of `size` bytes, whose caller is Java code."""

    frames: tuple[Frame, ...]
    size: int
    step: Callable[[Cursor, Code], bool] | None = None
    state: FrameState = "built"
    blob: CodeBlob | None = None


class JavaUnwinder:
    """Unwinds what HotSpot generates. `enter_continuation`: goes on where a virtual thread's frames are in the heap."""

    def __init__(self, structs: VmStructs, memory: Memory) -> None:
        """Raise NotSupported for a layout that the tables do not describe."""
        self.memory, self.index = memory, CodeIndex(structs, memory)
        self.code, self.methods = self.index.cache, self.index.methods
        self.low, self.high = self.index.low, self.index.high
        self.is_interpreter = self.index.is_interpreter
        self.enter_continuation: Callable[[Cursor], bool] = lambda cursor: cursor.stop("torn")
        self._stubs, self._interpreted = Stubs(structs, self.index), Interpreted(self.index)
        self._leaves: dict[int, Code] = {}
        self._callers: dict[int, Code] = {}

    def owns(self, pc: int) -> bool:
        """Whether the pc is in the code cache."""
        return self.low <= pc < self.high

    def forget(self) -> None:
        """Compare all that is known with the JVM's memory before its next use; call it with each drain of the samples."""
        self.index.forget()
        self._interpreted.forget()
        self._stubs.forget()
        self._leaves.clear()
        self._callers.clear()

    def step(self, cursor: Cursor) -> bool:
        """Add the frames at the cursor, the inlined ones first, and go to the caller."""
        registers = cursor.registers
        pc = registers[PC]
        code = (self._leaves if cursor.signalled else self._callers).get(pc)  # type: ignore[arg-type]
        if code is None:
            code = self._learn(pc or 0, is_leaf=cursor.signalled)
        if code[2] is not None:
            return code[2](cursor, code)
        cursor.frames += code[0]
        above = (registers[RSP] or 0) + code[1]
        at = above - cursor.base - 16
        if not 0 <= at <= len(cursor.stack) - 16:
            return cursor.stop("dump" if at > 0 else "torn")
        registers[RBP], pc = _TWO_WORDS(cursor.stack, at)
        if not self.low <= pc < self.high:
            return cursor.stop("torn")
        registers[PC], registers[RSP] = pc, above
        return True

    def _learn(self, pc: int, *, is_leaf: bool) -> Code:
        known = self._leaves if is_leaf else self._callers
        if len(known) >= MOST_ENTRIES:
            known.clear()
        code = known[pc] = self._read(pc, is_leaf=is_leaf)
        return code

    def _read(self, pc: int, *, is_leaf: bool) -> Code:
        if self.is_interpreter(pc):
            return Code((), 0, self._step_interpreted)
        if pc == self.index.call_stub_return and not is_leaf:
            return Code((), 0, self._step_call_stub)
        found = self.index.find(pc)
        if found is None:
            return Code((), 0, self._step_unknown)
        blob, nmethod = found
        if nmethod is None:
            if not is_leaf and is_continuation(blob) and not self.index.follows_call(pc):
                return Code((), 0, self._step_continuation)
            step = self._stubs.step_of(blob, is_leaf=is_leaf)
            return Code(self._stubs.frames(blob, pc), blob.frame_bytes, step, blob=blob)
        # HotSpot unloads a compiled method before a class that its tables name.
        known: Code | None = nmethod.codes.get((pc, is_leaf))
        if known is not None:
            return known
        code = self._read_compiled(blob, nmethod, pc, is_leaf=is_leaf)
        if code.frames and all(frame.name != UNKNOWN for frame in code.frames):
            nmethod.codes[pc, is_leaf] = code
        return code

    def _read_compiled(self, blob: CodeBlob, nmethod: NMethod, pc: int, *, is_leaf: bool) -> Code:
        if is_leaf:
            return self._leaf(blob, nmethod, pc)
        if pc in nmethod.deopt_pcs:
            return Code((), nmethod.orig_pc_at, self._step_deoptimized, blob=blob)
        if not self.index.is_return(pc) or blob.frame_bytes < _SMALLEST_FRAME:
            return Code((), 0, self._step_unknown)
        return Code(self.index.frames(nmethod, pc, is_leaf=False), blob.frame_bytes)

    def _leaf(self, blob: CodeBlob, nmethod: NMethod, pc: int) -> Code:
        offset = pc - blob.begin
        complete = min(max(blob.frame_complete, 0), _MOST_HEAD_BYTES)
        head = self.memory.read(blob.begin, complete + 16) if offset < complete else b""
        around = self.memory.read(pc - 1, 1 + EPILOGUE_BYTES)
        state = frame_state(head, around, offset, blob.frame_bytes, complete)
        frames = self.index.frames(nmethod, pc, is_leaf=True)
        if state != "built" and blob.frame_bytes >= _SMALLEST_FRAME:
            frames = frames[-1:]  # the entry and the exit belong to no inlined method, whatever the next PcDesc says
        return Code(frames, blob.frame_bytes, self._step_leaf, state, blob)

    def _step_unknown(self, cursor: Cursor, _code: Code) -> bool:
        if cursor.is_leaf:  # its code was freed since the sample was taken
            cursor.frames.append(_FREED)
        return cursor.stop("torn")

    def _step_continuation(self, cursor: Cursor, _code: Code) -> bool:
        return self.enter_continuation(cursor)

    def _step_interpreted(self, cursor: Cursor, _code: Code) -> bool:
        return self._interpreted.step(cursor)

    def _step_leaf(self, cursor: Cursor, code: Code) -> bool:
        """A compiled method that was interrupted, perhaps while it built or left its frame."""
        cursor.frames += code.frames
        sp, bp = cursor.registers[RSP] or 0, cursor.registers[RBP]
        for state in dict.fromkeys((code.state, "built", "returning", "pushed")):
            if state in ("built", "unsaved"):
                above, link = sp + code.size, cursor.word(sp + code.size - 16) if state == "built" else bp
            else:
                above, link = (sp + 8, bp) if state == "returning" else (sp + 16, cursor.word(sp))
            pc = cursor.word(above - 8)
            if pc is None and state == code.state and cursor.is_beyond(above - 8):
                return cursor.stop("dump")
            if above > sp and self.index.is_return(pc):
                return return_to(cursor, pc or 0, above, link)
        # The code pushes what it needs.
        for above in range(sp + code.size + 8, sp + code.size + _MOST_PUSHED_BYTES + 8, 8) if code.size else ():
            pc = cursor.word(above - 8)
            if pc is not None and self.index.is_return(pc):
                return return_to(cursor, pc, above, cursor.word(above - 16))
        return cursor.stop("torn")

    def _step_deoptimized(self, cursor: Cursor, code: Code) -> bool:
        """A frame whose return address was replaced; the original one is in the frame."""
        address = (cursor.registers[RSP] or 0) + code.size
        pc, blob = cursor.word(address), code.blob
        if pc is None or blob is None or not blob.begin < pc <= blob.end:
            return cursor.stop("dump" if pc is None and cursor.is_beyond(address) else "torn")
        original = self._callers.get(pc) or self._learn(pc, is_leaf=False)
        if original.step is not None:
            return cursor.stop("torn")
        cursor.registers[PC] = pc
        return self.step(cursor)

    def _step_call_stub(self, cursor: Cursor, _code: Code) -> bool:
        """The frame in which native code calls Java: it holds all registers that the caller expects to keep."""
        registers = cursor.registers
        sp, bp = registers[RSP] or 0, registers[RBP] or 0
        at = bp - _BELOW_CALL_STUB - cursor.base
        if at < 0 or bp < sp or at + _BELOW_CALL_STUB + 16 > len(cursor.stack):
            return cursor.stop("dump" if bp > sp and cursor.is_beyond(bp + 8) else "torn")
        r15, r14, r13, r12, rbx, wrapper = _CALL_STUB_WORDS.unpack_from(cursor.stack, at)
        link, pc = _TWO_WORDS(cursor.stack, at + _BELOW_CALL_STUB)
        if wrapper <= bp or self.owns(pc):  # the wrapper is in the frame of JavaCalls::call_helper, above
            return cursor.stop("torn")
        registers[R15], registers[R14], registers[R13], registers[R12], registers[RBX] = r15, r14, r13, r12, rbx
        return return_to(cursor, pc, bp + 16, link)


def java_unwinder(structs: VmStructs, memory: Memory) -> JavaUnwinder:
    """The unwinder for a JVM. Raises NotSupported for one that another kind of CPU runs, also emulated, and for unknown layouts."""
    machine = memory.read(structs.libjvm + _MACHINE_AT, 2)
    if int.from_bytes(machine, "little") != X86_64:
        raise NotSupported("Java frames can be unwound from outside on x86-64 only")
    return JavaUnwinder(structs, memory)
