"""Frames by frame pointers, named by a perf map."""

from __future__ import annotations

import struct
from types import SimpleNamespace

from opskit.collect.cpu_profile import CpuProfile, StackKey
from opskit.collect.perf_map import with_later_names
from opskit.jvm.unwind.frame_pointers import CompiledCode, FramePointers, frame_of
from opskit.proc.unwind.cursor import PC, RBP, REGISTERS, RSP, Frame
from opskit.proc.unwind.perf_map import parse_perf_map
from opskit.proc.unwind.walk import walk

# Written by JDK 21.
MAP = b"""0x00007f2f808ca080 0x00000000000000e0 long Workload.work(long)
0x00007f2f808c74a0 0x00000000000004d8 java.lang.Object jdk.internal.misc.Unsafe.getReferenceVolatile(java.lang.Object, long)
0x00007f2f8033fb00 0x0000000000018ae8 Interpreter
0x00007f2f80341c00 0x0000000000000050 StubRoutines (initial stubs)
"""
WORK, CALLER, UNKNOWN, SP = 0x7F2F808CA0A0, 0x7F2F808C7500, 0x7F2F80900010, 0x7F0000001000
MODULES = SimpleNamespace(find=lambda pc: SimpleNamespace(is_file=False))


def walked(pc, bp, words):
    registers = [None] * REGISTERS
    registers[PC], registers[RSP], registers[RBP] = pc, SP, bp
    unwinder = FramePointers(MODULES, CompiledCode(parse_perf_map(MAP)))
    return walk(registers, struct.pack(f"<{len(words)}Q", *words), [unwinder])


def test_names():
    """Methods without result and parameters; everything else is a stub."""
    assert frame_of("long Workload.work(long)") == Frame("Workload.work", "compiled")
    assert frame_of("void a.B$$Lambda.0x00007f0001000.run()") == Frame("a.B$$Lambda.0x00007f0001000.run", "compiled")
    assert frame_of("StubRoutines (initial stubs)") == Frame("StubRoutines (initial stubs)", "stub")
    assert frame_of("I2C/C2I adapters").kind == "stub"
    assert frame_of("Interpreter") == Frame("Interpreter", "interpreted")
    assert frame_of("").kind == "stub"


def test_the_chain_is_followed():
    """Each frame pointer leads to the next; a return address of 0 is the root."""
    stack = walked(WORK, SP + 8, [0, SP + 40, CALLER, 0, 0, 0, 0])
    assert [frame.name for frame in stack.frames] == ["Workload.work", "jdk.internal.misc.Unsafe.getReferenceVolatile"]
    assert stack.end == "root"


def test_broken_chains_end():
    """A pointer below the stack, unaligned, in a circle, beyond the copy, at its end."""
    assert walked(WORK, SP - 16, [0] * 8).end == "rule"
    assert walked(WORK, SP + 12, [0] * 8).end == "rule"
    assert walked(WORK, SP, [SP, CALLER, SP, CALLER]).end == "rule"
    assert walked(WORK, SP + 4096, [0] * 8).end == "dump"
    assert walked(WORK, None, [0] * 8).end == "rule"


def test_code_that_was_compiled_later():
    """It has its address as its name until a later map names it; equal stacks are then counted together."""
    [frame] = walked(UNKNOWN, 0, [0]).frames
    assert frame == Frame(f"0x{UNKNOWN:x}", "stub")
    known = Frame("a.B.hot", "compiled")
    stacks = {
        StackKey(1, None, (frame,)): 2,
        StackKey(1, None, (known,)): 3,
        StackKey(1, None, (Frame("0xzz", "stub"),)): 1,
    }
    before = CpuProfile(1, 1, "x", 99.0, 1.0, {}, stacks, 0, {}, None, "threads", False)
    after = with_later_names(before, b"%x 100 void a.B.hot()\n" % (UNKNOWN - 0x10))
    assert after.stacks == {StackKey(1, None, (known,)): 5, StackKey(1, None, (Frame("0xzz", "stub"),)): 1}
