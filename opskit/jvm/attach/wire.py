r"""The bytes of HotSpot's attach protocol (src/hotspot/share/services/attachListener.cpp), both versions. Pure.

    version 1, JDK 6 and later   1\0threaddump\0-e\0\0\0            always three arguments
    version 2, JDK 24 and later  2\0<bytes>\0threaddump streaming=0\0-e\0   `bytes` counts all that follows its NUL
    the reply to both            0\n2025-11-21 11:02:13\nFull thread dump …    a code, then text to the end of the stream

On JDK 25 a version 1 reply is written while the JVM stands at its safepoint, as fast as the client reads. Version 2 with
`streaming=0` collects it first, as older JVMs always do.
"""

from __future__ import annotations

import re

from opskit.errors import AttachCommandFailed, AttachProtocol, AttachReplyCut, UsageError
from opskit.quantities import integer, signed

_NAME_BYTES, _ARGUMENT_BYTES, _ARGUMENTS = 16, 1024, 3
_V2_BYTES = 256 << 10
_CODE_BYTES = 11  # a C int
_BAD_VERSION = 101
# How large a reply may be, by command; any other is a page or two. 32,768 threads (pid_max) with 8 KiB of stack each; a million
# classes of 128 bytes; the longest tables that jcmd prints.
LARGEST_REPLY_BYTES = {"threaddump": 256 << 20, "inspectheap": 128 << 20, "jcmd": 64 << 20}
LARGEST_OTHER_REPLY_BYTES = 4 << 20
LARGEST_DUMP_FILE_BYTES = 1 << 30  # what Thread.dump_to_file writes: a million virtual threads of 1 KiB each
# Where the text of a reply ends, when it is whole: a JVM that dies meanwhile closes the stream as well.
_DUMP_END = re.compile(rb"^JNI global ref", re.MULTILINE)
_HISTOGRAM_END = rb"(?m)^Total\s+\d+\s+\d+\s*$"


def encode_v1(command: str, arguments: tuple[str, ...]) -> bytes:
    """A version 1 request. Raises UsageError for what no JVM could take (the JVM would close without a word)."""
    words = [word.encode() for word in (command, *arguments)]
    _check_words(words)
    if len(arguments) > _ARGUMENTS or any(len(word) > _ARGUMENT_BYTES for word in words[1:]):
        raise UsageError(
            f"{command}: this JVM takes up to {_ARGUMENTS} arguments of up to {_ARGUMENT_BYTES} bytes; shorten them"
        )
    # JDK 8 does not step over an empty argument: it would take what follows as empty too.
    filled = [bool(word) for word in words[1:]]
    if filled != sorted(filled, reverse=True):
        raise UsageError(f"{command}: an empty argument may not stand before another one")
    words += [b""] * (1 + _ARGUMENTS - len(words))
    return b"1\0" + b"".join(word + b"\0" for word in words)


def encode_v2(command: str, arguments: tuple[str, ...]) -> bytes:
    """A version 2 request that asks for the reply to be collected before it is sent. Raises UsageError."""
    words = [word.encode() for word in (command, *arguments)]
    _check_words(words)
    words[0] += b" streaming=0"
    body = b"".join(word + b"\0" for word in words)
    if len(body) > _V2_BYTES:
        raise UsageError(f"{command}: {len(body)} bytes of arguments; a JVM takes up to {_V2_BYTES}")
    return b"2\0%d\0" % len(body) + body


def _check_words(words: list[bytes]) -> None:
    if any(b"\0" in word for word in words):
        raise UsageError("an argument to a JVM cannot hold a NUL")
    if not 0 < len(words[0]) <= _NAME_BYTES or b" " in words[0]:
        raise UsageError(f"{words[0].decode()!r} is no attach command: one word of up to {_NAME_BYTES} bytes")


def speaks_v2(code: int, text: bytes) -> bool:
    """Whether the answer to `getversion options` (`2 streaming`; -1 on JDKs that do not know it) promises version 2."""
    version = integer(next(iter(text.split(None, 1)), b""))
    return code == 0 and version is not None and version >= 2


def split_reply(reply: bytes, pid: int) -> tuple[int, bytes]:
    """(code, text) of a whole reply that is not empty. Raises AttachReplyCut and AttachProtocol."""
    head, newline, text = reply.partition(b"\n")
    if not newline:
        if signed(head) == _BAD_VERSION:
            return _BAD_VERSION, b""
        raise AttachReplyCut(pid, f"only {len(reply)} bytes came, and no whole line", len(reply))
    code = signed(head) if len(head) <= _CODE_BYTES else None
    if code is None:
        found = head[:60].decode("utf-8", "backslashreplace")
        raise AttachProtocol(
            f"{pid} answered {found!r} where a result code belongs: that is no HotSpot attach listener"
        )
    return code, text


def result_of(reply: bytes, pid: int, command: str) -> bytes:
    """The text of a reply that says 0. Raises AttachCommandFailed with the JVM's own words, and what split_reply raises."""
    code, text = split_reply(reply, pid)
    if code == 0:
        return text
    if code == _BAD_VERSION:
        raise AttachProtocol(f"{pid} does not speak this version of the attach protocol (it answered 101)")
    said = decode(text).strip() or "nothing more"
    raise AttachCommandFailed(pid, command, code, said)


def check_thread_dump(text: bytes, pid: int) -> bytes:
    """The text, where it is a whole thread dump. Raises AttachReplyCut."""
    if not _DUMP_END.search(text):
        raise AttachReplyCut(pid, "the thread dump has no end (no line `JNI global refs`)", len(text))
    return text


def check_histogram(text: bytes, pid: int) -> bytes:
    """The text, where it is a whole class histogram. Raises AttachReplyCut."""
    if not re.compile(_HISTOGRAM_END).search(text, max(0, len(text) - 200)):
        raise AttachReplyCut(pid, "the histogram has no end (no line `Total`)", len(text))
    return text


def decode(text: bytes) -> str:
    """What the JVM said. It writes characters beyond U+FFFF as two surrogates; bytes that are no UTF-8 stay as surrogates."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        pass
    try:
        return text.decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return text.decode("utf-8", "surrogateescape")
