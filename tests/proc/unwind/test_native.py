"""Native stacks of real programs, sampled and unwound to the entry of their threads."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import shutil
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import nativeprograms
import pytest

from opskit.proc.fs import ProcFS
from opskit.proc.kernel.cpu_samples import CpuSampler
from opskit.proc.memory import ProcessMemory
from opskit.proc.unwind.cursor import PC, RBP, REGISTERS, RSP, Cursor
from opskit.proc.unwind.modules import Modules
from opskit.proc.unwind.native import NativeUnwinder
from opskit.proc.unwind.walk import walk

if TYPE_CHECKING:
    from opskit.proc.unwind.cursor import Stack

FS = ProcFS()
HZ, ENOUGH = 999, 400
CALLERS_OF_SPIN = ("deep", "in_alloca", "realigned", "handler_work")


def stacks_of(pid, enough=ENOUGH) -> list[Stack]:
    """The walked samples of a process that burns CPU; skip where samples are not permitted."""
    memory = ProcessMemory(FS, pid)
    modules = Modules(FS, pid, memory)
    unwinder = NativeUnwinder(modules, anonymous=True)
    found: list[Stack] = []
    try:
        sampler = CpuSampler(FS, pid, HZ)
    except OSError as error:
        pytest.skip(f"no CPU samples here: {error}")
    deadline = time.monotonic() + 60
    with sampler:
        while len(found) < enough and time.monotonic() < deadline:
            time.sleep(sampler.pause_s)
            modules.forget()
            memory.forget()
            found += [walk(each.registers, each.stack, [unwinder]) for each in sampler.drain() if each.registers]
    memory.close()
    assert len(found) >= enough
    return found


def rooted(stacks):
    """The share of the stacks that end at the entry of a thread."""
    return sum(stack.end == "root" for stack in stacks) / len(stacks)


def pairs(stacks):
    """How often which function calls which."""
    return Counter(
        (caller.name, called.name) for stack in stacks for called, caller in zip(stack.frames, stack.frames[1:])
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory for programs."""
    return tmp_path_factory.mktemp("native")


OPTIONS = {
    "position-independent": ("-O2", "-fomit-frame-pointer"),
    "fixed": ("-O2", "-fomit-frame-pointer", "-no-pie"),
    "static": ("-O2", "-fomit-frame-pointer", "-static"),
}


@pytest.mark.parametrize("kind", OPTIONS)
def test_c_programs_are_unwound_to_their_roots(place, kind):
    """alloca, realigned stacks, the vdso, PLT entries, callbacks of libc, signal handlers: without frame pointers."""
    with nativeprograms.running(nativeprograms.build("stacks.c", place / kind, *OPTIONS[kind])) as pid:
        stacks = stacks_of(pid)
    assert rooted(stacks) >= 0.98
    found = pairs(stacks)
    for pair in [("thread", "realigned"), ("in_alloca", "spin"), ("realigned", "spin"), ("handler", "handler_work")]:
        assert found[pair], pair
    assert {caller for caller, called in found if called == "in_alloca"} == {"thread"}
    assert {caller for caller, called in found if called == "clock_loop"} == {"thread"}
    assert any(called.startswith("__vdso_clock_gettime") for _, called in found)
    assert {stack.frames[-1].name for stack in stacks if stack.end == "root"} <= {
        "_start",
        "clone3",
        "__clone3",
        "clone",
    }
    assert all(frame.kind == "native" for stack in stacks for frame in stack.frames)
    handlers = [[frame.name for frame in stack.frames] for stack in stacks]
    handlers = [names[names.index("handler") :] for names in handlers if "handler" in names]
    assert len(handlers) > 5
    assert {names[1] for names in handlers} <= {"__restore_rt", "[libc.so.6]"}
    # The interrupted pc is not that of a call, and the stack goes on below it.
    assert sum("thread" in names for names in handlers) >= 0.9 * len(handlers)


def test_cxx_programs_are_unwound_through_templates_and_exceptions(place):
    """Names without parameters; the runtime's unwinder on the stack."""
    with nativeprograms.running(nativeprograms.build("stacks.cpp", place / "cxx", "-O1")) as pid:
        stacks = stacks_of(pid)
    assert rooted(stacks) >= 0.98
    found = pairs(stacks)
    assert found["shop::Cart::total", "shop::(anonymous namespace)::burn"]
    assert found["shop::thrower", "__cxa_throw"]


def test_python_is_unwound_as_native_code():
    """The interpreter's own frames."""
    code = (
        "def f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nwhile True: f(15); sorted(range(5000), key=lambda x: -x)"
    )
    with nativeprograms.running(sys.executable, "-c", code) as pid:
        stacks = stacks_of(pid)
    assert rooted(stacks) >= 0.98
    assert sum(any("PyEval" in frame.name for frame in stack.frames) for stack in stacks) > 0.9 * len(stacks)


@pytest.mark.parametrize("named", [True, False], ids=["with a perf map", "without"])
def test_generated_code_is_unwound_by_frame_pointers(named, tmp_path):
    """Node's functions by name where it writes a perf map, else `[unknown]`; below them its native code."""
    if shutil.which("node") is None:
        pytest.skip("needs node")
    script = tmp_path / "burn.js"
    script.write_text("function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }\nfor (;;) fib(24)\n")
    options = ["--perf-basic-prof"] if named else []
    with nativeprograms.running("node", *options, script, settle_s=1, cwd=tmp_path) as pid:
        stacks = stacks_of(pid)
    assert rooted(stacks) >= 0.9
    leaves = Counter(stack.frames[0].name for stack in stacks)
    assert any(("fib" in name) is named and (name == "[unknown]") is not named for name, _ in leaves.most_common(2))


def test_code_without_call_frame_information_is_followed_by_frame_pointers(place):
    """Where the compiler was told to write none, but to keep frame pointers."""
    program = nativeprograms.build(
        "stacks.c", place / "pointers", "-O2", "-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables",
        "-fno-exceptions", "-static-libgcc",
    )  # fmt: skip
    with nativeprograms.running(program) as pid:
        stacks = stacks_of(pid)
    assert rooted(stacks) >= 0.9
    found = pairs(stacks)
    assert found["in_alloca", "spin"]
    # No frame is left out, neither where a function has not set its frame pointer nor where it never does.
    wrong = sum(
        count for (caller, called), count in found.items() if called == "spin" and caller not in CALLERS_OF_SPIN
    )
    assert wrong <= 0.02 * sum(count for (_, called), count in found.items() if called == "spin"), found


def test_the_end_of_the_copied_stack_is_told(place):
    """A walk that needs more than was copied ends with `dump`, not with a frame that was guessed."""
    with nativeprograms.running(nativeprograms.build("stacks.c", place / "cut", "-O2")) as pid:
        memory = ProcessMemory(FS, pid)
        modules = Modules(FS, pid, memory)
        unwinder = NativeUnwinder(modules)
        with CpuSampler(FS, pid, HZ) as sampler:
            time.sleep(0.5)
            samples = [each for each in sampler.drain() if each.registers]
        whole = [walk(each.registers, each.stack, [unwinder]) for each in samples]
        for sample, stack in zip(samples, whole):
            for size in (0, 8, 64, 200, len(sample.stack) - 8):
                cut = walk(sample.registers, sample.stack[:size], [unwinder])
                assert cut.frames == stack.frames[: len(cut.frames)]
                assert cut.end in (stack.end, "dump"), (cut, stack)
        assert any(stack.end == "root" for stack in whole)


def test_damaged_registers_and_stacks_end_a_walk(place):
    """Random registers and words: no exception, a bounded number of frames."""
    import random

    choose = random.Random(5)  # noqa: S311
    with nativeprograms.running(nativeprograms.build("stacks.c", place / "torn", "-O2")) as pid:
        memory = ProcessMemory(FS, pid)
        modules = Modules(FS, pid, memory)
        unwinder = NativeUnwinder(modules, anonymous=True)
        with CpuSampler(FS, pid, HZ) as sampler:
            time.sleep(0.3)
            samples = [each for each in sampler.drain() if each.registers]
        code = [each.registers[PC] for each in samples]
        for _ in range(5000):
            sample = choose.choice(samples)
            registers, stack = [*sample.registers], bytearray(sample.stack)
            for _ in range(choose.randint(0, 3)):
                registers[choose.randrange(REGISTERS)] = choose.choice(
                    (None, 0, 1, (1 << 64) - 1, registers[RSP], choose.choice(code), choose.getrandbits(64))
                )
            for _ in range(choose.randint(0, 40)):
                if len(stack) >= 8:
                    at = choose.randrange(len(stack) // 8) * 8
                    value = choose.choice((0, choose.choice(code), choose.getrandbits(64), (1 << 64) - 1, sample.registers[RSP] + at))  # fmt: skip
                    stack[at : at + 8] = value.to_bytes(8, "little")
            found = walk(registers, bytes(stack), [unwinder])
            assert len(found.frames) <= 2049
            assert found.end in ("root", "dump", "rule", "torn", "deep", "none")


def test_code_without_rules_needs_a_plausible_return_address():
    """In a leaf, words that no call has written are not followed."""
    memory = ProcessMemory(FS, os.getpid())
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\x90" * 32 + b"\xe8" + bytes(4))  # nop, …; call
    text = ctypes.addressof(ctypes.c_char.from_buffer(code))
    unwinder = NativeUnwinder(Modules(FS, os.getpid(), memory), anonymous=True)
    outside = ctypes.cast(ctypes.c_char_p(b"no code"), ctypes.c_void_p).value
    registers: list[int | None] = [None] * REGISTERS
    registers[PC], registers[RSP], registers[RBP] = text, 0x7000, 0
    for word in (0, 1, text, text + 1, text + 36, outside):
        cursor = Cursor(registers, word.to_bytes(8, "little") * 4)
        assert not unwinder.step(cursor)
        assert cursor.end == "rule"
    cursor = Cursor(registers, (text + 37).to_bytes(8, "little") * 4)
    assert unwinder.step(cursor)
    assert (cursor.registers[PC], cursor.registers[RSP]) == (text + 37, 0x7008)
    memory.close()


def test_files_are_closed_with_the_unwinder(place):
    """At once, not when the garbage collector runs: a watch profiles again and again."""
    with nativeprograms.running(nativeprograms.build("stacks.c", place / "closed", "-O2")) as pid:
        gc.collect()
        gc.disable()
        try:
            before = len(os.listdir("/proc/self/fd"))
            stacks_of(pid, 100)
            assert len(os.listdir("/proc/self/fd")) == before
        finally:
            gc.enable()
