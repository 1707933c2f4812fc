r"""Escape text from the machine, which is untrusted, so that a terminal acts on none of it.

"evil\x1b[31m\nname"  ->  evil\x1b[31m\nname   (the backslashes are characters)
"""

from __future__ import annotations

_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def printable(text: str) -> str:
    """Write control, format (bidi, zero-width) and undecodable characters as escapes."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escape(character) for character in text)


def _escape(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte outside UTF-8
        return f"\\x{code - 0xDC00:02x}"
    long = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return _SHORT.get(character, long)


def markdown(text: str) -> str:
    """Escape a cell of a Markdown table."""
    text = printable(text)
    for special in "\\`*_{}[]<>#|~&":  # &: an &#39; in a name would show as a quote
        text = text.replace(special, "\\" + special)
    return text
