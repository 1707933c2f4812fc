"""What x86-64 code tells about its frame and its calls."""

from __future__ import annotations

import pytest

from opskit.jvm.unwind.instructions import EPILOGUE_BYTES, call_target, frame_state

BANG = bytes.fromhex("89842400c0feff")  # mov [rsp - 0x14000], eax
C2 = BANG + bytes.fromhex("554883ec20")  # push rbp; sub rsp, 0x20: a frame of 48 bytes
C1 = BANG + bytes.fromhex("55488bec4883ec20")  # with mov rbp, rsp
LARGE = bytes.fromhex("4881ec2001000048896c2410")  # sub rsp, 0x120; mov [rsp + 0x10], rbp: a frame of 296 bytes
BODY = bytes.fromhex("4803c24883c4205d493ba7480400000f8700100000c3")


def states(code, frame_bytes, complete, offsets):
    def around(offset):
        return (b"\xcc" + code)[offset : offset + 1 + EPILOGUE_BYTES]

    return [frame_state(code[: complete + 16], around(at), at, frame_bytes, complete) for at in offsets]


def test_the_frame_in_a_prologue():
    """Before the push, behind it, and when rsp is lowered; also with a frame pointer, and when rbp is stored."""
    assert states(C2 + BODY, 48, 12, (0, 7, 8, 12, 15)) == ["returning", "returning", "pushed", "built", "built"]
    assert states(C1 + BODY, 48, 15, (7, 8, 11, 15)) == ["returning", "pushed", "pushed", "built"]
    assert states(LARGE + BODY, 296, 12, (0, 7, 12)) == ["returning", "unsaved", "built"]


def test_a_prologue_that_is_not_the_method_s():
    """Another frame size in the code proves nothing: the return address is taken to be on top, and is checked."""
    assert states(C2, 64, 12, (8,)) == ["returning"]


def test_the_frame_in_an_epilogue():
    """Behind `add rsp` rbp is on top, behind `pop rbp` the return address, up to the return with its poll."""
    at = len(C2)
    assert states(C2 + BODY, 48, 12, (at, at + 3, at + 7, at + 8, at + 15, at + 21)) == [
        "built", "built", "pushed", "returning", "returning", "returning",
    ]  # fmt: skip


@pytest.mark.parametrize("poll", ["418502c3", "4d8b9708010000418502c3", "850512345678c3", "c3", "c20000", "f3c3"])
def test_polls_before_a_return(poll):
    """Those of JDK 8 and 11, and returns."""
    assert states(C2 + bytes.fromhex(poll), 48, 12, (12,)) == ["returning"]


def test_a_poll_in_a_loop():
    """The same instruction is no epilogue where no return follows."""
    assert states(C2 + bytes.fromhex("418502") + bytes(9), 48, 12, (12,)) == ["built"]


def test_the_second_prologue():
    """C1's entry for on-stack replacement builds the frame once more."""
    code = C2 + bytes(20) + bytes.fromhex("554883ec20")
    assert states(code, 48, 12, (32, 33, 37)) == ["returning", "pushed", "built"]


def test_code_without_a_frame():
    """Intrinsics of method handles have a frame size of 0."""
    assert states(C2, 0, 0, (0, 12)) == ["returning", "returning"]


def test_the_target_of_a_call():
    """Relative to the next instruction, forwards and backwards."""
    assert call_target(bytes.fromhex("9090e810000000"), 0x1000) == 0x1010
    assert call_target(bytes.fromhex("9090e8f0ffffff"), 0x1000) == 0xFF0
    assert call_target(bytes.fromhex("909090909041ffd2"), 0x1000) is None
    assert call_target(b"\xe8\0\0", 0x1000) is None
