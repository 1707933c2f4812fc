"""The unwinder on recorded samples of real JVMs: the expected stacks, and damaged memory, stacks and registers."""

from __future__ import annotations

import random
import re

import pytest
import recordsamples

from opskit.errors import NotSupported
from opskit.jvm.memory import methods
from opskit.jvm.unwind import code_index
from opskit.proc.memory import RecordedMemory
from opskit.proc.unwind.cursor import REGISTERS

PAGE = 4096
# Per JDK: memory is damaged so often, each time for so many samples, of which all but the first are damaged themselves.
MEMORIES, SAMPLES_EACH = 200, 52
MOST_READS, MOST_FRAMES = 60_000, 4096
SECRET = re.compile(rb"/(home|root|work|usr|opt|tmp|var)/|PATH=|USER=|HOME=|LOGNAME|hostname", re.IGNORECASE)
INTERESTING = (
    0,
    1,
    7,
    8,
    0xFF,
    0xFFFF,
    1 << 31,
    (1 << 32) - 1,
    1 << 47,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
    (1 << 64) - 8,
)


class BoundedMemory(RecordedMemory):
    """Fails a walk that does not end: after so many reads, or so many bytes."""

    reads = asked = 0

    def read(self, address, size):
        """As RecordedMemory."""
        self.reads += 1
        self.asked += size
        assert self.reads <= MOST_READS, "an endless loop"
        assert 0 <= self.asked <= 1 << 31
        page, at = self.pages.get(address // PAGE, b""), address % PAGE
        return page[at : at + size] if 0 <= size <= len(page) - at else super().read(address, size)


@pytest.fixture(scope="module", params=recordsamples.JDKS)
def recording(request):
    """The recording of a JDK."""
    return recordsamples.load(request.param)


def test_the_recorded_stacks_are_unwound(recording):
    """Each frame's name, kind, source file and line; the end and the virtual thread. Names of threads, values of flags."""
    unwinding = recordsamples.Unwinding(recordsamples.structs_of(recording), RecordedMemory(recording.pages))
    for sample in recording.samples:
        stack = unwinding.walk(sample.registers, sample.stack)
        assert [list(frame) for frame in stack.frames] == sample.frames
        assert (stack.end, stack.virtual) == (sample.end, sample.virtual)
        assert unwinding.threads.name(sample.tid) == sample.thread
    assert unwinding.flags() == recording.flags
    assert recording.flags["MaxHeapSize"] == 400 << 20


def test_what_is_kept_is_bounded(recording, monkeypatch):
    """With room for one compiled method and for few lines, the same stacks are unwound."""
    monkeypatch.setattr(code_index, "_MOST_KEPT_BYTES", 1)
    monkeypatch.setattr(methods, "_MOST_LINES", 100)
    unwinding = recordsamples.Unwinding(recordsamples.structs_of(recording), RecordedMemory(recording.pages))
    lines = []
    for sample in recording.samples:
        assert [list(frame) for frame in unwinding.walk(sample.registers, sample.stack).frames] == sample.frames
        index = unwinding.java.index
        assert len(index._blobs) <= 1
        lines.append(sum(len(method._lines) for _, method in index.methods._known.values()))
    assert 0 < max(lines) < 1000


def test_the_recordings_show_what_they_are_for(recording):
    """Interpreted, compiled and inlined frames, line numbers, deep recursion, long names; virtual threads where they exist."""
    frames = [frame for sample in recording.samples for frame in sample.frames]
    assert {"interpreted", "compiled", "inlined"} <= {kind for _, kind, _, _ in frames}
    assert ("Virtual.java", True) in {(source, (line or 0) > 0) for _, _, source, line in frames}
    assert max(len(sample.frames) for sample in recording.samples) >= 25
    assert {sample.end for sample in recording.samples} == {"rule"}  # native code, whose libraries are not recorded
    assert any((sample.thread or "").startswith("a platform thread with a long name: ") for sample in recording.samples)
    if ("JavaThread", "_vthread") in recording.structs[0]:
        lazy = [
            sample for sample in recording.samples if any(name == "Virtual.sleepAndBurn" for name, *_ in sample.frames)
        ]
        names = [[name for name, *_ in sample.frames] for sample in lazy]
        assert all(sample.virtual for sample in lazy)
        assert any(each.count("Virtual.first") == each.count("Virtual.second") + 1 == 36 for each in names)
        assert all(each.index("jdk.internal.vm.Continuation.enterSpecial") < len(each) - 3 for each in names)


def test_the_recordings_hold_no_secrets(recording):
    """No paths of the recording machine, no user names, no environment."""
    for data in (*recording.pages.values(), *(sample.stack for sample in recording.samples)):
        found = SECRET.search(data)
        assert found is None, data[max(0, found.start() - 40) : found.end() + 40]


def test_damaged_samples_and_memory(recording):
    """10,400 mutations per JDK: no exception, no endless loop, at most so many frames."""
    dice = random.Random(len(recording.pages))  # noqa: S311  (not for secrets)
    structs, numbers = recordsamples.structs_of(recording), sorted(recording.pages)
    pointers = [number * PAGE for number in numbers]
    for round_ in range(MEMORIES):
        memory = BoundedMemory(dict(recording.pages))
        for _ in range(dice.choice((1, 1, 2, 8))):
            number = dice.choice(numbers)
            memory.pages[number] = damaged(memory.pages[number], dice, pointers)
        try:
            unwinding = recordsamples.Unwinding(structs, memory)
        except NotSupported:
            continue
        if round_ % 8 == 0:
            unwinding.flags()
            unwinding.forget()
        for turn in range(SAMPLES_EACH):
            memory.reads = memory.asked = 0
            sample = dice.choice(recording.samples)
            registers, stack = sample.registers, sample.stack
            if turn % 3 == 1:
                stack = damaged(stack, dice, pointers)
            elif turn % 3 == 2:
                registers = [*registers]
                registers[dice.randrange(REGISTERS)] = word(dice, pointers)
            found = unwinding.walk(registers, stack)
            assert len(found.frames) <= MOST_FRAMES
            assert all(frame.name for frame in found.frames)
            unwinding.threads.name(sample.tid)


def damaged(data, dice, pointers):
    """The bytes with one change: a bit, a byte, a word, a piece of it elsewhere, or its end cut off."""
    data = bytearray(data)
    at, kind = dice.randrange(len(data)), dice.randrange(8)
    if kind == 0:
        data[at] ^= 1 << dice.randrange(8)
    elif kind == 1:
        data[at] = dice.randrange(256)
    elif kind == 2:
        del data[at:]
    elif kind == 3:
        size = dice.randrange(1, 256)
        begin = dice.randrange(len(data))
        data[at : at + size] = data[begin : begin + len(data[at : at + size])]
    else:
        at &= ~7
        data[at : at + 8] = word(dice, pointers).to_bytes(8, "little")[: len(data) - at]
    return bytes(data)


def word(dice, pointers):
    """A word: a number at a limit, an address in the recorded memory, or any."""
    kind = dice.randrange(4)
    if kind == 0:
        return dice.choice(INTERESTING)
    if kind == 1:
        return dice.randrange(1 << 64)
    return (dice.choice(pointers) + dice.randrange(PAGE)) & (~7 if kind == 2 else ~0)
