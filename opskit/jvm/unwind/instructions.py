"""What x86-64 code shows about its frame at a pc: how far HotSpot's prologue or epilogue got, and what a call calls."""

from __future__ import annotations

from typing import Literal

# Where the caller's return address and rbp are. built: both at the frame's upper end. returning: the return address at [rsp], rbp in
# its register. pushed: rbp at [rsp], the return address above it. unsaved: the frame is built, but rbp is still in its register.
FrameState = Literal["built", "returning", "pushed", "unsaved"]

CALL_BYTES = 7  # the longest indirect call
EPILOGUE_BYTES = 12
_PUSH_RBP, _POP_RBP, _RET, _RET_POPPING = 0x55, 0x5D, 0xC3, 0xC2
_MOVES_TO_RBP = (b"", b"\x48\x8b\xec", b"\x48\x89\xe5")  # mov rbp, rsp
_STORES_OF_RBP = (b"\x48\x89\x6c\x24", b"\x48\x89\xac\x24")  # mov [rsp + …], rbp
_COMPARES_WITH_POLL = (b"\x49\x3b\x67", b"\x49\x3b\xa7")  # cmp rsp, [r15 + …]: only before a return
_BEFORE_RETURN = (
    (b"\x0f\x87", 6),  # ja, to the slow path of the poll
    (b"\x77", 2),
    (b"\x4d\x8b\x57", 7),  # mov r10, [r15 + …]; test [r10], eax
    (b"\x4d\x8b\x97", 10),
    (b"\x41\x85\x02", 3),  # test [r10], eax
    (b"\x85\x05", 6),  # test eax, [rip + …]
    (b"\xf3", 1),
)


def call_target(before: bytes, pc: int) -> int | None:
    """The target of the direct call that ends at the pc."""
    if len(before) < CALL_BYTES or before[-5] != 0xE8:
        return None
    return pc + int.from_bytes(before[-4:], "little", signed=True)


def _sub_rsp(size: int) -> tuple[bytes, ...]:
    """The instructions that lower rsp by so much."""
    long = b"\x48\x81\xec" + size.to_bytes(4, "little")
    return (b"\x48\x83\xec" + bytes((size,)), long) if size < 128 else (long,)


def frame_state(head: bytes, around: bytes, offset: int, frame_bytes: int, frame_complete: int) -> FrameState:
    """How far the frame at an offset of the code is built.

    `head`: the code up to where its frame is complete; `around`: the byte before the pc, then at least EPILOGUE_BYTES.
    """
    if frame_bytes < 16:
        return "returning"
    if offset < frame_complete:
        return _in_prologue(head, offset, frame_bytes)
    at_pc = around[1:]
    if at_pc[:1] == bytes((_POP_RBP,)):
        return "pushed"
    if _is_return(at_pc) or at_pc.startswith(_COMPARES_WITH_POLL):
        return "returning"
    if any(at_pc.startswith(begin) and _is_return(at_pc[size:]) for begin, size in _BEFORE_RETURN):
        return "returning"
    return _in_second_prologue(around[:1], at_pc, frame_bytes)


def _is_return(code: bytes) -> bool:
    return code[:1] == bytes((_RET,)) or (code[:1] == bytes((_RET_POPPING,)) and code[2:3] == b"\0")


def _in_prologue(code: bytes, offset: int, frame_bytes: int) -> FrameState:
    """Either `push rbp; [mov rbp, rsp;] sub rsp, …` or `sub rsp, …; mov [rsp + …], rbp`, behind checks and a stack bang."""
    for move in _MOVES_TO_RBP:
        for sub in _sub_rsp(frame_bytes - 16):
            push = code.find(bytes((_PUSH_RBP,)) + move + sub)
            if push >= 0:
                if offset <= push:
                    return "returning"
                return "pushed" if offset <= push + 1 + len(move) else "built"
    for sub in _sub_rsp(frame_bytes - 8):
        for store in _STORES_OF_RBP:
            begin = code.find(sub + store)
            if begin >= 0:
                if offset <= begin:
                    return "returning"
                return "unsaved" if offset <= begin + len(sub) else "built"
    return "returning"


def _in_second_prologue(before: bytes, at_pc: bytes, frame_bytes: int) -> FrameState:
    """C1 builds a frame once more at the entry for on-stack replacement."""
    push, subs = bytes((_PUSH_RBP,)), _sub_rsp(frame_bytes - 16)
    if at_pc[:1] == push and at_pc[1:].startswith(subs):
        return "returning"
    return "pushed" if before == push and at_pc.startswith(subs) else "built"
