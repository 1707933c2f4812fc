"""Classes, their fields and methods, in the memory of real JVMs."""

from __future__ import annotations

import jvms
import pytest
import recordsamples

from opskit.host import Host
from opskit.jvm.memory.classes import Classes
from opskit.jvm.memory.vmstructs import read_vmstructs
from opskit.proc.memory import ProcessMemory, RecordedMemory, i32

# Where HotSpot itself says that these fields of java.lang.Class are, which it injects.
OFFSETS = {"klass": "_klass_offset", "array_klass": "_array_klass_offset", "oop_size": "_oop_size_offset"}


def test_fields_and_methods(jvm_version):
    """Instance, static and injected fields; inherited ones; methods; a class that is not loaded."""
    jvm = jvms.start("sleep=1", version=jvm_version)
    try:
        fs = Host.at(None, None).fs
        memory = ProcessMemory(fs, jvm.pid)
        structs = read_vmstructs(fs, jvm.pid, memory)
        classes = Classes(structs, memory)
        string, klass = classes.boot_class("java/lang/String"), classes.boot_class("java/lang/Class")
        assert classes.name(string) == "java/lang/String"
        fields = classes.fields(string)
        assert not fields["value"].is_static
        assert not fields["coder"].is_static
        assert fields["CASE_INSENSITIVE_ORDER"].is_static
        offsets = [field.offset for field in fields.values() if not field.is_static]
        assert len(set(offsets)) == len(offsets)
        assert all(8 <= offset < 64 for offset in offsets)
        injected = classes.fields(klass)
        for name, static in OFFSETS.items():
            assert injected[name].offset == i32(memory, structs.at(("java_lang_Class", static)))
        finalizer = classes.boot_class("java/lang/ref/Finalizer$FinalizerThread")
        assert "name" not in classes.fields(finalizer)
        assert classes.field(finalizer, "name") == classes.fields(classes.boot_class("java/lang/Thread"))["name"]
        assert len(list(classes.methods(string))) > 50
        assert classes.boot_class("no/such/Class") == 0
        assert (classes.name(0), dict(classes.fields(0)), classes.field(string, "none")) == (None, {}, None)
    finally:
        jvm.stop()


@pytest.mark.parametrize("stream", [b"", b"\xff" * 64, bytes(64), b"\x03\x01" + b"\xff" * 9, b"\xbf" * 40])
def test_hostile_streams_of_fields(stream):
    """Numbers without an end, counts without fields: no field, no exception."""
    structs = recordsamples.structs_of(recordsamples.load(21))
    page = bytearray(4096)
    at = structs.at(("InstanceKlass", "_fieldinfo_stream"))
    page[at : at + 8] = (4096 + 2048).to_bytes(8, "little")
    page[2048:2052] = len(stream).to_bytes(4, "little")
    page[2052 : 2052 + len(stream)] = stream
    memory = RecordedMemory({1: bytes(page)})
    assert dict(Classes(structs, memory).fields(4096)) == {}
    hostile = {name: -1 if value % 2 else 1 << 62 for name, value in structs.constants.items()}
    assert dict(Classes(structs._replace(constants=hostile), memory).fields(4096)) == {}
