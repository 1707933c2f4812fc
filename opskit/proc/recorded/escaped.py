r"""Text in a line of fields between tabs, and back: `a<TAB>b` -> `a\tb`; a byte outside UTF-8 -> `\xff`. Every text comes back as it was."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from re import Match

_SPECIAL = re.compile(r"[\x00-\x1f\x7f-\x9f\\\u2028\u2029\udc80-\udcff]")
_SHORT = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_LONG = {short: character for character, short in _SHORT.items()}
_ESCAPE = re.compile(r"\\(?:[\\tnr]|x(?:[01][0-9a-f]|7f|[89a-f][0-9a-f])|u(?:00[89][0-9a-f]|202[89]))")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_UNDECODED = 0xDC00  # a byte b outside UTF-8 is the character 0xDC00 + b


def escaped(text: str) -> str:
    """The text as one field."""
    return _SPECIAL.sub(_escape, text) if _SPECIAL.search(text) else text


def escaped_bytes(data: bytes) -> str:
    """Bytes as one field."""
    return escaped(data.decode("utf-8", "surrogateescape"))


def unescaped(field: str) -> str:
    """The text of a field."""
    return _ESCAPE.sub(_unescape, field) if "\\" in field else field


def unescaped_bytes(field: str) -> bytes:
    """The bytes of a field."""
    return unescaped(field).encode("utf-8", "surrogateescape")


def is_escaped(text: str) -> bool:
    """Whether lines have no control characters, and no backslash that begins no escape."""
    return not (_CONTROL.search(text) or ("\\" in text and "\\" in _ESCAPE.sub("", text)))


def _escape(found: Match[str]) -> str:
    character = found[0]
    code = ord(character)
    if code < 0x80 or code > _UNDECODED:
        return _SHORT.get(character) or f"\\x{code & 0xFF:02x}"
    return f"\\u{code:04x}"


def _unescape(found: Match[str]) -> str:
    escape = found[0]
    if escape in _LONG:
        return _LONG[escape]
    code = ord(bytes.fromhex(escape[2:].rjust(4, "0")).decode("utf-16-be"))
    return chr(code if escape[1] == "u" or code < 0x80 else _UNDECODED + code)
