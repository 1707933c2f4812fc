"""The looks that -w keeps. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.watched import keep

if TYPE_CHECKING:
    from opskit.collect.mem.facts import Facts


def add_sample(looks: list[Facts], look: Facts) -> None:
    """Keep a look, and of the one before no mapped files."""
    looks[-1:] = [each._replace(parts=()) for each in looks[-1:]]
    keep(looks, look)
