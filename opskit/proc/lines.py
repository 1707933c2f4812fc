r"""Lines of the kernel's files. A name in them (of a cgroup, a mount point, a mapped file) may hold all but a newline.

str.splitlines() also breaks at \v, \f, U+0085, U+2028 and others: a name could forge a line of its own with it.
"""

from __future__ import annotations


def lines_of(text: str) -> list[str]:
    r"""The lines, ended by \n alone."""
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else lines
