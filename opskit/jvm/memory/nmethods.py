"""Compiled methods in HotSpot's code cache: which methods run at a pc (code/nmethod.hpp, pcDesc.hpp, debugInfoRec.cpp).

A PcDesc says for an offset in the code which scope it is in. A scope names a method, a bytecode, and the scope it is inlined into.
The tables follow the code up to JDK 22; since 23 they are outside the code cache (_immutable_data), the metadata since 25.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from struct import Struct
from typing import TYPE_CHECKING, Any

from opskit.jvm.memory.layout import Scalar, find_scalar, scalar
from opskit.proc.memory import u64

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.jvm.memory.code_cache import CodeBlob
    from opskit.jvm.memory.unsigned5 import Coding, Codings
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory

NAMES = ("nmethod", "native nmethod")
_PC_DESC_BYTES, _PC_DESC_INTS = 16, 4  # offset, scope, objects, flags
_BEYOND = 1 << 30  # the offset of the last PcDesc, a sentinel
_LEVEL = Struct("<b")  # an int until JDK 17, a byte since; from -1 to 4
_KEPT_PER_PC_DESC = 80  # two numbers in lists
_MOST_TABLE_BYTES = 1 << 22
_MOST_INLINED, _MOST_METADATA = 256, 1 << 20
_C1_LEVELS = (1, 2, 3)


class NMethod:
    """A compiled method. `identity`: its Method and compile ID, which are compared to tell whether the memory still has it.

    `returns`, `codes`: what the unwinder has found out about its pcs. It is kept as long as the compiled method.
    """

    __slots__ = (
        "_decode",
        "_metadata",
        "_pcs",
        "_scopes",
        "blob",
        "codes",
        "deopt_pcs",
        "identity",
        "is_c1",
        "method",
        "orig_pc_at",
        "returns",
    )

    def __init__(
        self, blob: CodeBlob, method: int, compile_id: int, level: int, deopt: tuple[tuple[int, ...], int]
    ) -> None:
        self.blob, self.method = blob, method
        self.identity = (method, compile_id)
        self.is_c1 = level in _C1_LEVELS
        self.deopt_pcs, self.orig_pc_at = deopt
        self._pcs: Sequence[int] = ()
        self._decode: Sequence[int] = ()
        self._scopes, self._metadata = b"", 0
        self.returns: dict[int, bool] = {}
        self.codes: dict[tuple[int, bool], Any] = {}

    @property
    def kept_bytes(self) -> int:
        """About how much memory its tables take here."""
        return len(self.blob.raw) + len(self._scopes) + _KEPT_PER_PC_DESC * len(self._pcs)

    def fill(self, pc_descs: bytes, scopes: bytes, metadata: int) -> None:
        """Add the tables. `metadata`: where the pointers to methods are."""
        numbers = memoryview(pc_descs[: len(pc_descs) // _PC_DESC_BYTES * _PC_DESC_BYTES]).cast("i")
        self._pcs, self._decode = numbers[::_PC_DESC_INTS].tolist(), numbers[1::_PC_DESC_INTS].tolist()
        self._scopes, self._metadata = scopes, metadata

    def describes(self, pc: int) -> bool:
        """Whether the tables have exactly this pc: a return address, a poll in a loop, or where an exception is thrown."""
        offset = pc - self.blob.begin
        at = bisect_left(self._pcs, offset)
        return at < len(self._pcs) and self._pcs[at] == offset

    def scopes(self, pc: int, is_return: bool, codings: Codings, memory: Memory) -> list[tuple[int, int]]:
        """The (method, bci) at the pc, the innermost inlined one first; empty where the tables say nothing.

        `is_return`: the pc is behind a call, and belongs to it.
        """
        offset = pc - self.blob.begin
        at = bisect_left(self._pcs, offset) if is_return else bisect_right(self._pcs, offset)
        if not 0 <= at < len(self._pcs) or self._pcs[at] >= _BEYOND:
            return []
        found = []
        for coding in codings.ordered:
            scopes = self._chain(self._decode[at], coding, memory)
            if scopes and scopes[-1][0] == self.method:
                found.append((coding, scopes))
        if len(found) == 1:
            codings.vote(found[0][0])
        return found[0][1] if found else []

    def _chain(self, decode: int, coding: Coding, memory: Memory) -> list[tuple[int, int]]:
        """The scopes from one on; each is written behind the one it is inlined into."""
        found: list[tuple[int, int]] = []
        while decode > 0 and len(found) < _MOST_INLINED:
            try:
                sender, at = coding.read(self._scopes, decode)
                index, at = coding.read(self._scopes, at)
                bci, at = coding.read(self._scopes, at)
            except IndexError:
                return []
            if not 0 < index <= _MOST_METADATA or sender >= decode:
                return []
            method = u64(memory, self._metadata + 8 * (index - 1))
            if not method:
                return []
            found.append((method, bci - 1))  # counted from -1, the entry
            decode = sender
        return found if decode == 0 else []


class NMethods:
    """Reads the compiled methods of one JVM."""

    def __init__(self, structs: VmStructs, memory: Memory) -> None:
        """Raise NotSupported for an unknown layout."""
        self.memory = memory
        self._bytes = structs.size("nmethod")
        self._method = scalar(structs, ("nmethod", "_method"), ("CompiledMethod", "_method"))
        self._compile_id, self._orig_pc, self._pcs_at = (
            scalar(structs, ("nmethod", field)) for field in ("_compile_id", "_orig_pc_offset", "_scopes_pcs_offset")
        )
        self._level = scalar(structs, ("nmethod", "_comp_level"), form=_LEVEL)
        self._immutable = find_scalar(structs, ("nmethod", "_immutable_data"))
        self._immutable_bytes = find_scalar(structs, ("nmethod", "_immutable_data_size"))
        self._scopes_at = find_scalar(structs, ("nmethod", "_scopes_data_offset"))
        self._scopes_begin = find_scalar(structs, ("CompiledMethod", "_scopes_data_begin"))
        self._metadata_at = find_scalar(structs, ("nmethod", "_metadata_offset"))
        self._metadata_base: Scalar | None = None
        self._relocation: Scalar | None = None
        if self._metadata_at is None:
            self._metadata_base = scalar(structs, ("CodeBlob", "_mutable_data"))
            self._relocation = scalar(structs, ("CodeBlob", "_relocation_size"))
        elif self._immutable is not None:  # JDK 23 and 24 count it from the data section
            self._metadata_base = scalar(structs, ("CodeBlob", "_data_offset"))
        self._pcs_end = (
            self._scopes_at if self._immutable is not None else scalar(structs, ("nmethod", "_dependencies_offset"))
        )
        self._deopt = [
            (found, is_offset)
            for found, is_offset in (
                (find_scalar(structs, ("CompiledMethod", "_deopt_handler_begin")), False),
                (find_scalar(structs, ("CompiledMethod", "_deopt_mh_handler_begin")), False),
                (find_scalar(structs, ("nmethod", "_deopt_handler_offset"), ("nmethod", "_deopt_handler_entry_offset"), ("nmethod", "_deoptimize_offset")), True),
                (find_scalar(structs, ("nmethod", "_deopt_mh_handler_offset"), ("nmethod", "_deoptimize_mh_offset")), True),
            )
            if found is not None
        ]  # fmt: skip

    def read(self, blob: CodeBlob) -> NMethod | None:
        """The compiled method of a blob; None where its memory makes no sense."""
        data = self.memory.read(blob.header, self._bytes)
        if len(data) < self._bytes:
            return None
        nmethod = self._header(blob, data)
        pc_descs, scopes = self._tables(blob.header, data)
        nmethod.fill(pc_descs, scopes, self._metadata(blob.header, data))
        return nmethod

    def is_same(self, nmethod: NMethod) -> bool:
        """Whether the memory still has that compiled method."""
        data, raw = self.memory.read(nmethod.blob.header, self._bytes), nmethod.blob.raw
        identity = (self._method.of(data), self._compile_id.of(data))
        return data.startswith(raw) and identity == nmethod.identity

    def _header(self, blob: CodeBlob, data: bytes) -> NMethod:
        deopt = tuple(self._deopt_pcs(blob, data)), self._orig_pc.of(data)
        return NMethod(blob, self._method.of(data), self._compile_id.of(data), self._level.of(data), deopt)

    def _deopt_pcs(self, blob: CodeBlob, data: bytes) -> Iterator[int]:
        """Where frames of the method return to once it is deoptimized."""
        for found, is_offset in self._deopt:
            pc = found.of(data) + (blob.header if is_offset else 0)
            if blob.begin < pc <= blob.end:
                yield pc

    def _tables(self, header: int, data: bytes) -> tuple[bytes, bytes]:
        """The PcDescs and the scopes."""
        base = self._immutable.of(data) if self._immutable is not None else header
        pcs = base + self._pcs_at.of(data)
        pcs_end = base + self._pcs_end.of(data) if self._pcs_end is not None else pcs
        if self._scopes_begin is not None:
            scopes, scopes_end = self._scopes_begin.of(data), pcs
        else:
            scopes = base + (self._scopes_at.of(data) if self._scopes_at is not None else 0)
            scopes_end = base + self._immutable_bytes.of(data) if self._immutable_bytes is not None else pcs
        return self._section(pcs, pcs_end), self._section(scopes, scopes_end)

    def _section(self, begin: int, end: int) -> bytes:
        return self.memory.read(begin, end - begin) if 0 < end - begin <= _MOST_TABLE_BYTES else b""

    def _metadata(self, header: int, data: bytes) -> int:
        if self._metadata_at is None:
            if self._metadata_base is None or self._relocation is None:
                return 0
            return self._metadata_base.of(data) + (self._relocation.of(data) + 7 & ~7)
        base = self._metadata_base.of(data) if self._metadata_base is not None else 0
        return header + base + self._metadata_at.of(data)
