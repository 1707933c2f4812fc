"""Whether the bytes before an address are a call, compared with the assembler."""

from __future__ import annotations

import re

import nativeprograms
import pytest

from opskit.proc.unwind.calls import ends_with_call

CALLS = [
    "call *%rax", "call *%r11", "call *(%rax)", "call *(%r12)", "call *(%rsp)", "call *8(%rax)", "call *8(%rsp)",
    "call *0x1234(%rbx)", "call *0x1234(%r12,%rcx,8)", "call *foo(%rip)", "call *(%rax,%rcx,4)", "call *0x11223344(,%rcx,8)",
    "call foo", "call *(%rbp)", "call *0x7f(%r13)",
]  # fmt: skip
OTHERS = [
    "jmp *%rax",
    "jmp *8(%rax)",
    "jmp foo",
    "push %rax",
    "ret",
    "mov %rax, %rbx",
    "incl (%rax)",
    "pushq 8(%rax)",
    "nop",
]


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    """The bytes of each instruction."""
    place = tmp_path_factory.mktemp("calls")
    (place / "calls.s").write_text("".join(f"{each}\n" for each in [*CALLS, *OTHERS]))
    nativeprograms.run("as", "-o", place / "calls.o", place / "calls.s")
    text = nativeprograms.run("objdump", "-d", "-w", place / "calls.o")
    found = [bytes.fromhex(each) for each in re.findall(r"^ +[0-9a-f]+:\t([0-9a-f ]+)\t", text, re.MULTILINE)]
    assert len(found) == len(CALLS) + len(OTHERS)
    return found


def test_all_forms_of_calls_are_known(code):
    """Direct, through registers, and through memory in all its forms."""
    assert [name for name, each in zip(CALLS, code) if not ends_with_call(b"\x90" * 8 + each)] == []


def test_other_instructions_are_no_calls(code):
    """Jumps, pushes and returns."""
    assert [name for name, each in zip(OTHERS, code[len(CALLS) :]) if ends_with_call(b"\x90" * 8 + each)] == []


def test_short_code_is_no_call():
    """What cannot be read is no call."""
    assert not any(ends_with_call(bytes(size)) for size in range(9))
    assert not ends_with_call(b"\xff")
