"""Lines of kernel files, in which names may hold every character but a newline."""

from __future__ import annotations


def lines(text: str) -> list[str]:
    """The lines. str.splitlines would end one at a form feed or U+2028 too, which a hostile name may hold."""
    found = text.split("\n")
    if not found[-1]:
        found.pop()
    return found
