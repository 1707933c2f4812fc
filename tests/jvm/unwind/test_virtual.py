"""Virtual threads of real JVMs: their names, their frames on the carrier's stack and in the heap."""

from __future__ import annotations

import struct
import time

import jvms
import pytest

from opskit.collect.cpu_target import CpuTarget
from opskit.host import Host
from opskit.jvm.unwind import virtual
from opskit.proc.kernel.cpu_samples import CpuSampler
from opskit.proc.unwind.cursor import REGISTERS, RSP, Cursor, Frame

VERSIONS = (21, 25)
ENTRY, GAP = "jdk.internal.vm.Continuation.enterSpecial", "[frames in the heap]"
HZ, ROUND_S, MOST_ROUNDS = 397, 0.1, 40
LAYOUTS = {
    "G1": (),
    "wide pointers": ("-XX:-UseCompressedOops",),
    "ZGC": ("-XX:+UseZGC",),
    "compiled": ("-Xcomp", "-XX:TieredStopAtLevel=1"),
    "interpreted": ("-Xint",),
}
CASES = [
    (21, "G1"),
    (21, "wide pointers"),
    (21, "compiled"),
    (25, "G1"),
    (25, "ZGC"),
    (25, "compiled"),
    (25, "interpreted"),
]


def stacks(modes, version, options=(), wanted=100):
    """So many stacks of a program's virtual threads, by the frames' names."""
    jvm = jvms.run([jvms.java(version), "-Xmx128m", *options, "-cp", jvms.classes(), "Virtual", *modes.split()])
    host, found = Host.at(None, None), []
    try:
        target = CpuTarget(host, jvm.pid)
        with CpuSampler(host.fs, jvm.pid, HZ) as sampler:
            for _ in range(MOST_ROUNDS):
                time.sleep(ROUND_S)
                samples = sampler.drain()
                target.refresh()
                found += filter(_is_own, map(target.walk, samples))
                if len(found) >= wanted:
                    break
        target.close()
    finally:
        jvm.stop()
    return found


def _is_own(stack):
    return any(frame.name.startswith("Virtual.") for frame in stack.frames)


def names(stack):
    """The frames' names."""
    return [frame.name for frame in stack.frames]


@pytest.mark.parametrize(("version", "layout"), CASES)
def test_frames_in_the_heap(root_only, version, layout):
    """71 calls lie between the frame that burns and the entry; below it are the carrier's frames, down to its root."""
    found = stacks("lazy=1", version, LAYOUTS[layout])
    _check_whole(found)
    assert {stack.virtual[:1] for stack in found if stack.virtual} == {"#"}


@pytest.mark.parametrize(("version", "layout"), [(21, "G1"), (25, "G1"), (25, "ZGC")])
def test_frames_in_two_chunks_of_the_heap(root_only, version, layout):
    """A chunk that a collector has moved takes no frames any more: the newest ones get one of their own.

    ZGC leaves the thread's field with the place where its Continuation was: nothing then proves whose it is.
    """
    found = stacks("lazy=1 collect=1", version, LAYOUTS[layout])
    _check_whole(found)
    assert {stack.virtual[:1] for stack in found if stack.virtual} <= (
        {"#", virtual.UNKNOWN_VIRTUAL} if layout == "ZGC" else {"#"}
    )


def _check_whole(found):
    whole = [names(stack) for stack in found if GAP not in names(stack) and stack.end == "root"]
    assert len(whole) >= len(found) / 2 > 5
    for each in whole:
        calls = [name for name in each if name in ("Virtual.first", "Virtual.second")]
        assert calls == ["Virtual.first", "Virtual.second"] * 35 + ["Virtual.first"]
        assert (
            each.index("Virtual.sleepAndBurn") < each.index("Virtual.first") < each.index("java.lang.VirtualThread.run")
        )
        below = each[each.index(ENTRY) :]
        assert "java.util.concurrent.ForkJoinWorkerThread.run" in below
        assert not any(name.startswith("Virtual.") for name in below)
    assert {stack.end for stack in found if GAP in names(stack)} <= {"heap", "torn"}


@pytest.mark.parametrize("version", VERSIONS)
def test_names_of_virtual_threads(root_only, version):
    """Several of them on one program's carriers, each by its own name.

    One that was never unmounted has all of its frames on the carrier's stack.
    """
    mixed = stacks("named=3 flat=1", version, ("-Djdk.virtualThreadScheduler.parallelism=2",), 150)
    flat = [stack for stack in mixed if "Virtual.burnForever" in names(stack)]
    assert flat
    for stack in flat:
        assert GAP not in names(stack)
        assert names(stack).index("Virtual.burnForever") < names(stack).index(ENTRY)
        assert stack.end == "root"
    found = [stack for stack in mixed if stack not in flat]
    assert {stack.virtual for stack in found} - {None, "?"} == {"request-0", "request-1", "request-2"}
    assert sum(stack.virtual in (None, "?") for stack in found) <= len(found) / 10


@pytest.mark.parametrize("version", VERSIONS)
def test_a_thread_that_has_gone_on(root_only, version):
    """Frames in the heap are read after the sample: those of another way down to the same method are never taken."""
    burning = [found for found in map(names, stacks("paths=2", version, wanted=200)) if _ways(found, "Virtual.burn{}")]
    assert len(burning) > 20
    for found in burning:
        assert _ways(found, "Virtual.{}") <= _ways(found, "Virtual.burn{}")
    assert {way for found in burning for way in _ways(found, "Virtual.burn{}")} == {"left", "right"}


@pytest.mark.parametrize(
    ("in_heap", "on_stack", "expected"),
    [
        (0x7F00_0000_1000, 0x7F00_0000_1000, 1),
        (0x7F00_0000_1000, 0x7F00_0000_2000, None),
        (0, 1, None),  # a flag
        (0xDEAD_BEEF_0000_0001, 0xDEAD_BEEF_0000_0000, None),  # a flag beside the rest of an older frame
        (0xDEAD_BEEF_0000_0001, 0xFEED_BEEF_0000_0001, 0),
        (0xFACE_BEEF_DEAD_BEEF, 0xCAFE_FEED_BEEF_DEAD, 0),  # computed
        (0x0000_0007_DEAD_BEEF, 0x0000_0008_DEAD_BEEF, None),
    ],
)
def test_what_a_frame_is_known_by(in_heap, on_stack, expected):
    """Addresses, counters and flags, also in one half of a word; not what is computed."""
    registers = [None] * REGISTERS
    registers[RSP] = 0x1000
    callee = virtual._Callee(Frame("shared", "compiled"), 0x1008, Cursor(registers, struct.pack("<Q", on_stack)))
    chunk = virtual._Chunk(0x8000, struct.pack("<Q", in_heap), 0, 1, 0, (), {})
    assert callee.same(chunk, 0, 1, 1) == expected


def _ways(found, method):
    return {way for way in ("left", "right") if method.format(way.title() if "burn" in method else way) in found}
