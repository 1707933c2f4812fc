"""What is known of a JVM's generated code by pc: its blob, its methods, whether it can be returned to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import NotSupported
from opskit.jvm.memory.code_cache import CodeCache
from opskit.jvm.memory.methods import Methods
from opskit.jvm.memory.nmethods import NAMES, NMethod, NMethods
from opskit.jvm.unwind.instructions import CALL_BYTES, call_target
from opskit.proc.memory import i32, u64
from opskit.proc.unwind.calls import ends_with_call
from opskit.proc.unwind.cursor import PC, RBP, RSP, Frame

if TYPE_CHECKING:
    from opskit.jvm.memory.code_cache import CodeBlob
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory
    from opskit.proc.unwind.cursor import Cursor, FrameKind

MOST_ENTRIES = 200_000  # of each cache
_MOST_KEPT_BYTES = 256 << 20  # of the tables of compiled methods
UNKNOWN = "[unknown Java method]"
_CONTINUATIONS = "continuation"  # in the name of the blob with the return barrier of virtual threads


class CodeIndex:
    """The generated code of one JVM. What was read is kept, and compared with the memory once after each `forget`."""

    def __init__(self, structs: VmStructs, memory: Memory) -> None:
        """Raise NotSupported for a layout that the tables do not describe."""
        self.memory = memory
        self.cache = CodeCache(structs, memory)
        self.methods = Methods(structs, memory)
        self.low, self.high = self.cache.low, self.cache.high
        self._nmethods = NMethods(structs, memory)
        self._structs = structs
        self.call_stub_return = u64(memory, structs.at(("StubRoutines", "_call_stub_return_address"))) or 0
        queue = u64(memory, structs.at(("AbstractInterpreter", "_code"))) or 0
        self.interpreter = u64(memory, queue + structs.at(("StubQueue", "_stub_buffer"))) or 0
        limit = i32(memory, queue + structs.at(("StubQueue", "_buffer_limit"))) or 0
        self.interpreter_end = self.interpreter + max(limit, 0)
        if not self.call_stub_return or not self.interpreter:
            raise NotSupported("the JVM has no interpreter: it is still starting")
        self._blobs: dict[int, tuple[CodeBlob, NMethod | None]] = {}
        self._checked: dict[int, tuple[CodeBlob, NMethod | None] | None] = {}
        self._headers: dict[int, int] = {}
        self._kept_bytes = 0
        self._returns: dict[int, bool] = {}

    def forget(self) -> None:
        """Compare all that is known with the JVM's memory before its next use."""
        self.methods.forget()
        self._checked.clear()
        self._returns.clear()

    def is_interpreter(self, pc: int) -> bool:
        """Whether the pc is in the interpreter."""
        return self.interpreter <= pc < self.interpreter_end

    def find(self, pc: int) -> tuple[CodeBlob, NMethod | None] | None:
        """The blob at the pc, and its compiled method; both are compared with the memory once after each `forget`."""
        header = self._headers.get(pc)
        if header is not None:
            if header not in self._checked:
                self._checked[header] = self._compare(header)
            found = self._checked[header]
            if found is not None and found[0].begin <= pc <= found[0].end:
                return found
        blob = self.cache.find(pc)
        if blob is None:
            return None
        known = self._checked.get(blob.header)
        if known is None or known[0] != blob:
            known = self._checked[blob.header] = self._compare(blob.header, blob)
        if known is not None:
            if len(self._headers) >= MOST_ENTRIES:
                self._headers.clear()
                self._blobs.clear()
            self._headers[pc] = blob.header
        return known

    def _compare(self, header: int, blob: CodeBlob | None = None) -> tuple[CodeBlob, NMethod | None] | None:
        """What is known of a blob, if it is still there, else what there is now."""
        known = self._blobs.get(header)
        if known is not None and self._is_same(*known):
            return known
        blob = blob or self.cache.read(header)
        if blob is None:
            return None
        nmethod = self._nmethods.read(blob) if blob.name in NAMES else None
        if nmethod is None and blob.name in NAMES:
            return None
        self._kept_bytes += len(blob.raw) if nmethod is None else nmethod.kept_bytes
        if self._kept_bytes > _MOST_KEPT_BYTES:
            self._kept_bytes = 0
            for each in (self._blobs, self._checked, self._headers):
                each.clear()
        found = self._blobs[header] = blob, nmethod
        return found

    def _is_same(self, blob: CodeBlob, nmethod: NMethod | None) -> bool:
        if nmethod is not None:
            return self._nmethods.is_same(nmethod)
        return self.memory.read(blob.header, len(blob.raw)) == blob.raw

    def frames(self, nmethod: NMethod, pc: int, *, is_leaf: bool) -> tuple[Frame, ...]:
        """The inlined methods at the pc and the compiled one; that one alone where the tables say no more."""
        outermost: FrameKind = "c1" if nmethod.is_c1 else "compiled"
        scopes = nmethod.scopes(pc, not is_leaf, self.methods.codings, self.memory) or [(nmethod.method, -1)]
        return tuple(
            self._frame(method, bci, "inlined" if number < len(scopes) else outermost)
            for number, (method, bci) in enumerate(scopes, 1)
        )

    def _frame(self, address: int, bci: int, kind: FrameKind) -> Frame:
        method = self.methods.get(address)
        if method is None:
            return Frame(UNKNOWN, kind)
        return Frame(method.name, kind, method.source, method.line(bci) if bci >= 0 else None)

    def is_return(self, pc: int | None) -> bool:
        """Whether Java code or the call stub may be returned to there."""
        if pc is None or not self.low <= pc < self.high:
            return False
        known = self._returns.get(pc)
        if known is None:
            if len(self._returns) >= MOST_ENTRIES:
                self._returns.clear()
            known = self._returns[pc] = self._read_return(pc)
        return known

    def _read_return(self, pc: int) -> bool:
        if self.is_interpreter(pc) or pc == self.call_stub_return:
            return True
        found = self.find(pc)
        if found is None:
            return False
        blob, nmethod = found
        if nmethod is not None:
            known = nmethod.returns.get(pc)
            if known is None:
                known = pc in nmethod.deopt_pcs or nmethod.describes(pc) or self.follows_call(pc)
                nmethod.returns[pc] = known
            return known
        return is_continuation(blob) or self.follows_call(pc)

    def follows_call(self, pc: int) -> bool:
        """Whether a call precedes the pc."""
        return ends_with_call(self.memory.read(pc - CALL_BYTES, CALL_BYTES))

    def is_libjvm_return(self, pc: int) -> bool:
        """Whether a call in libjvm precedes the pc."""
        return self._structs.is_libjvm(pc) and self.follows_call(pc)

    def called_stub(self, pc: int, blob: CodeBlob | None, leaf_pc: int) -> int:
        """The begin of the stub in which leaf_pc is, if a call of it precedes the pc; stubs follow each other. 0: no such call."""
        target = call_target(self.memory.read(pc - CALL_BYTES, CALL_BYTES), pc)
        return target if target is not None and blob is not None and blob.begin <= target <= leaf_pc else 0


def is_continuation(blob: CodeBlob) -> bool:
    """Whether the blob has the stubs of virtual threads, with their return barrier."""
    return _CONTINUATIONS in blob.name.lower()


def is_last_sp(cursor: Cursor, sender: int) -> bool:
    """Whether the interpreted frame at rbp has noted that it makes a call with this stack pointer."""
    bp = cursor.registers[RBP] or 0
    last = cursor.word(bp - 16)  # absolute, or in words from rbp since JDK 21
    return bp > sender and last in (sender, (sender - bp >> 3) & (1 << 64) - 1)


def return_to(cursor: Cursor, pc: int, sp: int, rbp: int | None) -> bool:
    """Set the cursor to a caller. True: the step that ends with it goes on."""
    registers = cursor.registers
    registers[PC], registers[RSP], registers[RBP] = pc, sp, rbp
    cursor.signalled = False
    return True
