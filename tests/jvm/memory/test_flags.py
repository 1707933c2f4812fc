"""Flags, as a JVM's memory and as -XX:+PrintFlagsFinal have them."""

from __future__ import annotations

import re

import jvms

from opskit.host import Host
from opskit.jvm.memory.flags import read_flags
from opskit.jvm.memory.vmstructs import VmField, VmStructs, read_vmstructs
from opskit.proc.memory import PAGE_BYTES, ProcessMemory, RecordedMemory

OPTIONS = (
    "-Xmx64m",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:+DebugNonSafepoints",
    "-XX:OnError=echo done",
    "-XX:+PrintFlagsFinal",
)
PRINTED = re.compile(r"\s*(\w+)\s+(\w+)\s+[:+]?=(.*?)\s+\{")


def test_every_flag_has_the_value_that_the_jvm_prints(jvm_version):
    """Booleans, numbers of all sizes, floating point numbers, texts."""
    jvm = jvms.start("sleep=1", version=jvm_version, options=OPTIONS)
    try:
        memory = ProcessMemory(Host.at(None, None).fs, jvm.pid)
        printed = {found[2]: (found[1], found[3].strip()) for found in map(PRINTED.match, jvm.lines) if found}
        found = read_flags(read_vmstructs(Host.at(None, None).fs, jvm.pid, memory), memory, [*printed, "NoSuchFlag"])
    finally:
        jvm.stop()
    assert len(printed) > 500
    assert found.keys() == printed.keys()
    for name, (kind, text) in printed.items():
        value = found[name]
        if kind == "bool":
            assert value is (text == "true"), name
        elif kind == "double":
            assert f"{value:.6f}" == text, name
        elif kind.startswith("ccstr"):
            assert (value or "") == text, name
        else:
            assert str(value) == text, name
    assert (found["DebugNonSafepoints"], found["MaxHeapSize"], found["OnError"]) == (True, 64 << 20, "echo done")


def test_hostile_tables_end():
    """A table that is longer than the memory, entries of no size, texts without an end, values that are not mapped."""
    fields = {
        ("JVMFlag", name): VmField(name in ("flags", "numFlags"), at, kind)
        for name, at, kind in (
            ("flags", 4096, "JVMFlag*"), ("numFlags", 4104, "size_t"),
            ("_addr", 0, ""), ("_name", 8, "const char*"), ("_type", 20, "int"),
        )
    }  # fmt: skip
    page = bytearray(b"\xff" * PAGE_BYTES)
    page[0:16] = (4096 + 64).to_bytes(8, "little") + (1 << 63).to_bytes(8, "little")
    memory = RecordedMemory({1: bytes(page)})
    for size in (0, 24, 255, 1 << 40):
        assert read_flags(VmStructs(fields, {"JVMFlag": size}, {}), memory, ["UseZGC"]) == {}
    page[64:88] = (1 << 50).to_bytes(8, "little") + (4096 + 512).to_bytes(8, "little") + bytes(4) + b"\1\0\0\0"
    page[512:519] = b"UseZGC\0"
    memory = RecordedMemory({1: bytes(page)})
    assert read_flags(VmStructs(fields, {"JVMFlag": 24}, {}), memory, ["UseZGC"]) == {}  # its value is nowhere
    page[64:72] = (4096 + 1024).to_bytes(8, "little")
    for kind, value in ((0, True), (1, -1), (2, (1 << 32) - 1), (3, -1), (6, (1 << 64) - 1), (77, None), (-1, None)):
        page[84:88] = kind.to_bytes(4, "little", signed=True)
        found = read_flags(VmStructs(fields, {"JVMFlag": 24}, {}), RecordedMemory({1: bytes(page)}), ["UseZGC"])
        assert found == ({} if value is None else {"UseZGC": value})
