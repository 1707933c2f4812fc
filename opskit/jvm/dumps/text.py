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

from opskit.jvm.progress import onwards

if TYPE_CHECKING:
    from collections.abc import Iterator

MARKER = b"Full thread dump"
_TAG = b"2XMFULLTHDDUMP "  # a javacore's own word before the marker
_THREADS_ID = re.compile(rb"\b(?:[tn]id=0x|Id=\d|t@\d)")
_HOTSPOTS_ID = re.compile(rb"\b[tn]id=")
_TOKENS = re.compile(rb"\d+(?:[-:.,/T]\d+)+|[A-Z][a-z]{2} +\d+(?= )|\d+|\s+|[^\d\s]+|.")
_RETURNS = re.compile(rb"(?<!\r)\r+\n")
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
_LOG_KEYS = "log", "message", "MESSAGE", "msg", "textPayload"
_LOOKED_AT_BYTES = 2000
_LONGEST_PREFIX_BYTES = 1000  # syslog's whole line had 1,024
_MOST_PREFIXES, _MOST_TRIES = 100, 400  # sources of one file, and what might be a source's prefix
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
        if b"\r\r\n" in data:
            data = _RETURNS.sub(b"\n", data)
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if _is_newest_first(data):
        data = b"\n".join(reversed(data.split(b"\n")))
    if data.lstrip()[:1] == b"{":
        if _JSON_DUMP.match(data) and MARKER not in data:
            return data
        data = logged_as_json(data)
    patterns = _prefixes(data)
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


def thread_prefixes(text: bytes) -> Iterator[bytes]:
    """What stands before the quote of each line that could be the header of a thread of HotSpot's."""
    for line in _lines_with(text, _THREADS_ID):
        quote = line.find(b'"')
        if quote >= 0 and b"{" not in line[:quote] and _is_header(line, quote, _THREADS_ID):
            yield line[:quote]


def _lines_with(text: bytes, pattern: re.Pattern[bytes]) -> Iterator[bytes]:
    """Each line in which the pattern is, once."""
    at = 0
    while found := pattern.search(text, at):
        begin, end = text.rfind(b"\n", at, found.start()) + 1 or at, _line_end(text, found.end())
        at = onwards(found.start(), end)
        yield text[begin:end]


def _line_end(text: bytes, at: int) -> int:
    end = text.find(b"\n", at)
    return len(text) if end < 0 else end


def _is_header(line: bytes, quote: int, pattern: re.Pattern[bytes]) -> bool:
    """Whether a name in quotes, that begins there, and then a thread's id are in the line."""
    closing = line.find(b'" ', quote + 1)
    return closing >= 0 and any(found.start() >= closing + 2 for found in pattern.finditer(line))


def _is_newest_first(data: bytes) -> bool:
    """Whether its threads stand upside down, as in a log viewer that shows the newest line first: the header below the state.

    The first thread of an ordinary dump tells already that they do not.
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
    # A file that was cut in the middle of a character is still a file; `>>` puts a mark before each piece.
    return data.decode(encoding, "ignore").replace("\ufeff", "").encode("utf-8", "replace")


def logged_as_json(data: bytes) -> bytes:
    """The lines that a log of one JSON object a line holds, and those that are none; one that is torn goes."""
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
    """What one entry says: docker keeps line ends, the others do not; journald writes a list of bytes for what is no text."""
    try:
        said = bytes(words) if isinstance(words, list) else str(words).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError):
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


def _prefixes(data: bytes) -> list[bytes]:
    """The patterns of what stands before each dump's lines; without a head, before a thread's. Empty in a clean dump."""
    at = data.find(MARKER)
    if at >= 0:
        known: dict[bytes, None] = {}
        tries = 0
        while at >= 0 and len(known) < _MOST_PREFIXES and tries < _MOST_TRIES:
            before = _before(data, at)
            pattern = b"" if before is None else _pattern(before.removesuffix(_TAG))
            if pattern not in known:
                tries += 1
                known[pattern if _is_below(data, pattern, at) else b""] = None
            at = data.find(MARKER, at + 1)
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
    """What stands before the offset on its line; None for what is too long to be a prefix with a word or two of the dump's."""
    begin = data.rfind(b"\n", max(0, at - _LOOKED_AT_BYTES), at) + 1
    return None if not begin and at > _LOOKED_AT_BYTES else data[begin:at]


def _is_below(data: bytes, pattern: bytes, at: int) -> bool:
    """Whether lines below have the prefix too: a logger may put its own words before the first line of a message alone."""
    below = data[at : at + _LOOKED_AT_BYTES].partition(b"\n")[2]
    return bool(pattern) and re.search(rb"(?m)^" + pattern, below) is not None


def _pattern(prefix: bytes) -> bytes:
    """A regular expression for the prefix on every line: the same words, any time of day, any day."""
    words = prefix.rstrip(b" \t")
    gap = prefix[len(words) :]
    if not prefix or len(prefix) > _LONGEST_PREFIX_BYTES:
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
