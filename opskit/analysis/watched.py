"""What a watch keeps of its looks. Pure."""

from __future__ import annotations

from typing import TypeVar

L = TypeVar("L")
_MOST = 1000


def keep(looks: list[L], look: L) -> None:
    """Add a look; of a long watch every second one of its older half goes, and the first one stays."""
    looks.append(look)
    if len(looks) > _MOST:
        del looks[1 : _MOST // 2 : 2]
