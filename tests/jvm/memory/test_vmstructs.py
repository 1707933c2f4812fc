"""HotSpot's tables, in the memory of processes that are no JVMs or hostile ones. Those of real JVMs: the other tests here."""

from __future__ import annotations

import struct

import pytest
import recordsamples

from opskit.errors import NotSupported
from opskit.jvm.memory import vmstructs
from opskit.jvm.memory.layout import scalar
from opskit.jvm.memory.objects import Objects
from opskit.jvm.memory.vmstructs import VmField, VmStructs, read_vmstructs
from opskit.jvm.unwind.java import java_unwinder
from opskit.proc.fs import ProcFS
from opskit.proc.memory import PAGE_BYTES, RecordedMemory

MAPPED = "7f0000000000-7f0000001000 r-xp 00000000 08:01 1 /opt/java/lib/{}.so\n"
LIBJVM, TABLE, TEXTS = 0x7F00_0000_0000, 0x7F10_0000_0000, 0x7F20_0000_0000
FAR = 1 << 20  # between two names, so that each is in a chunk of its own


class Sparse(RecordedMemory):
    """Memory of which only some words are not 0, and whose texts are all `name`."""

    def __init__(self, words, table):
        super().__init__({})
        self.words, self.table = words, table

    def read(self, address, size):
        """As RecordedMemory."""
        if address in self.words:
            return struct.pack("<Q", self.words[address])[:size]
        if TABLE <= address < TABLE + len(self.table):
            return self.table[address - TABLE :][:size]
        if address >= TEXTS and size > 8:
            return b"name\0".ljust(size, b"\0")
        return bytes(min(size, PAGE_BYTES)) if address < TABLE else b""


def tables_of(monkeypatch, tmp_path, words, table):
    """What is read of such a JVM. `words`: the exported variables."""
    names = sorted(vmstructs._WANTED)
    monkeypatch.setattr(vmstructs, "_symbols", lambda *_: {name.decode(): 8 + 8 * at for at, name in enumerate(names)})
    (tmp_path / "7" / "root").mkdir(parents=True)
    (tmp_path / "7" / "maps").write_text(MAPPED.format("server/libjvm"))
    at = {LIBJVM + 8 + 8 * number: words.get(name.decode(), 0) for number, name in enumerate(names)}
    memory = Sparse(at, table)
    return read_vmstructs(ProcFS(str(tmp_path)), 7, memory)


TYPES = {
    "gHotSpotVMTypes": TABLE, "gHotSpotVMTypeEntryArrayStride": 16,
    "gHotSpotVMTypeEntryTypeNameOffset": 0, "gHotSpotVMTypeEntrySizeOffset": 8,
}  # fmt: skip
STRUCTS = {
    "gHotSpotVMStructs": TABLE, "gHotSpotVMStructEntryArrayStride": 48,
    **{
        f"gHotSpotVMStructEntry{part}Offset": 8 * at
        for at, part in enumerate(("TypeName", "FieldName", "TypeString", "IsStatic", "Offset", "Address"))
    },
}  # fmt: skip


def test_processes_that_are_no_hotspot(tmp_path):
    """Without a libjvm; OpenJ9, whose libjvm.so only starts it."""
    for pid, libraries in ((7, ("libc",)), (8, ("server/libjvm", "default/libj9vm29"))):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "maps").write_text("".join(map(MAPPED.format, libraries)))
    with pytest.raises(NotSupported, match="7 has no libjvm"):
        read_vmstructs(ProcFS(str(tmp_path)), 7, RecordedMemory({}))
    with pytest.raises(NotSupported, match="OpenJ9"):
        read_vmstructs(ProcFS(str(tmp_path)), 8, RecordedMemory({}))


def test_another_kind_of_cpu():
    """A JVM for aarch64, as an emulator runs it."""
    header = bytearray(PAGE_BYTES)
    header[18:20] = (183).to_bytes(2, "little")
    with pytest.raises(NotSupported, match="x86-64 only"):
        java_unwinder(VmStructs({}, {}, {}, PAGE_BYTES), RecordedMemory({1: bytes(header)}))


@pytest.mark.parametrize("stride", [12, 13, 15])
def test_entries_that_overlap(monkeypatch, tmp_path, stride):
    """A stride that is smaller than an entry: no table, no exception where the data end."""
    words = {**TYPES, "gHotSpotVMTypeEntryArrayStride": stride}
    for size in range(4096, 4096 + 16):
        with pytest.raises(NotSupported, match="no vmStructs table"):
            tables_of(monkeypatch, tmp_path / str(size), words, b"\xff" * size)


def test_names_that_lie_far_apart(monkeypatch, tmp_path):
    """They are not all kept: 24,000 names would be 1.5 GiB."""
    table = b"".join(
        struct.pack("<6Q", *(TEXTS + (3 * entry + part) * FAR for part in range(3)), 0, 0, 0) for entry in range(8000)
    )
    kept = []
    inner = vmstructs._Tables.text

    def text(self, address):
        found = inner(self, address)
        kept.append(len(self._chunks))
        return found

    monkeypatch.setattr(vmstructs._Tables, "text", text)
    with pytest.raises(NotSupported, match="no vmStructs table"):
        tables_of(monkeypatch, tmp_path, STRUCTS, table + bytes(96))
    assert len(kept) == 24_000
    assert max(kept) <= 256


def test_types_larger_than_any(monkeypatch, tmp_path):
    """So much would be read of each structure: such a type is unknown."""
    monkeypatch.setattr(vmstructs._Tables, "text", lambda _, address: f"type {(address - TEXTS) // 16}")
    sizes = (0, 352, 1 << 16, (1 << 16) + 1, 1 << 40, (1 << 64) - 1)
    fields = struct.pack("<6Q", TEXTS, TEXTS, TEXTS, 0, 8, 0) + bytes(96)
    types = b"".join(struct.pack("<QQ", TEXTS + 16 * number, size) for number, size in enumerate(sizes)) + bytes(64)
    words = {**STRUCTS, **TYPES, "gHotSpotVMTypes": TABLE + len(fields)}
    found = tables_of(monkeypatch, tmp_path, words, fields + types)
    assert [found.size(f"type {number}") for number in range(3)] == [*sizes[:3]]
    for number in range(3, 6):
        with pytest.raises(NotSupported, match=f"does not describe type {number} in"):
            found.size(f"type {number}")


@pytest.mark.parametrize("shift", [-1, 64, 1 << 62])
def test_an_impossible_shift(shift):
    """The class in a compact header is then where most JVMs have it."""
    recording = recordsamples.load(25)
    structs = recordsamples.structs_of(recording)
    hostile = structs._replace(constants={**structs.constants, "markWord::klass_shift": shift})
    objects = Objects(hostile, RecordedMemory(recording.pages))
    objects._is_compact = True
    assert objects.class_name(1 << 40) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size_t", (1 << 64) - 2), ("volatile size_t", (1 << 64) - 2), ("uintptr_t", (1 << 64) - 2), ("jlong", -2),
        ("const uint", (1 << 32) - 2), ("u4", (1 << 32) - 2), ("jint", -2), ("u2", (1 << 16) - 2), ("short", -2),
        ("volatile signed char", -2), ("char*", (1 << 64) - 2), ("JavaThreadState", -2),
    ],
)  # fmt: skip
def test_numbers_by_their_types(name, value):
    """Of 1 to 8 bytes, with and without a sign."""
    found = scalar(VmStructs({("A", "b"): VmField(False, 8, name)}, {}, {}), ("A", "b"))
    assert found.of(bytes(8) + b"\xfe" + b"\xff" * 7) == value
