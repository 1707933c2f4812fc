"""A mangled name and the place where it is read."""

from __future__ import annotations

DIGITS = frozenset("0123456789")
_DEEPEST, _LONGEST = 80, 4096


class NotMangled(Exception):  # noqa: N818
    """The text is not a mangled name, or has something that this reader does not know. Never leaves this package."""


class MangledText:
    """Reads from the left. `with self:` is one level deeper: an endless nesting raises NotMangled."""

    longest = _LONGEST

    def __init__(self, text: str) -> None:
        self.text, self.at, self._depth = text, 0, 0

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NotMangled

    def __exit__(self, *_: object) -> None:
        self._depth -= 1

    def peek(self) -> str:
        """The next character; empty at the end."""
        return self.text[self.at : self.at + 1]

    def next(self) -> str:
        """Take a character."""
        if self.at >= len(self.text):
            raise NotMangled
        self.at += 1
        return self.text[self.at - 1]

    def take(self, part: str) -> bool:
        """Take this text if it is next."""
        if self.text.startswith(part, self.at):
            self.at += len(part)
            return True
        return False

    def expect(self, part: str) -> None:
        """Take this text."""
        if not self.take(part):
            raise NotMangled

    def take_many(self, size: int) -> str:
        """Take so many characters."""
        begin, self.at = self.at, self.at + size
        if not size or self.at > len(self.text):
            raise NotMangled
        return self.text[begin : self.at]

    def number(self) -> int:
        """Take a decimal number of at most six digits."""
        begin = self.at
        while self.peek() in DIGITS and self.at - begin < 7:
            self.at += 1
        if not 0 < self.at - begin < 7:
            raise NotMangled
        return int(self.text[begin : self.at])  # a number: six digits at most
