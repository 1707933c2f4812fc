r"""Extract the JVM's own lines from a saved or pasted file: encoding, line ends, log prefixes. Pure.

    app-1  | 2026-11-21T11:04:04.123456789Z "main" #1 prio=5 …      docker, compose, Kubernetes
    Nov 21 11:04:04 host java[4242]: "main" #1 prio=5 …              syslog, journald (tabs as #011)
    {"log":"\"main\" #1 prio=5 …\n","stream":"stdout","time":"…"}    docker's files; likewise "message", "MESSAGE", …
    > "main" #1 prio=5 …                                             mail, Markdown

Text stays bytes: dumps are large, and their names may be in any encoding.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.jvm.progress import onwards

if TYPE_CHECKING:
    from collections.abc import Iterator

MARKER = b"Full thread dump"
_TAG = b"2XMFULLTHDDUMP "  # before the marker in a javacore
_THREADS_ID = re.compile(rb"\b(?:[tn]id=0x|Id=\d|t@\d)")
_HOTSPOTS_ID = re.compile(rb"\b[tn]id=")
_TOKENS = re.compile(rb"\d+(?:[-:.,/T]\d+)+|[A-Z][a-z]{2} +\d+(?= )|\d+|\s+|[^\d\s]+|.")
_RETURNS = re.compile(rb"(?<!\r)\r+\n")
# A HotSpot thread header has one of these, which are quick to search.
_THREADS_HAVE = b"id=0x", b" Id=", b" t@"
# The other dialects: what one of their lines contains, and the part of that line before it.
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
_LOG_KEYS = "log", "message", "MESSAGE", "msg", "textPayload"
_LOOKED_AT_BYTES = 2000
_LONGEST_PREFIX_BYTES = 1000  # a line of syslog has at most 1,024
_MOST_PREFIXES, _MOST_TRIES = 100, 400  # of one file, and of what may be a prefix
_BLANK_WITHIN = re.compile(
    rb"\n\n(?=[ \t]+(?:at |\^?-+ |java\.lang\.Thread\.State: |Carrying virt|Mounted virt|[\w.$<>/-]+\())"
)
_BLANK_LINES = 3  # in a row, within a stack
_PADDED = re.compile(rb"\)(?:@\w+)?[ \t]+\n")
_CLOCK = re.compile(rb"\d+(?:[-:.,/T]\d+)+")
_COUNT = re.compile(rb"[ \t]*\d+(?![\d-]|[:.,/T]\d)")
_DAY = re.compile(rb"[A-Z][a-z]{2} +\d+")


def plain_text(data: bytes) -> bytes:
    """The text as the JVM wrote it: a superset of ASCII, Unix line ends, no prefixes.

    Where several sources log into one file, each with its own prefix, their texts follow each other.
    """
    data = _to_utf8(data)
    if b"\r" in data:
        if b"\r\r\n" in data:
            data = _RETURNS.sub(b"\n", data)
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if _is_newest_first(data):
        data = b"\n".join(reversed(data.split(b"\n")))
    if data.lstrip()[:1] == b"{":
        if _JSON_DUMP.match(data) and not any(heads(data)):
            return data
        data = logged_as_json(data)
    patterns = _prefixes(data)
    if len(patterns) > 1:
        data = b"".join(_strip(pattern, b"".join(lines)) for pattern, lines in _by_source(patterns, data))
    elif patterns:
        data = _strip(patterns[0], data)
    return _tidy(data)


def is_binary(data: bytes) -> bool:
    """Whether the data is not text."""
    return b"\0" in _to_utf8(data[:65536])


def thread_prefixes(text: bytes) -> Iterator[bytes]:
    """The part before the quote of each line that may be a HotSpot thread header."""
    at = 0
    while found := _THREADS_ID.search(text, at):
        begin, end = text.rfind(b"\n", at, found.start()) + 1 or at, _line_end(text, found.end())
        at = onwards(found.start(), end)
        line = text[begin:end]
        quote = line.find(b'"')
        if quote >= 0 and b"{" not in line[:quote] and _is_header(line, quote, _THREADS_ID):
            yield line[:quote]


def _line_end(text: bytes, at: int) -> int:
    end = text.find(b"\n", at)
    return len(text) if end < 0 else end


def _is_header(line: bytes, quote: int, pattern: re.Pattern[bytes]) -> bool:
    """Whether the line has a quoted name that begins at `quote`, and a thread id after it."""
    closing = line.find(b'" ', quote + 1)
    return closing >= 0 and any(found.start() >= closing + 2 for found in pattern.finditer(line))


def _is_newest_first(data: bytes) -> bool:
    """Whether the lines are reversed, as in a log viewer with the newest line first: the header is below the state.

    In an ordinary dump, the first thread decides.
    """
    upside_down = False
    at = data.find(_STATE)
    while at >= 0:
        begin, end = data.rfind(b"\n", 0, at) + 1, _line_end(data, at)
        above = data.rfind(b"\n", 0, max(begin - 1, 0)) + 1
        if b'"' not in data[begin:at] and _HOTSPOTS_ID.search(data, above, begin):
            return False
        if not upside_down and data[at + len(_STATE) : at + len(_STATE) + 1].isupper():
            below = data[end + 1 : _line_end(data, end + 1)]
            quote = below.find(b'"')
            upside_down = quote >= 0 and _is_header(below, quote, _HOTSPOTS_ID)
        at = data.find(_STATE, onwards(at, end))
    return upside_down


def _to_utf8(data: bytes) -> bytes:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif len(data) >= 8 and not any(data[1:64:2]) and all(data[0:64:2]):
        encoding = "utf-16-le"
    elif len(data) >= 8 and not any(data[0:64:2]) and all(data[1:64:2]):
        encoding = "utf-16-be"
    else:
        return data.removeprefix(b"\xef\xbb\xbf")
    # A file may end within a character; `>>` writes a byte order mark before each piece.
    return data.decode(encoding, "ignore").replace("\ufeff", "").encode("utf-8", "replace")


def logged_as_json(data: bytes) -> bytes:
    """The messages of a log with one JSON object per line, and its other lines; a damaged object is left out."""
    first = data.lstrip().partition(b"\n")[0]
    if not any(f'"{key}"'.encode() in first for key in _LOG_KEYS):
        return data
    import json

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
    """The message of an entry: docker keeps line ends, others do not; journald writes bytes as a list."""
    try:
        said = bytes(words) if isinstance(words, list) else str(words).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError):
        return b""
    return said if key == "log" or said.endswith(b"\n") else said + b"\n"


def _tidy(data: bytes) -> bytes:
    """Remove the trailing blanks that terminals leave, and the blank lines that mail puts into a stack."""
    if _PADDED.search(data):
        data = b"\n".join([line.rstrip(b" \t") for line in data.split(b"\n")])
    if not _BLANK_WITHIN.search(data):
        return data
    if data.count(b"\n\n") * 2 >= data.count(b"\n") - 1:  # every line has one
        data = data.replace(b"\n\n", b"\n")
    for _ in range(_BLANK_LINES):
        data = _BLANK_WITHIN.sub(b"\n", data)
    return data


def heads(text: bytes) -> Iterator[int]:
    """The offsets of `Full thread dump`, without those in the name of a thread."""
    at = text.find(MARKER)
    while at >= 0:
        line = text[at : at + _LOOKED_AT_BYTES].partition(b"\n")[0]
        if b'"' not in line and text[at - 2 : at] != b'\n"':
            yield at
        at = text.find(MARKER, at + 1)


def _prefixes(data: bytes) -> list[bytes]:
    """The patterns of the prefixes of each dump; without a head, of a thread. Empty for a clean dump."""
    known: dict[bytes, None] = {}
    tries = 0
    for at in heads(data):
        if len(known) == _MOST_PREFIXES or tries == _MOST_TRIES:
            break
        before = _before(data, at)
        pattern = b"" if before is None else _pattern(before.removesuffix(_TAG))
        if pattern not in known:
            tries += 1
            known[pattern if _is_below(data, pattern, at) else b""] = None
    if known:
        return list(known)
    if any(word in data for word in _THREADS_HAVE) and (thread := next(thread_prefixes(data), None)) is not None:
        return [_pattern(thread)]
    found: dict[bytes, None] = {}
    for word, own in _OTHERS:
        at = data.find(word)
        if at >= 0 and (match := own.search(_before(data, at) or b"")):
            pattern = _pattern(match.string[: match.start()])
            found[pattern if _is_below(data, pattern, at) else b""] = None
    return list(found)


def _before(data: bytes, at: int) -> bytes | None:
    """The part of the line before the offset; None where it is too long to be a prefix."""
    begin = data.rfind(b"\n", max(0, at - _LOOKED_AT_BYTES), at) + 1
    return None if not begin and at > _LOOKED_AT_BYTES else data[begin:at]


def _is_below(data: bytes, pattern: bytes, at: int) -> bool:
    """Whether lines below have the prefix too: a logger may write one before the first line of a message only."""
    below = data[at : at + _LOOKED_AT_BYTES].partition(b"\n")[2]
    return bool(pattern) and re.search(rb"(?m)^" + pattern, below) is not None


def _pattern(prefix: bytes) -> bytes:
    """A regular expression for the prefix of every line: the same words, any date and time."""
    words = prefix.rstrip(b" \t")
    gap = prefix[len(words) :]
    if not prefix or len(prefix) > _LONGEST_PREFIX_BYTES:
        return b""
    tokens = _TOKENS.findall(words)
    number = b""  # a line number (cat -n, grep -n), or milliseconds
    if counted := _COUNT.match(words):
        number, tokens = rb"[ \t]*\d+", _TOKENS.findall(words[counted.end() :])
    # In a blank line the blanks at the end of the prefix are often lost.
    return number + b"".join(map(_same_kind, tokens)) + rb"(?:" + re.escape(gap) + rb"|[ \t]*$)"


def _strip(pattern: bytes, data: bytes) -> bytes:
    return re.sub(rb"(?m)^" + pattern, b"", data).replace(b"\n#011", b"\n\t") if pattern else data


def _by_source(patterns: list[bytes], data: bytes) -> list[tuple[bytes, list[bytes]]]:
    """The lines of each source; those without a known prefix belong to the source without one, if any."""
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
