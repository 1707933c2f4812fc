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
from contextlib import suppress
from typing import TYPE_CHECKING

from opskit.errors import NotSupported
from opskit.jvm.memory.threads import VIRTUAL_THREAD, virtual_name
from opskit.proc.memory import i32, u64
from opskit.proc.unwind.cursor import PC, RBP, REGISTERS, RSP, Cursor, Frame
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.jvm.memory.code_cache import CodeBlob
    from opskit.jvm.memory.objects import Objects
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.jvm.unwind.java import JavaUnwinder

UNKNOWN_VIRTUAL = "?"  # a virtual thread whose object could not be read any more
IN_THE_HEAP = Frame("[frames in the heap]", "stub")  # stands for those that could not be read as they were
_CONTINUATION, _CHUNK = "jdk/internal/vm/Continuation", "jdk/internal/vm/StackChunk"
_ENTER_SPECIAL = ".enterSpecial"
# Where ContinuationEntry::_cont may be below the saved rbp; in JDK 21 to 28 the first.
_ENTRY_BELOW_LINK = (48, 40, 56, 64, 32)
_CALL, _CALL_BYTES = 0xE8, 5
_WORD, _SIGNED = struct.Struct("<Q"), struct.Struct("<q")
_MOST_WORDS, _MOST_CHUNKS, _MOST_FRAMES = 1 << 17, 64, 2048
_MOST_LOCALS, _MOST_ARGUMENT_BYTES, _MOST_KEPT = 512, 512, 4096
_ADDRESSES = 1 << 48  # a word below it may be an address or a counter; numbers that are computed are often larger
_ALL, _LOW, _SMALL = (1 << 64) - 1, (1 << 32) - 1, 1 << 16
_SENDER_BELOW = 8  # of an interpreted frame, below its rbp
# Below the first word of the caller: return address and link; and in interpreted frames the sender's sp, method, locals.
_LINK_WORDS, _SENDER_WORDS, _METHOD_WORDS, _LOCALS_WORDS, _INTERPRETED_WORDS = 2, 3, 5, 9, 11


class _Chunk(NamedTuple):
    """A StackChunk as it was read: its words from `address` on; `sp`, `bottom`: indices of words.

    `returns`: where a frame may begin, above a return address; `compiled`: where compiled frames do, by where they would end.
    """

    address: int
    words: bytes
    sp: int
    bottom: int
    parent: int
    returns: Sequence[int]
    compiled: Mapping[int, int]


class _Callee(NamedTuple):
    """The oldest frame on a sampled stack, which ends below `sp`."""

    frame: Frame
    sp: int
    cursor: Cursor

    def same(self, chunk: _Chunk, begin: int, end: int, sp: int) -> int | None:
        """How many of its addresses and counters are those of the chunk from `begin` to `end`, 0 aside; None: a word is not.

        `sp`: where the frame in the chunk ends.
        """
        count = 0
        for at in range(begin, end):
            (word,) = _WORD.unpack_from(chunk.words, 8 * at)
            mask = _compared(word)
            if mask:
                ours = self.cursor.word(self.sp + 8 * (at - sp))
                if ours is None or (word ^ ours) & mask:
                    return None
                count += 0 < word < _ADDRESSES
        return count


def _compared(word: int) -> int:
    """The bits of a word in the heap by which a frame is known.

    An address, a counter, a flag. What is computed is often larger, and changes; but a 32-bit slot may lie beside it, or
    beside the rest of an older frame.
    """
    if word < _ADDRESSES:
        return _ALL
    return (_LOW if word & _LOW < _SMALL else 0) | (_ALL ^ _LOW if word >> 32 < _SMALL else 0)


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
        self._chunks: dict[int, _Chunk | None] = {}
        self._frame_words: dict[int, int] = {}  # by return address
        self._walks: dict[tuple[int, int], tuple[Frame, ...] | None] = {}
        java.enter_continuation = self.enter
        self.forget()

    def forget(self) -> None:
        """Read everything anew from now on; call it with each drain of the samples."""
        self._names.clear()
        self._chunks.clear()
        self._walks.clear()
        self._frame_words.clear()
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
        registers, entry, sp = cursor.registers, self._entry, cursor.registers[RSP] or 0
        if entry is None:
            return cursor.stop("torn")
        found = self._entry_above(cursor, sp + entry.frame_bytes - 16)
        if found is None:
            return cursor.stop("dump" if cursor.is_beyond(sp + entry.frame_bytes - 8) else "torn")
        link, continuation = found
        callee = _Callee(cursor.frames[-1], sp, cursor) if cursor.frames else None
        frames = (
            self._read_callers(self._objects.get(continuation, "tail"), callee) if callee and continuation else None
        )
        cursor.frames += frames or (IN_THE_HEAP,)
        cursor.has_gap = cursor.has_gap or not frames
        registers[PC], registers[RSP] = self._entry_pc, max(link + 16 - entry.frame_bytes, sp)
        return True

    def _entry_above(self, cursor: Cursor, lowest: int) -> tuple[int, int] | None:
        """The link of enterSpecial's frame, above the arguments of the callee, and its Continuation; 0: not readable."""
        rbp = cursor.registers[RBP] or 0
        places = [*([rbp] if rbp >= lowest and rbp & 7 == 0 else []), *range(lowest, lowest + _MOST_ARGUMENT_BYTES, 8)]
        fitting = None
        for link in places:
            if self._java.index.is_return(cursor.word(link + 8)):
                found = self._continuation(cursor, link)
                if found:
                    return link, found
                fitting = fitting or (link, 0)
        return fitting

    def _find_entry(self) -> None:
        """The compiled enterSpecial, which is made when the first virtual thread runs."""
        if not self._method:
            with suppress(NotSupported):  # the list of classes changes while it is read: the next drain finds it
                self._method = self._find_method()
        header = u64(self._memory, self._method + self._code_at) if self._method else 0
        blob = self._java.code.read(header) if header else None
        if blob is None or blob.frame_bytes < 16 + _ENTRY_BELOW_LINK[0]:
            return
        at = self._memory.read(blob.begin, blob.end - blob.begin).find(bytes((_CALL,)))
        if at >= 0:
            self._entry, self._entry_pc = blob, blob.begin + at + _CALL_BYTES
            self._begin, self._end = blob.begin, blob.end

    def _find_method(self) -> int:
        """The Method of Continuation.enterSpecial; 0: its class is not loaded."""
        klass, methods = self._objects.classes.boot_class(_CONTINUATION), self._java.methods
        found = ((each, methods.get(each)) for each in self._objects.classes.methods(klass)) if klass else ()
        return next((each for each, method in found if method and method.name.endswith(_ENTER_SPECIAL)), 0)

    def _continuation(self, cursor: Cursor, link: int) -> int:
        """The Continuation whose entry is below the link of enterSpecial's frame; 0: none could be read."""
        for below in _ENTRY_BELOW_LINK:
            found = self._objects.moved(cursor.word(link - below) or 0)
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
        threads = (each for each in referred if self._objects.is_a(each, VIRTUAL_THREAD))
        thread = next(
            (each for each in threads if self._objects.moved(self._objects.get(each, "cont")) == continuation), 0
        )
        return virtual_name(self._objects, thread)

    def _read_callers(self, tail: int, callee: _Callee) -> tuple[Frame, ...] | None:
        """The frames in the heap, from the caller of the callee on; None where they are no longer what they were."""
        chunk = self._chunk(tail)
        if chunk is None:
            return None
        found = next(
            (frames for sp in self._places(chunk, callee) if (frames := self._frames(chunk, sp)) is not None), None
        )
        for _ in range(_MOST_CHUNKS):
            if found is None or not chunk.parent:
                return found
            older = self._chunk(chunk.parent)
            frames = None if older is None else self._frames(older, older.sp)
            if older is None or frames is None:
                return None
            chunk, found = older, found + frames
        return None

    def _chunk(self, address: int) -> _Chunk | None:
        """The StackChunk at an address, read once until `forget`."""
        if address not in self._chunks:
            if len(self._chunks) >= _MOST_KEPT:
                self._chunks.clear()
                self._walks.clear()
            self._chunks[address] = self._read_chunk(address)
        return self._chunks[address]

    def _read_chunk(self, address: int) -> _Chunk | None:
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
        if len(words) < 8 * size:
            return None
        low, high = self._java.low, self._java.high
        returns = {
            at: word for at, (word,) in enumerate(_WORD.iter_unpack(words), 1) if low <= word < high and at <= bottom
        }
        compiled = dict(self._compiled(returns))
        return _Chunk(begin, words, sp, bottom, objects.get(address, "parent"), tuple(returns), compiled)

    def _compiled(self, returns: Mapping[int, int]) -> Iterator[tuple[int, int]]:
        """The compiled frames that these return addresses, by where they are followed, may be in: their ends and begins."""
        known = self._frame_words
        for at, pc in returns.items():
            words = known.get(pc)
            if words is None:
                blob = None if self._java.is_interpreter(pc) else self._java.code.find(pc)
                words = known[pc] = 0 if blob is None else blob.frame_bytes // 8
            if words >= _LINK_WORDS:
                yield at + words, at

    def _places(self, chunk: _Chunk, callee: _Callee) -> Iterator[int]:
        """Where the caller of the callee may begin: where the chunk's frames do, else, if it was frozen again, further on.

        What is below the chunk's frames may be of calls that ended long ago: only the place next to them counts.
        """
        if self._is_below(chunk, chunk.sp, callee):
            yield chunk.sp
            return
        # The oldest frame of a chunk that was made for the newer frames alone: its caller begins the parent chunk.
        ends = {*chunk.returns, chunk.bottom} if chunk.parent else chunk.returns
        places = [at for at in ends if at > chunk.sp and self._is_below(chunk, at, callee)]
        if len(places) == 1:
            yield places[0]

    def _is_below(self, chunk: _Chunk, sp: int, callee: _Callee) -> bool:
        """Whether the frame that ends where the one at `sp` begins is that of the callee: its method and its pointers."""
        if callee.frame.kind == "interpreted":
            return self._is_interpreted_below(chunk, sp, callee)
        begin = chunk.compiled.get(sp)
        if begin is None or not callee.same(chunk, begin, sp - _LINK_WORDS, sp):
            return False
        inner = self._cursor(chunk, begin)
        return self._java.step(inner) and bool(inner.frames) and inner.frames[-1].name == callee.frame.name

    def _is_interpreted_below(self, chunk: _Chunk, sp: int, callee: _Callee) -> bool:
        words = chunk.words
        if sp < _INTERPRETED_WORDS:
            return False
        (address,) = _WORD.unpack_from(words, 8 * (sp - _METHOD_WORDS))
        (sender,) = _SIGNED.unpack_from(words, 8 * (sp - _SENDER_WORDS))
        (locals_at,) = _SIGNED.unpack_from(words, 8 * (sp - _LOCALS_WORDS))
        if not 0 < sender <= _MOST_LOCALS or not 0 < locals_at <= _MOST_LOCALS:
            return False
        if not callee.same(chunk, sp - _METHOD_WORDS, sp - _METHOD_WORDS + 1, sp):
            return False
        # Its arguments lie in its caller's frame.
        callers, top = (chunk, sp) if sp < chunk.bottom else self._parent(chunk)
        if callee.same(callers, top, min(top + locals_at - 1, callers.bottom), top) is None:
            return False
        method = self._java.methods.get(address)
        return method is not None and method.name == callee.frame.name

    def _parent(self, chunk: _Chunk) -> tuple[_Chunk, int]:
        """The chunk with the callers of this chunk's oldest frame, and where they begin; without one its own bottom."""
        parent = self._chunk(chunk.parent) if chunk.parent else None
        return (chunk, chunk.bottom) if parent is None else (parent, parent.sp)

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

    def _frames(self, chunk: _Chunk, sp: int) -> tuple[Frame, ...] | None:
        """The frames of a chunk from one on, walked once until `forget`; None where they make no sense."""
        key = (chunk.address, sp)
        if key not in self._walks:
            self._walks[key] = self._walk(chunk, sp)
        return self._walks[key]

    def _walk(self, chunk: _Chunk, sp: int) -> tuple[Frame, ...] | None:
        """The frames from one on; None where they do not end exactly at the bottom."""
        cursor, bottom = self._cursor(chunk, sp), chunk.address + 8 * chunk.bottom
        copy = bytearray(chunk.words)
        cursor.stack = copy  # type: ignore[assignment]
        registers, step = cursor.registers, self._java.step
        _mend(copy, 8 * (chunk.bottom - 1), self._entry_pc)
        slot = (registers[RSP] or 0) - 16  # of the link to the frame at the cursor
        while (at := registers[RSP] or 0) < bottom:
            is_interpreted = self._java.is_interpreter(registers[PC] or 0)
            link = slot + 8 * _signed(registers[RBP] or 0)
            if is_interpreted and not self._make_absolute(cursor, copy, link):
                return None
            if len(cursor.frames) > _MOST_FRAMES or not step(cursor) or (registers[RSP] or 0) <= at:
                return None
            slot = link if is_interpreted else (registers[RSP] or 0) - 16
        return tuple(cursor.frames) if registers[RSP] == bottom else None

    def _make_absolute(self, cursor: Cursor, copy: bytearray, link: int) -> bool:
        """Give an interpreted frame the links that it would have on a stack, and the oldest one a return address."""
        sender = cursor.word(link - _SENDER_BELOW)
        if sender is None or link < (cursor.registers[RSP] or 0):
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
