"""Unwind Java code from outside: interpreted and compiled frames, stubs, and the entry from native code.

A compiled frame has a fixed size, an interpreted one begins at rbp (cpu/x86/frame_x86.hpp). A return address is only followed where
the tables support it: a call precedes it in a known blob, or it is the interpreter's. Else the stack is incomplete.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from opskit.errors import NotSupported
from opskit.jvm.memory.code_cache import CodeCache
from opskit.jvm.memory.methods import Methods
from opskit.jvm.memory.nmethods import NAMES, NMethod, NMethods, read_pointer
from opskit.jvm.memory.vmstructs import read_vmstructs
from opskit.jvm.unwind.instructions import CALL_BYTES, EPILOGUE_BYTES, call_target, follows_call, frame_state
from opskit.jvm.unwind.stubs import Stubs
from opskit.proc.files.maps import find_mapping
from opskit.proc.memory import i32, u64
from opskit.proc.unwind.cursor import PC, R12, R13, R14, R15, RBP, RBX, RSP, Frame
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.jvm.memory.code_cache import CodeBlob
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.jvm.unwind.instructions import FrameState
    from opskit.proc.fs import ProcFS
    from opskit.proc.memory import Memory, ProcessMemory
    from opskit.proc.unwind.cursor import Cursor, FrameKind

_TWO_WORDS = Struct("<QQ").unpack_from
_INTERPRETED = Struct(
    "<10Q"
)  # from [rbp - 64] on: bcp (7 words in JDK 8), …, method, last sp, sender sp; rbp, return address
_BELOW_RBP = 64
_CALL_STUB_WORDS = Struct("<6Q")  # from [rbp - 88] on: r15, r14, r13, r12, rbx, the JavaCallWrapper
_BELOW_CALL_STUB = 88
_MOST_ENTRIES = 200_000
_MOST_HEAD_BYTES = 4096
_LONGEST_STUB_FRAME = 4096
_MOST_ARGUMENT_BYTES = 8 * 256
_X86_64 = 62  # e_machine
_CONTINUATIONS = "continuation"  # in the name of the blob with the return barrier of virtual threads
_FRAMELESS = ("adapter", "vtable")  # in the names of blobs that jump to a method


class _Code(NamedTuple):
    """What is known of a pc. `step`: how to unwind it; None: a built frame of `size` bytes, whose caller is Java code."""

    frames: tuple[Frame, ...]
    size: int
    step: Callable[[Cursor, _Code], bool] | None = None
    state: FrameState = "built"
    blob: CodeBlob | None = None


class JavaUnwinder:
    """Unwinds what HotSpot generates. `enter_continuation`: goes on where a virtual thread's frames are in the heap."""

    def __init__(self, structs: VmStructs, memory: Memory) -> None:
        """Raise NotSupported for a layout that the tables do not describe."""
        self.memory = memory
        self.code = CodeCache(structs, memory)
        self.methods = Methods(structs, memory)
        self.nmethods = NMethods(structs, memory)
        self.enter_continuation: Callable[[Cursor], bool] = lambda cursor: cursor.stop("torn")
        self.low, self.high = self.code.low, self.code.high
        self._pointer = read_pointer(memory)
        self._call_stub_return = u64(memory, structs.at(("StubRoutines", "_call_stub_return_address"))) or 0
        queue = u64(memory, structs.at(("AbstractInterpreter", "_code"))) or 0
        self._interpreter = u64(memory, queue + structs.at(("StubQueue", "_stub_buffer"))) or 0
        limit = i32(memory, queue + structs.at(("StubQueue", "_buffer_limit"))) or 0
        self._interpreter_end = self._interpreter + max(limit, 0)
        if not self._call_stub_return or not self._interpreter:
            raise NotSupported("the JVM has no interpreter: it is still starting")
        self.stubs = Stubs(structs, memory)
        self._leaves: dict[int, _Code] = {}
        self._callers: dict[int, _Code] = {}
        self._returns: dict[int, bool] = {}
        self._blobs: dict[int, tuple[CodeBlob, NMethod | None]] = {}
        self._checked: dict[int, tuple[CodeBlob, NMethod | None] | None] = {}
        self._headers: dict[int, int] = {}
        self._interpreted_frames: dict[tuple[int, int], tuple[Frame, ...]] = {}

    def owns(self, pc: int) -> bool:
        """Whether the pc is in the code cache."""
        return self.low <= pc < self.high

    def is_interpreter(self, pc: int) -> bool:
        """Whether the pc is in the interpreter."""
        return self._interpreter <= pc < self._interpreter_end

    def forget(self) -> None:
        """Compare all that is known with the JVM's memory before its next use; call it with each drain of the samples."""
        self.methods.forget()
        for cache in (self._leaves, self._callers, self._returns, self._checked, self._interpreted_frames):
            cache.clear()  # type: ignore[attr-defined]

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

    def _learn(self, pc: int, *, is_leaf: bool) -> _Code:
        known = self._leaves if is_leaf else self._callers
        if len(known) >= _MOST_ENTRIES:
            known.clear()
        code = known[pc] = self._read(pc, is_leaf=is_leaf)
        return code

    def _read(self, pc: int, *, is_leaf: bool) -> _Code:
        if self.is_interpreter(pc):
            return _Code((), 0, self._step_interpreted)
        if pc == self._call_stub_return and not is_leaf:
            return _Code((), 0, self._step_call_stub)
        found = self._find(pc)
        if found is None:
            return _Code((), 0, self._step_unknown)
        blob, nmethod = found
        if nmethod is None:
            if not is_leaf and _CONTINUATIONS in blob.name.lower() and not self._follows_call(pc):
                return _Code((), 0, self._step_continuation)
            is_frameless = any(word in blob.name.lower() for word in _FRAMELESS)
            step = self._step_frameless if is_frameless else self._step_stub
            return _Code(self.stubs.frames(blob, pc), blob.frame_bytes, step, blob=blob)
        if is_leaf:
            return self._leaf(blob, nmethod, pc)
        if pc in nmethod.deopt_pcs:
            return _Code((), nmethod.orig_pc_at, self._step_deoptimized, blob=blob)
        if not self._follows_call(pc) or blob.frame_bytes < 16:
            return _Code((), 0, self._step_unknown)
        return _Code(self._frames(nmethod, pc, is_leaf=False), blob.frame_bytes)

    def _leaf(self, blob: CodeBlob, nmethod: NMethod, pc: int) -> _Code:
        offset = pc - blob.begin
        complete = min(max(blob.frame_complete, 0), _MOST_HEAD_BYTES)
        head = self.memory.read(blob.begin, complete + 16) if offset < complete else b""
        around = self.memory.read(pc - 1, 1 + EPILOGUE_BYTES)
        state = frame_state(head, around, offset, blob.frame_bytes, complete)
        return _Code(self._frames(nmethod, pc, is_leaf=True), blob.frame_bytes, self._step_leaf, state, blob)

    def _find(self, pc: int) -> tuple[CodeBlob, NMethod | None] | None:
        """The blob at the pc, and its compiled method; both are compared with the memory once after each `forget`."""
        header = self._headers.get(pc)
        if header is not None:
            if header not in self._checked:
                self._checked[header] = self._compare(header)
            found = self._checked[header]
            if found is not None and found[0].begin <= pc <= found[0].end:
                return found
        blob = self.code.find(pc)
        if blob is None:
            return None
        known = self._checked.get(blob.header)
        if known is None or known[0] != blob:
            known = self._checked[blob.header] = self._compare(blob.header, blob)
        if known is not None:
            if len(self._headers) >= _MOST_ENTRIES:
                self._headers.clear()
                self._blobs.clear()
            self._headers[pc] = blob.header
        return known

    def _compare(self, header: int, blob: CodeBlob | None = None) -> tuple[CodeBlob, NMethod | None] | None:
        blob = blob or self.code.read(header)
        if blob is None:
            return None
        known = self._blobs.get(header)
        if known is not None and known[0] == blob and (known[1] is None or self.nmethods.is_same(known[1], blob)):
            return known
        nmethod = self.nmethods.read(blob) if blob.name in NAMES else None
        if nmethod is None and blob.name in NAMES:
            return None
        found = self._blobs[header] = blob, nmethod
        return found

    def _frames(self, nmethod: NMethod, pc: int, *, is_leaf: bool) -> tuple[Frame, ...]:
        """The inlined methods at the pc and the compiled one; that one alone where the tables say no more."""
        outermost: FrameKind = "c1" if nmethod.is_c1 else "compiled"
        scopes = nmethod.scopes(pc, not is_leaf, self.methods.codings, self._pointer) or [(nmethod.method, -1)]
        return tuple(
            self._frame(method, bci, "inlined" if number < len(scopes) else outermost)
            for number, (method, bci) in enumerate(scopes, 1)
        )

    def _frame(self, address: int, bci: int, kind: FrameKind) -> Frame:
        method = self.methods.get(address)
        if method is None:
            return Frame("[unknown Java method]", kind)
        return Frame(method.name, kind, method.source, method.line(bci) if bci >= 0 else None)

    def _is_return(self, pc: int | None) -> bool:
        """Whether Java code or the call stub may be returned to there."""
        if pc is None or not self.low <= pc < self.high:
            return False
        known = self._returns.get(pc)
        if known is None:
            if len(self._returns) >= _MOST_ENTRIES:
                self._returns.clear()
            known = self._returns[pc] = self._read_return(pc)
        return known

    def _read_return(self, pc: int) -> bool:
        if self.is_interpreter(pc) or pc == self._call_stub_return:
            return True
        found = self._find(pc)
        if found is None:
            return False
        blob, nmethod = found
        if nmethod is not None and pc in nmethod.deopt_pcs:
            return True
        return self._follows_call(pc) or (nmethod is None and _CONTINUATIONS in blob.name.lower())

    def _follows_call(self, pc: int) -> bool:
        return follows_call(self.memory.read(pc - CALL_BYTES, CALL_BYTES))

    def _go(self, cursor: Cursor, pc: int, sp: int, bp: int | None) -> bool:
        registers = cursor.registers
        registers[PC], registers[RSP], registers[RBP] = pc, sp, bp
        cursor.signalled = False
        return True

    def _step_unknown(self, cursor: Cursor, _code: _Code) -> bool:
        return cursor.stop("torn")

    def _step_continuation(self, cursor: Cursor, _code: _Code) -> bool:
        return self.enter_continuation(cursor)

    def _step_leaf(self, cursor: Cursor, code: _Code) -> bool:
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
            if above > sp and self._is_return(pc):
                return self._go(cursor, pc or 0, above, link)
        return cursor.stop("torn")

    def _step_deoptimized(self, cursor: Cursor, code: _Code) -> bool:
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

    def _step_interpreted(self, cursor: Cursor, _code: _Code) -> bool:
        registers = cursor.registers
        sp, bp = registers[RSP] or 0, registers[RBP] or 0
        at = bp - _BELOW_RBP - cursor.base
        if cursor.signalled and self._step_entry(cursor, sp, bp):
            return True
        if not 0 <= at <= len(cursor.stack) - _INTERPRETED.size:
            return cursor.stop("dump" if at > 0 and bp > sp and cursor.is_beyond(bp + 8) and bp & 7 == 0 else "torn")
        bcp, newer_bcp, _, _, _, method, _, sender, link, pc = _INTERPRETED.unpack_from(cursor.stack, at)
        if cursor.signalled:
            bcp = self._leaf_bcp(method, registers[R13], bcp)
        key = (method, bcp)
        frames = self._interpreted_frames.get(key)
        if frames is None:
            frames = self._read_interpreted(method, bcp, newer_bcp)
            if len(self._interpreted_frames) >= _MOST_ENTRIES:
                self._interpreted_frames.clear()
            self._interpreted_frames[key] = frames
        if not frames or not bp < sender or not self.low <= pc < self.high:
            return cursor.stop("torn")
        cursor.frames += frames
        return self._go(cursor, pc, sender, link)

    def _leaf_bcp(self, address: int, r13: int | None, saved: int) -> int:
        """The interpreter keeps the bytecode's address in r13, and saves it before calls only."""
        method = self.methods.get(address)
        return r13 if r13 is not None and method is not None and method.begin <= r13 < method.end else saved

    def _read_interpreted(self, address: int, bcp: int, newer_bcp: int) -> tuple[Frame, ...]:
        method = self.methods.get(address)
        if method is None:
            return ()
        found = next((each for each in (bcp, newer_bcp) if method.begin <= each < method.end), None)
        line = method.line(found - method.begin) if found is not None else None
        return (Frame(method.name, "interpreted", method.source, line),)

    def _step_entry(self, cursor: Cursor, sp: int, bp: int) -> bool:
        """The entry of a method, whose frame is not built yet: rbx is the method, r13 the stack pointer of the caller at first."""
        address, sender = cursor.registers[RBX], cursor.registers[R13]
        method = self.methods.get(address) if address is not None else None
        if method is None or sender is None:
            return False
        if sp <= bp < sp + _BELOW_RBP:  # its fixed part is being pushed
            pc, link = cursor.word(bp + 8), cursor.word(bp)
            pushed = cursor.word(bp - 8) if bp > sp else sender
            found = (pc, pushed, link) if pushed is not None and pushed > bp and self._is_return(pc) else None
        elif not sp < sender <= sp + _LONGEST_STUB_FRAME or sender in (cursor.word(bp - 8), bp):
            return False
        else:
            found = self._entry_return(cursor, sp, sender), sender, bp
        if found is None or found[0] is None:
            return False
        cursor.frames.append(Frame(method.name, "interpreted", method.source, method.line(0)))
        return self._go(cursor, found[0], found[1], found[2])

    def _entry_return(self, cursor: Cursor, sp: int, sender: int) -> int | None:
        """The return address at a method's entry: on its stack, or proven by an interpreted caller's last sp."""
        for at in (sender - 8, sp, sp + 8):
            pc = cursor.word(at)
            if self._is_return(pc):
                return pc
        bp = cursor.registers[RBP] or 0
        last = cursor.word(bp - 16)  # absolute, or in words from rbp since JDK 21
        return self._interpreter if last in (sender, (sender - bp >> 3) & (1 << 64) - 1) else None

    def _step_call_stub(self, cursor: Cursor, _code: _Code) -> bool:
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
        return self._go(cursor, pc, bp + 16, link)

    def _step_stub(self, cursor: Cursor, code: _Code) -> bool:
        """A stub: with a frame of a known size, with none, with one at rbp, or one that its own call tells the end of."""
        cursor.frames += code.frames
        sp, bp = cursor.registers[RSP] or 0, cursor.registers[RBP] or 0
        leaf, size = cursor.signalled, code.size
        places = [(sp + size - 8, cursor.word(sp + size - 16))] if size >= 16 else []
        if leaf:
            places = [(sp, bp), (sp + 8, cursor.word(sp)), *places]
        if sp <= bp <= sp + _LONGEST_STUB_FRAME and bp & 7 == 0:
            places.append((bp + 8, cursor.word(bp)))
        found = self._stub_return(cursor, places, code.blob)
        if found is None:
            return cursor.stop("dump" if cursor.is_beyond(sp + max(size, 8) - 8) else "torn")
        self._go(cursor, *found)
        # The interpreter's registers are still those of the sample: it may be at a method's entry.
        cursor.signalled = leaf and self._interpreter <= found[0] < self._interpreter_end
        return True

    def _step_frameless(self, cursor: Cursor, code: _Code) -> bool:
        """An adapter or a stub on the way from a call to a method. An adapter may have moved the stack pointer, kept in r13."""
        sp, r13 = cursor.registers[RSP] or 0, cursor.registers[R13] or 0
        moved = [r13] if sp < r13 <= sp + _LONGEST_STUB_FRAME and r13 & 7 == 0 else []
        found = [
            (pc, sender)
            for at, senders in ((sp, [sp + 8, *moved]), (r13 - 8, moved))
            for pc in (cursor.word(at),)
            for sender in senders
            if pc is not None and self._is_return(pc)
        ]
        if not found or not cursor.signalled:
            return cursor.stop("torn")
        cursor.frames += code.frames
        pc, sender = next((each for each in found if self._has_caller(cursor, *each)), found[0])
        return self._go(cursor, pc, sender, cursor.registers[RBP])

    def _has_caller(self, cursor: Cursor, pc: int, sp: int) -> bool:
        """Whether the compiled frame that begins at sp ends with a return address."""
        caller = self._callers.get(pc) or self._learn(pc, is_leaf=False)
        return caller.step is None and self._is_return(cursor.word(sp + caller.size - 8))

    def _stub_return(
        self, cursor: Cursor, places: Sequence[tuple[int, int | None]], blob: CodeBlob | None
    ) -> tuple[int, int, int | None] | None:
        """The caller's pc, stack pointer and rbp. The best proof is a call of this very stub before the pc."""
        leaf_pc = cursor.registers[PC] or 0
        words = [(pc, at + 8, link) for at, link in places for pc in (cursor.word(at),) if pc is not None]
        returns = [each for each in words if self._is_return(each[0])]
        if returns:
            return max(returns, key=lambda each: (self._called(each[0], blob, leaf_pc), self._follows_call(each[0])))
        sp, bp = cursor.registers[RSP] or 0, cursor.registers[RBP]
        for at in range(sp + 16, sp + _LONGEST_STUB_FRAME, 8):
            pc = cursor.word(at)
            if pc is None:
                break
            if self._is_return(pc) and self._called(pc, blob, leaf_pc):
                return pc, at + 8, bp
        return next((each for each in words if self.stubs.is_native_return(each[0])), None)

    def _called(self, pc: int, blob: CodeBlob | None, leaf_pc: int) -> int:
        """The begin of the stub in which leaf_pc is, if a call of it precedes the pc; stubs follow each other. 0: no such call."""
        target = call_target(self.memory.read(pc - CALL_BYTES, CALL_BYTES), pc)
        return target if target is not None and blob is not None and blob.begin <= target <= leaf_pc else 0


def java_unwinder(fs: ProcFS, pid: int, memory: ProcessMemory) -> JavaUnwinder | None:
    """The unwinder for a JVM; None where the process has no libjvm. Raises NotSupported for other JVMs and unknown layouts."""
    maps = fs.load(str, pid, "maps")
    if find_mapping(maps, "libj9vm", lambda _: True) is not None:
        raise NotSupported(
            "Eclipse OpenJ9 has no vmStructs table: only HotSpot's Java frames can be unwound from outside"
        )
    if find_mapping(maps, "/libjvm.so", lambda _: True) is None:
        return None
    structs = read_vmstructs(fs, pid, memory)
    machine = memory.read(structs.libjvm + 18, 2)
    if int.from_bytes(machine, "little") != _X86_64:
        raise NotSupported("Java frames can be unwound from outside on x86-64 only")
    return JavaUnwinder(structs, memory)
