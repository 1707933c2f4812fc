"""Virtual threads: which one runs on a carrier, and its frames that are still in the heap (runtime/continuationFreezeThaw.cpp).

A mounted virtual thread's frames lie on its carrier's stack, below Continuation.enterSpecial, whose frame has a ContinuationEntry.
Of a deep stack only the newest frames are copied back to it. The oldest of these returns to the return barrier, with rbp pointing
to the frame of enterSpecial; its callers are still in the StackChunk of the Continuation, an object of the heap:

    index   0                    sp                                   bottom   size
            frames that went     frame | frame | … | Continuation.enter | arguments
            to the stack, stale

A frame's return address is the word below its caller's first word, and the link the word below that one. Those of an
interpreted frame are relative, in words. By the time the chunk is read its thread has gone on: the oldest frame on
the stack must be found in it, as it was or as it is again, directly below the frame that is taken as its caller.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.errors import NotSupported
from opskit.jvm.memory.threads import VIRTUAL_THREAD, virtual_name
from opskit.proc.memory import i32, u64
from opskit.proc.unwind.cursor import PC, RBP, REGISTERS, RSP, Cursor, Frame
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.jvm.memory.code_cache import CodeBlob
    from opskit.jvm.memory.objects import Objects
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.jvm.unwind.java import JavaUnwinder

UNKNOWN_VIRTUAL = "?"  # a virtual thread whose object could not be read any more
IN_THE_HEAP = Frame("[frames in the heap]", "stub")  # stands for those that could not be read as they were
_CONTINUATION, _CHUNK = "jdk/internal/vm/Continuation", "jdk/internal/vm/StackChunk"
_ENTER_SPECIAL = ".enterSpecial"
_ENTRY_BELOW_LINK = (48, 40, 56, 64, 32)  # where ContinuationEntry::_cont may be below the saved rbp; in JDK 21 to 28 the first
_CALL, _CALL_BYTES = 0xE8, 5
_WORD, _SIGNED = struct.Struct("<Q"), struct.Struct("<q")
_MOST_WORDS, _MOST_CHUNKS, _MOST_FRAMES = 1 << 17, 64, 2048
_MOST_CALLEE_WORDS, _MOST_KEPT = 512, 4096
_METHOD_BELOW, _SENDER_BELOW = 24, 8  # of an interpreted frame, below its rbp
_METHOD_WORDS, _SENDER_WORDS = 5, 3  # the same below the first word of its caller


class _Chunk(NamedTuple):
    """A StackChunk as it was read: its words from `address` on; `sp`, `bottom`: indices of words."""

    address: int
    words: bytes
    sp: int
    bottom: int
    parent: int


class VirtualThreads:
    """Unwinds Continuation.enterSpecial, and goes on in the heap behind the return barrier. Ask it before the JavaUnwinder."""

    def __init__(self, structs: VmStructs, objects: Objects, java: JavaUnwinder) -> None:
        """Raise NotSupported for a JVM without virtual threads."""
        self._structs, self._objects, self._java = structs, objects, java
        self._memory = objects.memory
        self._code_at = structs.at(("Method", "_code"))
        self._layout_at = structs.at(("Klass", "_layout_helper"))
        if structs.find(("JavaThread", "_vthread")) is None:
            raise NotSupported("this JVM has no virtual threads")
        self._method = 0
        self._entry: CodeBlob | None = None
        self._entry_pc = self._begin = self._end = 0
        self._names: dict[int, str] = {}
        self._callers: dict[tuple[int, Frame], tuple[Frame, ...] | None] = {}
        java.enter_continuation = self.enter
        self.forget()

    def forget(self) -> None:
        """Read everything anew from now on; call it with each drain of the samples."""
        self._names.clear()
        self._callers.clear()
        if self._entry is None:
            self._find_entry()

    def owns(self, pc: int) -> bool:
        """Whether the pc is in Continuation.enterSpecial."""
        return self._begin <= pc < self._end

    def step(self, cursor: Cursor) -> bool:
        """Note the virtual thread, and leave its frames for those of the carrier."""
        if self._entry is not None and not cursor.signalled:
            link = (cursor.registers[RSP] or 0) + self._entry.frame_bytes - 16
            self._note(cursor, self._continuation(cursor, link))
        return self._java.step(cursor)

    def enter(self, cursor: Cursor) -> bool:
        """Go on at the return barrier: add the frames in the heap, then go to the frame of enterSpecial on the stack."""
        registers, entry = cursor.registers, self._entry
        link, sp = registers[RBP] or 0, registers[RSP] or 0
        if entry is None or link & 7 or not sp <= link:
            return cursor.stop("torn")
        if cursor.word(link + 8) is None:
            return cursor.stop("dump" if cursor.is_beyond(link + 8) else "torn")
        continuation = self._continuation(cursor, link)
        frames = self._in_heap(continuation, cursor.frames[-1]) if continuation and cursor.frames else None
        cursor.frames += frames or (IN_THE_HEAP,)
        cursor.has_gap = cursor.has_gap or not frames
        registers[PC], registers[RSP] = self._entry_pc, max(link + 16 - entry.frame_bytes, sp)
        return True

    def _find_entry(self) -> None:
        """The compiled enterSpecial, which is made when the first virtual thread runs."""
        if not self._method:
            klass, methods = self._objects.classes.boot_class(_CONTINUATION), self._java.methods
            found = self._objects.classes.methods(klass) if klass else ()
            names = ((each, methods.get(each)) for each in found)
            self._method = next((each for each, method in names if method and method.name.endswith(_ENTER_SPECIAL)), 0)
        header = u64(self._memory, self._method + self._code_at) if self._method else 0
        blob = self._java.code.read(header) if header else None
        if blob is None or blob.frame_bytes < 16 + _ENTRY_BELOW_LINK[0]:
            return
        at = self._memory.read(blob.begin, blob.end - blob.begin).find(bytes((_CALL,)))
        if at >= 0:
            self._entry, self._entry_pc = blob, blob.begin + at + _CALL_BYTES
            self._begin, self._end = blob.begin, blob.end

    def _continuation(self, cursor: Cursor, link: int) -> int:
        """The Continuation whose entry is below the link of enterSpecial's frame; 0: none could be read."""
        for below in _ENTRY_BELOW_LINK:
            found = cursor.word(link - below)
            if found and self._objects.is_a(found, _CONTINUATION):
                return found
        return 0

    def _note(self, cursor: Cursor, continuation: int) -> None:
        """Set the cursor's virtual thread; the innermost one counts."""
        if cursor.virtual is None:
            name = self._names.get(continuation)
            if name is None:
                if len(self._names) >= _MOST_KEPT:
                    self._names.clear()
                name = self._names[continuation] = self._name(continuation) or UNKNOWN_VIRTUAL
            cursor.virtual = name

    def _name(self, continuation: int) -> str | None:
        """The name of the thread that the continuation's target refers to (VirtualThread$VThreadContinuation.wrap)."""
        target = self._objects.get(continuation, "target") if continuation else 0
        fields = self._objects.classes.fields(self._objects.klass(target)) if target else {}
        referred = (self._objects.get(target, name) for name in fields if name.startswith("val$"))
        thread = next((each for each in referred if self._objects.is_a(each, VIRTUAL_THREAD)), 0)
        return virtual_name(self._objects, thread)

    def _in_heap(self, continuation: int, callee: Frame) -> tuple[Frame, ...] | None:
        """The frames in the heap, from the caller of the callee on; None where they are no longer what they were."""
        tail = self._objects.get(continuation, "tail")
        key = (tail, callee)
        if key not in self._callers:
            if len(self._callers) >= _MOST_KEPT:
                self._callers.clear()
            self._callers[key] = self._read_callers(tail, callee)
        return self._callers[key]

    def _read_callers(self, tail: int, callee: Frame) -> tuple[Frame, ...] | None:
        chunk = self._chunk(tail)
        if chunk is None:
            return None
        walks = (self._walk(chunk, sp) for sp in self._places(chunk, callee))
        found = next((frames for frames in walks if frames), None)
        for _ in range(_MOST_CHUNKS):
            if found is None or chunk is None or not chunk.parent:
                return found
            chunk = self._chunk(chunk.parent)
            older = self._walk(chunk, chunk.sp) if chunk is not None and chunk.sp < chunk.bottom else ()
            found = found + older if older is not None else None
        return None

    def _chunk(self, address: int) -> _Chunk | None:
        objects = self._objects
        if not address or objects.class_name(address) != _CHUNK:
            return None
        size, sp, bottom, arguments = (
            i32(self._memory, at) if (at := objects.field_at(address, name)) else None
            for name in ("size", "sp", "bottom", "argsize")
        )
        if bottom is None and size is not None and arguments is not None:
            bottom = size - arguments
        if size is None or sp is None or bottom is None or not 0 <= sp <= bottom <= size <= _MOST_WORDS:
            return None
        begin = address + ((i32(self._memory, objects.klass(address) + self._layout_at) or 0) & ~7)
        words = self._memory.read(begin, 8 * size)
        return _Chunk(begin, words, sp, bottom, objects.get(address, "parent")) if len(words) == 8 * size else None

    def _places(self, chunk: _Chunk, callee: Frame) -> Iterator[int]:
        """Where the caller of the callee may begin: where the chunk's frames do, else the only place that there is."""
        if self._is_below(chunk, chunk.sp, callee):
            yield chunk.sp
            return
        low, high = self._java.low, self._java.high
        returns = (at for at, (word,) in enumerate(_WORD.iter_unpack(chunk.words)) if low <= word < high)
        places = [at + 1 for at in returns if at + 1 < chunk.bottom and self._is_below(chunk, at + 1, callee)]
        if len(places) == 1:
            yield places[0]

    def _is_below(self, chunk: _Chunk, sp: int, callee: Frame) -> bool:
        """Whether a frame of the callee's method ends where the frame at `sp` begins."""
        words = chunk.words
        if callee.kind == "interpreted":
            if sp < _METHOD_WORDS:
                return False
            (address,), (sender,) = (
                _WORD.unpack_from(words, 8 * (sp - _METHOD_WORDS)),
                _SIGNED.unpack_from(words, 8 * (sp - _SENDER_WORDS)),
            )
            method = self._java.methods.get(address) if 0 < sender <= _MOST_CALLEE_WORDS else None
            return method is not None and method.name == callee.name
        low, high = self._java.low, self._java.high
        for at in range(sp - 2, max(sp - _MOST_CALLEE_WORDS, 0) - 1, -1):
            (pc,) = _WORD.unpack_from(words, 8 * at)
            if low <= pc < high:
                blob = self._java.code.find(pc)
                if blob is not None and blob.frame_bytes == 8 * (sp - 1 - at):
                    inner = self._cursor(chunk, at + 1)
                    return self._java.step(inner) and bool(inner.frames) and inner.frames[-1].name == callee.name
        return False

    def _cursor(self, chunk: _Chunk, sp: int) -> Cursor:
        """A cursor in a copy of the chunk, at the frame that begins there."""
        registers: list[int | None] = [None] * REGISTERS
        registers[RSP] = chunk.address
        cursor = Cursor(registers, chunk.words)
        cursor.is_leaf = cursor.signalled = False
        address = chunk.address + 8 * sp
        cursor.registers[RSP], cursor.registers[PC] = address, cursor.word(address - 8)
        cursor.registers[RBP] = cursor.word(address - 16)
        return cursor

    def _walk(self, chunk: _Chunk, sp: int) -> tuple[Frame, ...] | None:
        """The frames from one on; None where they do not end exactly at the bottom."""
        cursor, bottom = self._cursor(chunk, sp), chunk.address + 8 * chunk.bottom
        copy = bytearray(chunk.words)
        cursor.stack = copy  # type: ignore[assignment]
        registers, step = cursor.registers, self._java.step
        _mend(copy, 8 * (chunk.bottom - 1), self._entry_pc)
        while (at := registers[RSP] or 0) < bottom:
            if self._java.is_interpreter(registers[PC]) and not self._make_absolute(cursor, copy, at):
                return None
            if len(cursor.frames) > _MOST_FRAMES or not step(cursor) or (registers[RSP] or 0) <= at:
                return None
        return tuple(cursor.frames) if registers[RSP] == bottom else None

    def _make_absolute(self, cursor: Cursor, copy: bytearray, sp: int) -> bool:
        """Give an interpreted frame the links that it would have on a stack, and the oldest one a return address."""
        relative = cursor.word(sp - 16)
        link = sp - 16 + 8 * _signed(relative or 0)
        sender = cursor.word(link - _SENDER_BELOW)
        if relative is None or sender is None or not sp <= link:
            return False
        cursor.registers[RBP] = link
        _WORD.pack_into(copy, link - _SENDER_BELOW - cursor.base, (link + 8 * _signed(sender)) % (1 << 64))
        _mend(copy, link + 8 - cursor.base, self._entry_pc)
        return True


def _mend(copy: bytearray, at: int, pc: int) -> None:
    """Give the oldest frame, which has no return address in the heap, that of enterSpecial."""
    if 0 <= at <= len(copy) - 8 and _WORD.unpack_from(copy, at)[0] == 0:
        _WORD.pack_into(copy, at, pc)


def _signed(word: int) -> int:
    return word - ((word >> 63) << 64)
