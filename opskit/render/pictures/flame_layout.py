"""The layout of a flame graph: its regions, the look of each frame, and the size of the file."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opskit.analysis.jpmp.flame_tree import starts
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.analysis.jpmp.flame_tree import FlameTree, Frame
    from opskit.analysis.jpmp.frame_kinds import Kind

WIDTH_PX = 1200
NARROWEST_PX = 0.1
PADDING_PX = 10
MOST_BYTES = 15_000_000  # larger pictures open slowly, and many ticket systems refuse them
TOO_MANY = 20_000  # frames: with more, frames under SLIVER_PX have no element and no title of their own
SLIVER_PX = 1.0
_SLIVER_BYTES, _ELEMENT_BYTES, _NAME_BYTES = 50, 250, 12  # of the file, about
_TINTS = 3  # every third name is lighter, to distinguish neighbours
_LEVELS = (0.01, 0.1, 0.3, 0.6)  # of the largest change


@dataclass(frozen=True)
class Picture:
    """What to draw. `notes_turned`: as many notes, for the picture upside down. Weights divided by `per_unit` are `unit`s.

    `kinds` by frame name set the colours of one profile, changes those of two, `before` and `after`. `width_px` None: the window.
    """

    tree: FlameTree
    title: str
    notes: Sequence[str]
    notes_turned: Sequence[str]
    unit: str
    kinds: Mapping[str, Kind]
    per_unit: int = 1
    inverted: bool = False
    width_px: int | None = None
    before: str | None = None
    after: str | None = None


class Region(NamedTuple):
    """A part of the picture: the tree, or the strip of vanished frames."""

    frames: Sequence[Frame]
    begin: Sequence[int]
    span: int  # the weight that is as wide as the picture
    looks: Sequence[str]  # a frame's colour
    rows: int
    heading: str | None = None


def drawn_px(width_px: int | None) -> int:
    """How wide the root is."""
    return (width_px or WIDTH_PX) - 2 * PADDING_PX


def bytes_of(tree: FlameTree, width_px: int | None) -> list[int]:
    """The approximate bytes of each frame in the file, then of each in `gone`. Names are counted once."""
    frames = [*tree.frames, *tree.gone]
    total, total_before = tree.total or 1, tree.total_before or 1
    least = SLIVER_PX / drawn_px(width_px) if len(frames) > TOO_MANY else 0.0
    named: set[str] = set()
    sizes = []
    for frame in frames:
        size, long = _SLIVER_BYTES, len(frame.name)
        if frame.total / total >= least or frame.total_before / total_before >= least:
            size += _ELEMENT_BYTES + long
        if frame.name not in named:
            named.add(frame.name)
            size += _NAME_BYTES + long
        sizes.append(size)
    return sizes


def regions(picture: Picture) -> Iterator[Region]:
    """The tree, and the strip of what has vanished."""
    tree = picture.tree
    compared = picture.before is not None
    looks = _changes(tree) if compared else [_look_of(frame, picture.kinds) for frame in tree.frames]
    yield Region(tree.frames, starts(tree.frames), tree.total, looks, _rows(tree.frames))
    if compared and tree.gone:
        width = sum(frame.total_before for frame in tree.gone if frame.depth == 0)
        which = "Gone, or under 0.1 px now: in" if any(frame.total for frame in tree.gone) else "Gone: only in"
        heading = f"{which} {picture.before} ({percent(width, tree.total_before)} of it)"
        looks, begin = ["gone"] * len(tree.gone), starts(tree.gone, before=True)
        yield Region(tree.gone, begin, tree.total_before, looks, _rows(tree.gone), heading)


def _rows(frames: Sequence[Frame]) -> int:
    return max(frame.depth for frame in frames) + 1


def _look_of(frame: Frame, kinds: Mapping[str, Kind]) -> str:
    if frame.depth == 0:
        return "root"
    tinted = zlib.crc32(frame.name.encode("utf-8", "surrogatepass")) % _TINTS == 0
    return f"{kinds[frame.name]} tint" if tinted else kinds[frame.name]


def _changes(tree: FlameTree) -> list[str]:
    """The looks by the change of each frame's own share of the whole: the numbers of samples differ."""
    now, before = tree.total or 1, tree.total_before or 1
    changes = [frame.own / now - frame.own_before / before for frame in tree.frames]
    largest = max(map(abs, changes), default=0.0)
    looks = []
    for change in changes:
        level = sum(abs(change) >= least * largest for least in _LEVELS) if largest > 1e-9 else 0
        looks.append(f"{'grew' if change > 0 else 'shrank'}{level}" if level else "same")
    looks[0] = "root"
    return looks


def percent(part: int, whole: int) -> str:
    """A share of the whole, with two decimals under 1 %."""
    share = 100 * part / whole if whole else 0.0
    return f"{share:.{2 if 0 < share < 1 else 1}f} %"
