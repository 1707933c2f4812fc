r"""The wire format of HotSpot's attach protocol (src/hotspot/share/services/attachListener.cpp), versions 1 and 2. Pure.

    version 1, JDK 6 and later   1\0threaddump\0-e\0\0\0            always three arguments
    version 2, JDK 24 and later  2\0<bytes>\0threaddump streaming=0\0-e\0   `bytes` counts all that follows its NUL
    the reply to both            0\n2025-11-21 11:02:13\nFull thread dump …    a code, then text to the end of the stream

JDK 25 writes a version 1 reply during the safepoint, as fast as the client reads: a slow client makes the pause longer.
Version 2 with `streaming=0` collects the reply first, as older JVMs always do.
"""

from __future__ import annotations

import re
from contextlib import suppress

from opskit.errors import AttachError, UsageError
from opskit.quantities import integer, signed

_NAME_BYTES, _ARGUMENT_BYTES, _ARGUMENTS = 16, 1024, 3
_V2_BYTES = 256 << 10
_CODE_BYTES = 11  # a C int
_BAD_VERSION = 101
# Limit of a reply by command: 32,768 threads (pid_max) of 8 KiB each; a million classes of 128 bytes; jcmd's longest tables.
LARGEST_REPLY_BYTES = {"threaddump": 256 << 20, "inspectheap": 128 << 20, "jcmd": 64 << 20}
LARGEST_OTHER_REPLY_BYTES = 4 << 20
LARGEST_DUMP_FILE_BYTES = 1 << 30  # what Thread.dump_to_file writes: a million virtual threads of 1 KiB each
# The last line of a complete reply: a JVM that ends during the reply closes the stream like one that is done.
_DUMP_END = re.compile(rb"^JNI global ref", re.MULTILINE)
_HISTOGRAM_END = re.compile(rb"^Total\s+\d+\s+\d+\s*$", re.MULTILINE)


def encode_v1(command: str, arguments: tuple[str, ...]) -> bytes:
    """Encode a version 1 request. Raises UsageError for a request that every JVM would refuse without an answer."""
    words = _words(command, arguments)
    if len(arguments) > _ARGUMENTS or any(len(word) > _ARGUMENT_BYTES for word in words[1:]):
        raise UsageError(
            f"{command}: invalid arguments: this JVM takes up to {_ARGUMENTS} of up to {_ARGUMENT_BYTES} bytes; shorten them"
        )
    # JDK 8 takes all arguments after an empty one as empty.
    filled = [bool(word) for word in words[1:]]
    if filled != sorted(filled, reverse=True):
        raise UsageError(f"{command}: invalid arguments: an empty one may only be the last")
    words += [b""] * (1 + _ARGUMENTS - len(words))
    return b"1\0" + b"".join(word + b"\0" for word in words)


def encode_v2(command: str, arguments: tuple[str, ...]) -> bytes:
    """Encode a version 2 request; the JVM collects the whole reply before it sends it. Raises UsageError."""
    words = _words(command, arguments)
    words[0] += b" streaming=0"
    body = b"".join(word + b"\0" for word in words)
    if len(body) > _V2_BYTES:
        raise UsageError(f"{command}: {len(body)} bytes of arguments: a JVM takes up to {_V2_BYTES}; shorten them")
    return b"2\0%d\0" % len(body) + body


def _words(command: str, arguments: tuple[str, ...]) -> list[bytes]:
    words = [word.encode() for word in (command, *arguments)]
    if any(b"\0" in word for word in words):
        raise UsageError("invalid argument to a JVM: it contains a NUL byte")
    if not 0 < len(words[0]) <= _NAME_BYTES or b" " in words[0]:
        raise UsageError(f"{command!r} is not an attach command: it must be one word of up to {_NAME_BYTES} bytes")
    return words


def speaks_v2(code: int, text: bytes) -> bool:
    """Whether the reply to `getversion options` (`2 streaming`; code -1 from JDKs without it) announces version 2."""
    version = integer(next(iter(text.split(None, 1)), b""))
    return code == 0 and version is not None and version >= 2


def split_reply(reply: bytes, pid: int) -> tuple[int, bytes]:
    """Split a reply that is not empty into (code, text). Raises AttachError (reply-cut, protocol)."""
    head, newline, text = reply.partition(b"\n")
    if not newline:
        if signed(head) == _BAD_VERSION:
            return _BAD_VERSION, b""
        raise _cut(pid, f"only {len(reply)} bytes, without a complete line", reply)
    code = signed(head) if len(head) <= _CODE_BYTES else None
    if code is None:
        found = head[:60].decode("utf-8", "backslashreplace")
        what = f"it answered {found!r} instead of a result code, which is not HotSpot's protocol"
        raise AttachError("protocol", pid, what=what)
    return code, text


def result_of(reply: bytes, pid: int, command: str) -> bytes:
    """The text of a reply with code 0. Raises AttachError (command-failed, with the JVM's message; reply-cut, protocol)."""
    code, text = split_reply(reply, pid)
    if code == 0:
        return text
    if code == _BAD_VERSION:
        what = "it does not know this version of the attach protocol (it answered 101)"
        raise AttachError("protocol", pid, what=what)
    raise AttachError("command-failed", pid, command=command, code=code, said=decode(text).strip() or "no message")


def _cut(pid: int, what: str, received: bytes) -> AttachError:
    return AttachError("reply-cut", pid, what=what, received_bytes=len(received))


def check_thread_dump(text: bytes, pid: int) -> bytes:
    """Return the text if it is a complete thread dump. Raises AttachError (reply-cut)."""
    if not _DUMP_END.search(text):
        raise _cut(pid, "the thread dump has no end (no line `JNI global refs`)", text)
    return text


def check_histogram(text: bytes, pid: int) -> bytes:
    """Return the text if it is a complete class histogram. Raises AttachError (reply-cut)."""
    if not _HISTOGRAM_END.search(text, max(0, len(text) - 200)):
        raise _cut(pid, "the histogram has no end (no line `Total`)", text)
    return text


def decode(text: bytes) -> str:
    """Decode the JVM's text. It writes characters above U+FFFF as two surrogates; invalid UTF-8 becomes surrogates."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        with suppress(UnicodeDecodeError):
            return text.decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16")
    return text.decode("utf-8", "surrogateescape")
