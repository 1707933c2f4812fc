"""What a captured tree is made of."""

from __future__ import annotations

from typing import NamedTuple


class Link(NamedTuple):
    """A symbolic link in a captured tree."""

    target: str
