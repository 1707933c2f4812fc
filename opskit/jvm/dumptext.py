r"""From the bytes of a file, as people save and paste them, to the lines that the JVM wrote. Pure.

    app-1  | 2026-11-21T11:04:04.123456789Z "main" #1 prio=5 …      docker, compose, Kubernetes
    Nov 21 11:04:04 host java[4242]: "main" #1 prio=5 …              syslog, journald (tabs as #011)
    {"log":"\"main\" #1 prio=5 …\n","stream":"stdout","time":"…"}    docker's files; likewise "message", "MESSAGE", …
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
_TOKENS = re.compile(rb"\d+(?:[-:.,/T]\d+)+|[A-Z][a-z]{2} +\d+(?= )|\d+|\s+|[^\d\s]+|.")
_LINE_END = re.compile(rb"\r*\n|\r")
# What the header of a thread of HotSpot's has, as bytes that are quickly looked for.
_THREADS_HAVE = b"id=0x", b" Id=", b" t@"
# The other dialects: what stands in a line of theirs, and what of theirs stands before it there.
_OTHERS = (
    (b"0SECTION ", re.compile(rb"$")),
    (b"3XMTHREADINFO ", re.compile(rb"$")),
    (b" FULL THREAD DUMP ", re.compile(rb"=+$")),
    (b" idx=0x", re.compile(rb'"[^\n]*" id=\d+$')),
    (b": (state = ", re.compile(rb"Thread (?:t@)?\d+$")),
    (b'"Reference Handler"', re.compile(rb"#\d+ $")),
    (b'" virtual', re.compile(rb'#\d+ "[^"\n]*$')),
)
_JSON_DUMP = re.compile(rb'\s*\{\s*"(?:threadDump|threads)"\s*:')
_STATE = b"java.lang.Thread.State: "
# A log viewer that shows the newest line first turns a dump upside down: the header stands below its thread's state.
_NEWEST_FIRST = re.compile(rb'java\.lang\.Thread\.State: [A-Z][^\n]*\n[^\n"]*"[^\n]*" [^\n]*\b[tn]id=')
_OLDEST_FIRST = re.compile(rb'\b[tn]id=[^\n]*\n[^\n"]*java\.lang\.Thread\.State: ')
_LOG_KEYS = "log", "message", "MESSAGE", "msg", "textPayload"
_LOOKED_AT_BYTES = 2000
_BLANK_WITHIN = re.compile(
    rb"\n\n(?=[ \t]+(?:at |\^?-+ |java\.lang\.Thread\.State: |Carrying virt|Mounted virt|[\w.$<>/-]+\())"
)
_BLANK_LINES = 3  # one after the other, within a stack
_PADDED = re.compile(rb"\)(?:@\w+)?[ \t]+\n")
_CLOCK = re.compile(rb"\d+(?:[-:.,/T]\d+)+")
_COUNT = re.compile(rb"[ \t]*\d+(?![\d-]|[:.,/T]\d)")
_DAY = re.compile(rb"[A-Z][a-z]{2} +\d+")


def plain_text(data: bytes) -> bytes:
    """The text as the JVM wrote it: UTF-8 (or any other superset of ASCII), Unix line ends, nothing before the lines.

    Where several sources log into one file, each with a prefix of its own, their texts come one after the other.
    """
    data = _to_utf8(data)
    if b"\r" in data:
        data = _LINE_END.sub(b"\n", data)
    if _is_newest_first(data):
        data = b"\n".join(reversed(data.split(b"\n")))
    if data.lstrip()[:1] == b"{":
        if _JSON_DUMP.match(data) and MARKER not in data:
            return data
        data = logged_as_json(data)
    patterns = list(dict.fromkeys(_prefixes(data)))
    if len(patterns) > 1:
        data = b"".join(_strip(pattern, b"".join(lines)) for pattern, lines in _by_source(patterns, data))
    elif patterns:
        data = _strip(patterns[0], data)
    return _tidy(data)


def blocks(header: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], str, bool]]:
    """Each header with what stands behind it, up to the next header; and whether it is the last one."""
    found = list(header.finditer(text))
    for number, match in enumerate(found, 1):
        is_last = number == len(found)
        yield match, text[match.end() : None if is_last else found[number].start()], is_last


def is_binary(data: bytes) -> bool:
    """Whether no text that we could read is in there."""
    return b"\0" in _to_utf8(data[:65536])


def _is_newest_first(data: bytes) -> bool:
    """Whether its threads stand upside down. The first thread of an ordinary dump tells already that they do not."""
    return _STATE in data and _OLDEST_FIRST.search(data) is None and _NEWEST_FIRST.search(data) is not None


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


def logged_as_json(data: bytes) -> bytes:
    """The lines that a log of one JSON object a line holds, and those that are none; one that is torn goes."""
    first = data.lstrip().partition(b"\n")[0]
    if not any(f'"{key}"'.encode() in first for key in _LOG_KEYS):
        return data
    import json  # noqa: PLC0415  (only these files pay for it)

    lines = []
    for line in data.split(b"\n"):
        if not line.startswith(b"{"):
            lines.append(line + b"\n")
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict):
            lines += [_logged(key, entry[key]) for key in _LOG_KEYS if key in entry][:1]
    return b"".join(lines)


def _logged(key: str, words: object) -> bytes:
    """What one entry says: docker keeps line ends, the others do not; journald writes a list of bytes for what is no text."""
    try:
        said = bytes(words) if isinstance(words, list) else str(words).encode("utf-8", "replace")
    except (TypeError, ValueError):
        return b""
    return said if key == "log" or said.endswith(b"\n") else said + b"\n"


def _tidy(data: bytes) -> bytes:
    """Without the blanks at the ends of lines that terminals leave, and the blank lines that mail puts into a stack."""
    if _PADDED.search(data):
        data = b"\n".join([line.rstrip(b" \t") for line in data.split(b"\n")])
    if not _BLANK_WITHIN.search(data):
        return data
    if data.count(b"\n\n") * 2 >= data.count(b"\n") - 1:  # every line has one
        data = data.replace(b"\n\n", b"\n")
    for _ in range(_BLANK_LINES):
        data = _BLANK_WITHIN.sub(b"\n", data)
    return data


def _prefixes(data: bytes) -> Iterator[bytes]:
    """The pattern of what stands before each dump's lines; without a head, before a thread's. Empty in a clean dump."""
    at = data.find(MARKER)
    if at >= 0:
        while at >= 0:
            yield _prefix_of_all(data, _before(data, at).removesuffix(_TAG), at)
            at = data.find(MARKER, at + 1)
        return
    if any(word in data for word in _THREADS_HAVE) and (thread := _THREAD.search(data)):
        yield _pattern(thread[1])
    for word, own in _OTHERS:
        at = data.find(word)
        if at >= 0 and (match := own.search(_before(data, at))):
            yield _prefix_of_all(data, match.string[: match.start()], at)


def _before(data: bytes, at: int) -> bytes:
    """What stands before the offset on its line."""
    return data[data.rfind(b"\n", 0, at) + 1 : at]


def _prefix_of_all(data: bytes, prefix: bytes, at: int) -> bytes:
    """The prefix's pattern, if lines below have it too: a logger may put its own words before the first line of a message alone."""
    pattern = _pattern(prefix)
    below = data[at : at + _LOOKED_AT_BYTES].partition(b"\n")[2]
    return pattern if re.search(rb"(?m)^" + pattern, below) else b""


def _pattern(prefix: bytes) -> bytes:
    """A regular expression for the prefix on every line: the same words, any time of day, any day."""
    words = prefix.rstrip(b" \t")
    gap = prefix[len(words) :]
    if not prefix:
        return b""
    tokens = _TOKENS.findall(words)
    number = b""  # of the line, as cat -n and grep -n write it, or of the millisecond
    if counted := _COUNT.match(words):
        number, tokens = rb"[ \t]*\d+", _TOKENS.findall(words[counted.end() :])
    # A blank line has often lost the blanks at the end of its prefix.
    return number + b"".join(map(_same_kind, tokens)) + rb"(?:" + re.escape(gap) + rb"|[ \t]*$)"


def _strip(pattern: bytes, data: bytes) -> bytes:
    """Take the prefix from every line that has it. Syslog's tabs are tabs again."""
    return re.sub(rb"(?m)^" + pattern, b"", data).replace(b"\n#011", b"\n\t") if pattern else data


def _by_source(patterns: list[bytes], data: bytes) -> list[tuple[bytes, list[bytes]]]:
    """The lines of each source by themselves; what has no known prefix belongs to the source without one, if there is any."""
    sources: list[tuple[bytes, re.Pattern[bytes], list[bytes]]] = [
        (pattern, re.compile(rb"(?m)" + pattern), []) for pattern in patterns if pattern
    ]
    rest: list[bytes] = []
    for line in data.splitlines(keepends=True):
        for _, prefix, lines in sources:
            if prefix.match(line):
                lines.append(line)
                break
        else:
            rest.append(line)
    found: list[tuple[bytes, list[bytes]]] = [(pattern, lines) for pattern, _, lines in sources]
    return [*found, (b"", rest)] if b"" in patterns else found


def _same_kind(token: bytes) -> bytes:
    if _CLOCK.fullmatch(token):
        return rb"\d+(?:[-:.,/T]\d+)+"
    if _DAY.fullmatch(token):
        return rb"[A-Z][a-z]{2} +\d+"
    return rb"[ \t]+" if token.isspace() else re.escape(token)
