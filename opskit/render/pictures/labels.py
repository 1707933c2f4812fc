"""Places for the labels of dots: over no other label, merged where dots are close, none where there is no room. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CLOSE_PT = 24.0  # dots that are closer get one label together
_SIDE_PT = 7.0  # between a dot and its label
_HEIGHTS_PT = (5.0, -12.0, 17.0, -24.0, 29.0, 41.0, -36.0, 53.0)  # of the label above its dot, the nearest first
_DESCENT_PT = 2.0  # of the text below its baseline
_AROUND_DOT_PT = 3.0
_MARGIN = 1.12  # viewers without our font use a wider one


class Box(NamedTuple):
    """A rectangle in pixels; y goes up."""

    left: float
    bottom: float
    right: float
    top: float

    def overlaps(self, other: Box) -> bool:
        """Whether they have an area in common."""
        apart = self.right <= other.left or other.right <= self.left
        return not (apart or self.top <= other.bottom or other.top <= self.bottom)

    def holds(self, other: Box) -> bool:
        """Whether the other one is inside."""
        sides = self.left <= other.left and other.right <= self.right
        return sides and self.bottom <= other.bottom and other.top <= self.top


class Place(NamedTuple):
    """Where a label goes: its offset from the dot in points, and its box. `after` its dot, or before it."""

    right_pt: float
    up_pt: float
    after: bool
    box: Box


class Dot(NamedTuple):
    """A dot to be named: its place in pixels, its text, and how many dots that text stands for."""

    at: tuple[float, float]
    text: str
    number: int = 1


def merged(dots: Sequence[Dot], px_per_pt: float) -> list[Dot]:
    """One for dots that are close: the first of them, with their number."""
    found: list[Dot] = []
    for dot in dots:
        near = (at for at, other in enumerate(found) if math.dist(dot.at, other.at) < _CLOSE_PT * px_per_pt)
        at = next(near, None)
        if at is None:
            found.append(dot)
        else:
            found[at] = found[at]._replace(number=found[at].number + dot.number)
    return found


def free_place(
    dot: Dot,
    size: tuple[float, float],
    px_per_pt: float,
    outer: Box,
    taken: Sequence[Box],
    drawn: Sequence[tuple[float, float]],
) -> Place | None:
    """The nearest place inside `outer` that is free of the `taken` boxes, and if there is one, of all `drawn` dots."""
    free = [
        each
        for each in _places(dot, size, px_per_pt)
        if outer.holds(each.box) and not any(each.box.overlaps(other) for other in taken)
    ]
    around = _AROUND_DOT_PT * px_per_pt
    return next((each for each in free if not _covers(each.box, drawn, around)), free[0] if free else None)


def _places(dot: Dot, size: tuple[float, float], px_per_pt: float) -> Iterator[Place]:
    width, height = size[0] * _MARGIN, size[1] * _MARGIN
    for up_pt in _HEIGHTS_PT:
        bottom = dot.at[1] + (up_pt - _DESCENT_PT) * px_per_pt
        for after in (True, False):
            right_pt = _SIDE_PT if after else -_SIDE_PT
            left = dot.at[0] + right_pt * px_per_pt - (0 if after else width)
            yield Place(right_pt, up_pt, after, Box(left, bottom, left + width, bottom + height))


def _covers(box: Box, drawn: Sequence[tuple[float, float]], around: float) -> bool:
    wide = Box(box.left - around, box.bottom - around, box.right + around, box.top + around)
    return any(wide.left < x < wide.right and wide.bottom < y < wide.top for x, y in drawn)
