"""Short names of frames, and thread names without their numbers. Pure.

A frame in a dump: `java.base@17/java.lang.Thread.run(Thread.java:840)`, or `…run(java.base@17/Thread.java:840)`.
"""

from __future__ import annotations

import re

_LAMBDA = re.compile(r"\$\$Lambda(?:\$\d+)?/(?:0x)?[0-9a-f]+")
_HIDDEN = re.compile(r"/0x[0-9a-f]+")

_NUMBER = re.compile(r"\d+")
_BEFORE_A_NUMBER, _BEHIND_A_NUMBER = "-#_(':. ", ")']-"
_IN_PARENTHESES = re.compile(r" \([^()]*\)$")
_VM_NUMBER = re.compile(r"(?:#|(?<!\d))\d+(?= \(|$)")


def frame_name(frame: str, *, full: bool = False, lines: bool = False) -> str:
    """`java.lang.Thread.run` for the frame; with `lines`, followed by `(Thread.java:840)`.

    Drops module and class loader; unless `full`, also the numbers of hidden classes and lambdas, which change with every start.
    """
    name, place = frame, ""
    if frame.endswith(")"):
        name, _, place = frame[:-1].rpartition("(")
    if not full and "/" in name:
        name, opening, descriptor = name.partition("(")  # frames of SAP's JVM have one
        name = _HIDDEN.sub("", _LAMBDA.sub("$$Lambda", name))
        name = name[name.rfind("/") + 1 :] + opening + descriptor
    if lines and place:
        name += f"({place.rpartition('/')[2]})"
    return name


def short(frame: str) -> str:
    """The frame with a leading `java` shortened to `j`."""
    if not frame.startswith("java") or "::" in frame or "." not in frame:  # a symbol of native code: java_start
        return frame
    return "j" + frame[4:]


def pool_of(thread: str) -> str:
    """`pool-1-thread-17` -> `pool-1-thread-*`: replace the number that distinguishes the threads of a pool.

    That is the last number that stands alone or ends the name, or an earlier one before a final ` (words)`.
    """
    end = len(thread)
    parentheses = thread.rfind(" (") if thread[-1:] == ")" else -1
    if parentheses >= 0 and not _IN_PARENTHESES.match(thread, parentheses):
        parentheses = -1
    chosen = before = None
    for number in _NUMBER.finditer(thread):
        begin, behind = number.span()
        if behind == parentheses:
            before = number
        if behind == end or (
            begin
            and thread[begin - 1] in _BEFORE_A_NUMBER
            and (thread[behind] in _BEHIND_A_NUMBER or thread[behind].isspace())
        ):
            chosen = number
    if before is not None and (chosen is None or before.start() < chosen.start()):
        chosen = before
    return thread if chosen is None else f"{thread[: chosen.start()]}*{thread[chosen.end() :]}"


def vm_frame(thread: str) -> str:
    """The frame shown for a thread without frames: `GC Thread#3` -> `[GC Thread]`."""
    return f"[{_VM_NUMBER.sub('', thread)}]"


def literal(name: str) -> str:
    """The regular expression that matches this name only; re.escape() would escape spaces and `-` too."""
    return re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", name)
