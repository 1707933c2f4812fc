"""The looks that -w keeps. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opskit.collect.mem.facts import Facts

_MOST = 1000


def add_sample(looks: list[Facts], look: Facts) -> None:
    """Keep a look: of the one before no mapped files, and of a long watch every second one of its older half."""
    looks[-1:] = [each._replace(parts=()) for each in looks[-1:]]
    looks.append(look)
    if len(looks) > _MOST:
        del looks[1 : _MOST // 2 : 2]
