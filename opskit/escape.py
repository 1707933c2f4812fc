r"""Names from the machine are untrusted: whatever a terminal could act on is shown, never sent.

"evil\x1b[31m\nname"  ->  evil\x1b[31m\nname   (the backslashes are characters)
"""

from __future__ import annotations

_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def printable(text: str) -> str:
    """The text with control, format (bidi, zero-width) and undecodable characters written as escapes."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escape(character) for character in text)


def _escape(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if character in _SHORT:
        return _SHORT[character]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def markdown(text: str) -> str:
    """A cell of a Markdown table."""
    text = printable(text)
    for special in "\\`*_{}[]<>#|~&":  # with & an &#39; in a name would be shown as the quote that ends a quoted word
        text = text.replace(special, "\\" + special)
    return text
