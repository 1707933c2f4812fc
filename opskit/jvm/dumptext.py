r"""From the bytes of a file, as people save and paste them, to the lines that the JVM wrote. Pure.

    app-1  | 2026-11-21T11:04:04.123456789Z "main" #1 prio=5 …      docker, compose, Kubernetes
    Nov 21 11:04:04 host java[4242]: "main" #1 prio=5 …              syslog, journald (tabs as #011)
    {"log":"\"main\" #1 prio=5 …\n","stream":"stdout","time":"…"}    docker's files
    > "main" #1 prio=5 …                                             mail, Markdown

The bytes stay bytes: dumps are large, their names may be in any encoding, and all that is searched is ASCII.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MARKER = b"Full thread dump"
_TAG = b"2XMFULLTHDDUMP "  # a javacore's own word before the marker
_THREAD = re.compile(rb'(?m)^([^"\n{]*?)"[^\n]*" [^\n]*\b(?:[tn]id=0x|Id=\d|t@\d)')
_VARIABLE = re.compile(rb"\d+(?:[-:.,/T]\d+)+|[A-Z][a-z]{2} +\d+(?= )|\d+|\s+|[^\d\s]+|.")
_LINE_END = re.compile(rb"\r*\n|\r")
_DOCKER = re.compile(rb"\s*\{\"log\": ?\"")
_CLOCK = re.compile(rb"\d+(?:[-:.,/T]\d+)+")
_DAY = re.compile(rb"[A-Z][a-z]{2} +\d+")


def plain_text(data: bytes) -> bytes:
    """The text as the JVM wrote it: UTF-8 (or any other superset of ASCII), Unix line ends, nothing before the lines."""
    data = _to_utf8(data)
    if b"\r" in data:
        data = _LINE_END.sub(b"\n", data)
    if _DOCKER.match(data):
        data = _docker_file(data)
    prefix = _prefix(data)
    return _without(prefix, data) if prefix else data


def blocks(header: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], str, bool]]:
    """Each header with what stands behind it, up to the next header; and whether it is the last one."""
    found = list(header.finditer(text))
    for number, match in enumerate(found, 1):
        is_last = number == len(found)
        yield match, text[match.end() : None if is_last else found[number].start()], is_last


def is_binary(data: bytes) -> bool:
    """Whether no text that we could read is in there."""
    return b"\0" in _to_utf8(data[:65536])


def _to_utf8(data: bytes) -> bytes:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif len(data) >= 8 and not any(data[1:64:2]) and all(data[0:64:2]):
        encoding = "utf-16-le"
    elif len(data) >= 8 and not any(data[0:64:2]) and all(data[1:64:2]):
        encoding = "utf-16-be"
    else:
        return data.removeprefix(b"\xef\xbb\xbf")
    # A file that was cut in the middle of a character is still a file; `>>` puts a mark before each piece.
    return data.decode(encoding, "ignore").replace("\ufeff", "").encode("utf-8", "replace")


def _docker_file(data: bytes) -> bytes:
    import json  # noqa: PLC0415  (only these files pay for it)

    lines = []
    for line in data.split(b"\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get("log"), str):
            lines.append(entry["log"].encode("utf-8", "replace"))
    return b"".join(lines)


def _prefix(data: bytes) -> bytes:
    """What stands before the first line that surely is a dump's; empty in a clean dump."""
    at = data.find(MARKER)
    if at >= 0:
        return data[data.rfind(b"\n", 0, at) + 1 : at].removesuffix(_TAG)
    first = _THREAD.search(data)
    return first[1] if first else b""


def _without(prefix: bytes, data: bytes) -> bytes:
    """Take the prefix from every line that has it: the same words, any time of day, any day."""
    words = prefix.rstrip(b" \t")
    gap = prefix[len(words) :]
    pattern = b"".join(_same_kind(token) for token in _VARIABLE.findall(words))
    # A blank line has often lost the blanks at the end of its prefix.
    stripped = re.sub(rb"(?m)^" + pattern + rb"(?:" + re.escape(gap) + rb"|[ \t]*$)", b"", data)
    return stripped.replace(b"\n#011", b"\n\t")


def _same_kind(token: bytes) -> bytes:
    if _CLOCK.fullmatch(token):
        return rb"\d+(?:[-:.,/T]\d+)+"
    if _DAY.fullmatch(token):
        return rb"[A-Z][a-z]{2} +\d+"
    return rb"[ \t]+" if token.isspace() else re.escape(token)
