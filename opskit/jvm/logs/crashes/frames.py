r"""Frames of a stack as HotSpot prints them (frame.cpp and vmError.cpp of JDK 6 to 26).

C  [libc.so.6+0x14d667]  __memcpy_ssse3+0xb57                 a native function; without a symbol, nothing follows the bracket
V  [libjvm.so+0x8e4b0f]  MethodLiveness::init()+0x4f  (methodLiveness.cpp:136)      the source from JDK 18 on, with symbols
J 473% c2 java.util.jar.JarFile.getEntry(…)… java.base@17.0.7 (22 bytes) @ 0x00007f… [0x00007f…+0x0000000000000354]
J  com.acme.Order.total()V                                                          of JDK 6; %: a loop compiled (OSR)
j  com.acme.Order.total(Ljava/lang/String;)V+3 java.base@25.0.1                     3: index of the bytecode
v  ~StubRoutines::call_stub 0x00007fa37eb38fa6
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.jvm.logs.crashes.record import Frame
from opskit.quantities import hexadecimal, integer

if TYPE_CHECKING:
    from collections.abc import Iterable

KINDS = frozenset("CVJjAv")
_COMPILERS = frozenset({"c1", "c2", "jvmci"})
_SOURCE = re.compile(r"\(([^()\s:]+:[0-9]{1,9})\)")
_MOST_FRAMES, _LONGEST = 4096, 8000


def frames(lines: Iterable[str]) -> list[Frame]:
    """The frames among some lines; any other line is left out."""
    found = []
    for line in lines:
        frame = parse_frame(line)
        if frame is not None:
            found.append(frame)
            if len(found) == _MOST_FRAMES:
                break
    return found


def parse_frame(line: str) -> Frame | None:
    """One frame; None for a line that is none."""
    kind, text = line[:1], line[1:_LONGEST].strip()
    if kind not in KINDS or not line[1:2].isspace() or not text:
        return None
    if kind in "CV":
        return _native(kind, text)
    if kind == "v":
        name = text.split()[0].lstrip("~")
        return Frame(kind, text, name=name or None)
    return _interpreted(text) if kind == "j" else _compiled(kind, text)


def _native(kind: str, text: str) -> Frame:
    library = library_offset = None
    rest = text
    if text.startswith("["):
        inside, _, rest = text[1:].partition("]")
        library, _, at = inside.rpartition("+")
        library_offset = hexadecimal(at)
        rest = rest.strip()
    elif text.startswith("0x"):
        _, _, rest = text.partition(" ")
        rest = rest.strip()
    source = None
    if rest.endswith(")"):
        before, _, last = rest.rpartition(" ")
        found = _SOURCE.fullmatch(last)
        if found:
            source, rest = found[1], before.strip()
    function, plus, into = rest.rpartition("+0x")
    if not plus:
        function = rest
    name, signature = _function(function)
    return Frame(
        kind,
        text,
        library or None,
        name,
        hexadecimal(into) if plus else library_offset if name is None else None,
        signature,
        source=source,
        library_offset=library_offset,
    )


def _function(text: str) -> tuple[str | None, str | None]:
    """(name, its parameters) of a demangled C++ or a C function."""
    start = len("(anonymous namespace)") if text.startswith("(anonymous namespace)") else 0
    at = text.find("operator()", start)
    at = text.find("(", start if at < 0 else at + len("operator()"))
    if at < 0:
        return text or None, None
    return text[:at] or None, text[at:]


def _compiled(kind: str, text: str) -> Frame:
    words = text.split(None, 3)
    at = 1 if integer(words[0].rstrip("%!sbn")) is not None and len(words) > 1 else 0
    compiler = None
    if words[at].lower() in _COMPILERS and len(words) > at + 1:
        compiler, at = words[at].lower(), at + 1
    name, signature = _method(words[at])
    offset = None
    if text.endswith("]"):
        offset = hexadecimal(text[text.rfind("+") + 1 : -1])
        if offset is not None and offset >= 1 << 63:  # before the method's code: in its stub
            offset = None
    return Frame(kind, text, None, name, offset, signature, compiler)


def _interpreted(text: str) -> Frame:
    method = text.split(None, 1)[0]
    open_at = method.find("(")
    before, plus, index = method.rpartition("+")
    if not plus or len(before) < open_at:  # the name of a hidden class may have a + of its own
        before, index = method, ""
    name, signature = _method(before)
    return Frame("j", text, None, name, integer(index), signature)


def _method(text: str) -> tuple[str | None, str | None]:
    name, bracket, rest = text.partition("(")
    return name or None, bracket + rest or None
