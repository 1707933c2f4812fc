r"""Lines of the kernel's files. A name in them (a cgroup, a mount point, a mapped file) may hold anything but a newline.

str.splitlines() also breaks at \v, \f, U+0085, U+2028 and others, so a name could forge a line.
"""

from __future__ import annotations


def lines_of(text: str) -> list[str]:
    r"""The lines, each ended by \n alone."""
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else lines
