"""Samples of real JVMs, recorded with what the unwinder reads of their memory, so that it runs on them without a JVM.

`python tests/support/recordsamples.py` records them anew for each JDK, as root, into tests/fixtures/cpu_samples. The JVMs are started
with an empty environment. Of the memory only those bytes are kept that are read; the rest of each page is zero.

A file is compressed by LZMA: the length of its index (8 bytes), the index (JSON), then the pages and stacks that it refers to.
"""

from __future__ import annotations

import json
import lzma
import struct
import sys
import time
from pathlib import Path
from typing import NamedTuple

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "cpu_samples"
JDKS = (11, 17, 21, 25)
MODES = {
    11: ("platform=2",),
    17: ("platform=2",),
    21: ("platform=1", "lazy=1", "flat=1"),
    25: ("platform=1", "lazy=1", "flat=1"),
}
OPTIONS = ("-Xmx400m", "-Xmn300m", "-XX:+UseSerialGC")
HZ, MOST_STACKS, WARM_UP_S, SECONDS = 997, 64, 3.0, 0.5
FLAGS = ("DebugNonSafepoints", "PreserveFramePointer", "MaxHeapSize", "UseCompressedOops", "OnError")
_PAGE = 4096


class RecordedSample(NamedTuple):
    """A sample and what was unwound of it. `frames`: (name, kind, source, line), leaf first."""

    tid: int
    thread: str | None
    registers: list
    stack: bytes
    frames: list
    end: str
    virtual: str | None


class Recording(NamedTuple):
    """One JVM. `structs`: the arguments of VmStructs; `pages`: by number."""

    structs: tuple
    pages: dict[int, bytes]
    samples: list[RecordedSample]
    flags: dict


class RecordingMemory:
    """Keeps what is read of another memory."""

    def __init__(self, inner) -> None:
        self.inner, self.pages = inner, {}

    def read(self, address, size):
        """As the other one."""
        found = self.inner.read(address, size)
        for at in range(address, address + len(found)):
            number, begin = divmod(at, _PAGE)
            if at == address or begin == 0:
                page = self.pages.setdefault(number, bytearray(_PAGE))
                part = found[at - address : at - address + _PAGE - begin]
                page[begin : begin + len(part)] = part
        return found


class _Seen(dict):
    """A dict that notes which structures are asked for: the first part of a field's key, or the name of a size or constant."""

    def __init__(self, *given):
        super().__init__(*given)
        self.owners = {"StubRoutines"}

    def _note(self, key):
        self.owners.add(key[0] if isinstance(key, tuple) else key)

    def __contains__(self, key):
        self._note(key)
        return super().__contains__(key)

    def __getitem__(self, key):
        self._note(key)
        return super().__getitem__(key)

    def get(self, key, default=None):
        self._note(key)
        return super().get(key, default)

    def kept(self):
        """What was asked for."""
        return {key: value for key, value in self.items() if (key[0] if isinstance(key, tuple) else key) in self.owners}


def load(version: int) -> Recording:
    """The recorded samples of a JDK."""
    return unpacked(lzma.decompress((FIXTURES / f"jdk-{version}.xz").read_bytes()))


def unpacked(data: bytes) -> Recording:
    """A recording from the bytes of its file."""
    (length,) = struct.unpack_from("<Q", data)
    index = json.loads(data[8 : 8 + length])
    blobs = memoryview(data)[8 + length :]
    pages = {number: bytes(blobs[at * _PAGE : (at + 1) * _PAGE]) for at, number in enumerate(index["pages"])}
    stacks = blobs[len(pages) * _PAGE :]
    samples = []
    for each in index["samples"]:
        begin, size = each.pop("stack")
        samples.append(RecordedSample(stack=bytes(stacks[begin : begin + size]), **each))
    fields = {(owner, name): field for owner, name, field in index["structs"]["fields"]}
    structs = fields, index["structs"]["sizes"], index["structs"]["constants"], index["structs"]["libjvm"]
    return Recording(structs, pages, samples, index["flags"])


def packed(recording: Recording) -> bytes:
    """The bytes of a recording's file, before they are compressed."""
    fields, sizes, constants, libjvm = recording.structs
    stacks, samples = b"", []
    for sample in recording.samples:
        samples.append({**sample._asdict(), "stack": (len(stacks), len(sample.stack))})
        stacks += sample.stack
    index = {
        "structs": {
            "fields": [(owner, name, list(field)) for (owner, name), field in sorted(fields.items())],
            "sizes": sizes,
            "constants": constants,
            "libjvm": libjvm,
        },
        "pages": sorted(recording.pages),
        "samples": samples,
        "flags": recording.flags,
    }
    text = json.dumps(index, separators=(",", ":")).encode()
    pages = b"".join(bytes(recording.pages[number]) for number in sorted(recording.pages))
    return struct.pack("<Q", len(text)) + text + pages + stacks


class Unwinding:
    """The unwinder on a memory, with all that reads Java objects."""

    def __init__(self, structs, memory) -> None:
        from opskit.jvm.memory.objects import Objects
        from opskit.jvm.memory.threads import JavaThreads
        from opskit.jvm.unwind.java import JavaUnwinder
        from opskit.jvm.unwind.virtual import VirtualThreads

        self.structs, self.memory = structs, memory
        self.java = JavaUnwinder(structs, memory)
        objects = Objects(structs, memory)
        self.threads = JavaThreads(structs, memory, objects)
        self.unwinders = [self.java]
        if structs.find(("JavaThread", "_vthread")) is not None:
            self.unwinders.insert(0, VirtualThreads(structs, objects, self.java))

    def walk(self, registers, stack):
        """The stack of a sample."""
        from opskit.proc.unwind.walk import walk

        return walk(registers, stack, self.unwinders)

    def forget(self):
        """Read everything anew."""
        for each in (self.java, self.threads, *self.unwinders[:-1]):
            each.forget()

    def flags(self):
        """The flags that are recorded."""
        from opskit.jvm.memory.flags import read_flags

        return read_flags(self.structs, self.memory, FLAGS)


def structs_of(recording: Recording):
    """The VmStructs of a recording."""
    from opskit.jvm.memory.vmstructs import VmField, VmStructs

    fields, sizes, constants, libjvm = recording.structs
    return VmStructs({key: VmField(*field) for key, field in fields.items()}, sizes, constants, libjvm)


def record(version: int) -> Recording:
    """Start a JVM, sample it, and record what unwinding reads."""
    import jvms

    from opskit.host import Host
    from opskit.jvm.memory.vmstructs import VmStructs, read_vmstructs
    from opskit.proc.kernel.cpu_samples import CpuSampler
    from opskit.proc.memory import ProcessMemory, RecordedMemory

    fs = Host.at(None, None).fs
    jvm = jvms.run(["env", "-i", jvms.java(version), *OPTIONS, "-cp", jvms.classes(), "Virtual", *MODES[version]])
    try:
        live = ProcessMemory(fs, jvm.pid)
        fields, sizes, constants, libjvm = read_vmstructs(fs, jvm.pid, live)
        seen = VmStructs(_Seen(fields), _Seen(sizes), _Seen(constants), libjvm)
        with CpuSampler(fs, jvm.pid, HZ) as sampler:
            time.sleep(WARM_UP_S)
            sampler.drain()
            time.sleep(SECONDS)
            found = sampler.drain()
        live.forget()
        memory = RecordingMemory(live)
        unwinding = Unwinding(seen, memory)
        samples = _distinct(unwinding, found)
        flags = unwinding.flags()
    finally:
        jvm.stop()
    structs = tuple(part.kept() for part in seen[:3])
    recording = Recording(
        (*structs, libjvm), {number: bytes(page) for number, page in memory.pages.items()}, samples, flags
    )
    replayed = Unwinding(structs_of(recording), RecordedMemory(recording.pages))
    for sample in samples:
        stack = replayed.walk(sample.registers, sample.stack)
        assert [list(frame) for frame in stack.frames] == [list(frame) for frame in sample.frames], sample
        assert (stack.end, stack.virtual) == (sample.end, sample.virtual)
    return recording


def _distinct(unwinding, found) -> list[RecordedSample]:
    """Samples whose leaves are Java code, one of each stack, the deepest ones first within an equal share per leaf's kind."""
    from opskit.proc.unwind.cursor import PC, RSP

    stacks = {}
    for sample in found:
        if sample.registers and unwinding.java.owns(sample.registers[PC] or 0):
            stack = unwinding.walk(sample.registers, sample.stack)
            used = _used(unwinding, sample)
            name = unwinding.threads.name(sample.tid)
            key = (stack.end, stack.virtual is None, sample.registers[PC], tuple(frame.name for frame in stack.frames))
            kept = sample.stack[: used - (sample.registers[RSP] or 0)] if used else sample.stack
            stacks.setdefault(
                key,
                RecordedSample(
                    sample.tid,
                    name,
                    list(sample.registers),
                    kept,
                    [list(frame) for frame in stack.frames],
                    stack.end,
                    stack.virtual,
                ),
            )
    by_leaf = {}
    for sample in stacks.values():
        by_leaf.setdefault((sample.frames[0][0] if sample.frames else "", sample.virtual is None), []).append(sample)
    chosen, groups = [], [sorted(group, key=lambda each: -len(each.frames)) for group in by_leaf.values()]
    while len(chosen) < MOST_STACKS and any(groups):
        chosen += [group.pop(0) for group in groups if group]
    return chosen[:MOST_STACKS]


def _used(unwinding, sample) -> int:
    """The end of the part of the stack that the walk needs, where it leaves Java code; 0: unknown."""
    from opskit.proc.unwind.cursor import PC, RSP, Cursor

    cursor = Cursor(sample.registers, sample.stack)
    for _ in range(4096):
        owner = next((each for each in unwinding.unwinders if each.owns(cursor.registers[PC] or 0)), None)
        if owner is None:
            return cursor.registers[RSP] or 0
        if not owner.step(cursor):
            return 0
    return 0


def main() -> None:
    """Record all JDKs."""
    FIXTURES.mkdir(parents=True, exist_ok=True)
    for version in [int(each) for each in sys.argv[1:]] or JDKS:
        recording = record(version)
        data = packed(recording)
        path = FIXTURES / f"jdk-{version}.xz"
        path.write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))
        ends = [sample.end for sample in recording.samples]
        print(
            path.name, path.stat().st_size, len(data), len(recording.pages), {end: ends.count(end) for end in set(ends)}
        )


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[2])]
    main()
