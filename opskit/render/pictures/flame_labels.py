"""Text in a flame graph: names that fit their box, escaped for markup."""

from __future__ import annotations

import re
from unicodedata import east_asian_width

from opskit.escape import printable

# package.Class.method, package/Class.method or Lpackage/Class;::method, up to the method
_PACKAGE = re.compile(r"(?:[\w.$-]+@[\w.+-]+/|\w*//|L(?=[\w$/]+;))?(?:[a-z_][\w-]*[./])+(?=\S)")
_CLASS = re.compile(r"[\w$/+-]+?(?:;?::|\.)(?=[\w<$])")
_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


class Name:
    """The name of a frame; `class_at` and `method_at`: where its class and its method begin."""

    __slots__ = ("class_at", "method_at", "shown", "wide")

    def __init__(self, name: str) -> None:
        self.shown = printable(name)
        package = _PACKAGE.match(self.shown)
        self.class_at = package.end() if package else 0
        class_ = _CLASS.match(self.shown, self.class_at)
        self.method_at = class_.end() if class_ else self.class_at
        self.wide = not self.shown.isascii()

    def label(self, room: float, sign: str) -> str:
        """As much of the name as fits: all, without its package, only the method, its beginning, nothing."""
        room -= len(sign)
        if room < 2:
            return ""
        for at in (0, self.class_at, self.method_at):
            if (_columns(self.shown[at:]) if self.wide else len(self.shown) - at) <= room:
                return sign + self.shown[at:]
        return sign + cut(self.shown[self.method_at :], room)


def _columns(text: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def cut(text: str, room: float) -> str:
    """The beginning of the text, with an ellipsis unless it is all of it."""
    if _columns(text) <= room:
        return text
    kept, columns = "", 1
    for character in text:
        columns += _columns(character)
        if columns > room:
            break
        kept += character
    return f"{kept}\u2026"


def px(value: float) -> str:
    """A coordinate, without needless zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def markup(text: str) -> str:
    """The text escaped for XML."""
    return text.translate(_MARKUP)
