"""Merge stacks into a call tree, alone or compared with another profile: the data of a flame graph. Pure.

A frame's total is its own weight, the totals of its children, and what was left out below it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = "all"

Path = tuple[str, ...]  # a stack, outermost frame of the picture first


class Frame(NamedTuple):
    """A frame of the tree. `depth` is 0 for the root; `total` and `own` are weights, now and in the profile before."""

    depth: int
    name: str
    total: int
    own: int
    total_before: int = 0
    own_before: int = 0


@dataclass(frozen=True)
class FlameTree:
    """The frames that are wide enough to be visible, the root first, each before its children, siblings by name.

    `gone`: subtrees that are wide enough only in the profile before, their tops at depth 0. `left_out`: frames that were
    too narrow. `in_common`: whether any frame is in both profiles. `thinned`: further frames that `thin` left out.
    """

    frames: Sequence[Frame]
    gone: Sequence[Frame] = ()
    left_out: int = 0
    in_common: bool = True
    thinned: int = 0

    @property
    def total(self) -> int:
        """The weight of all stacks."""
        return self.frames[0].total

    @property
    def total_before(self) -> int:
        """The weight of all stacks of the profile before; 0 if there is none."""
        return self.frames[0].total_before


def compare(before: Iterable[tuple[Path, int]], after: Iterable[tuple[Path, int]], narrowest: float = 0.0) -> FlameTree:
    """The tree of the profile `after`, each frame with its weight before, without frames whose share is under `narrowest`."""
    weights: dict[Path, list[int]] = {}
    totals = [0, 0]
    for side, stacks in enumerate((after, before)):
        for path, weight in stacks:
            if weight <= 0:
                continue
            totals[side] += weight
            (weights.get(path) or weights.setdefault(path, [0, 0]))[side] += weight
    seen_after, seen_before = (max(narrowest * total, 1) for total in totals)
    frames, left_out, in_common = _merge(weights, seen_after, seen_before)
    if not totals[1]:
        return FlameTree(frames, (), left_out)
    return FlameTree(*_split(frames, seen_after), left_out, in_common)


def thin(tree: FlameTree, costs: Sequence[int], most: int) -> FlameTree:
    """Keep as many frames as `most` allows: the widest, of equally wide ones those nearest to the root, so callers first.

    `costs`: of each frame, then of each in `gone`.
    """
    if sum(costs) <= most:
        return tree
    frames = [*tree.frames, *tree.gone]
    total, total_before = tree.total or 1, tree.total_before or 1

    def rank(place: int) -> tuple[float, int]:
        frame = frames[place]
        return -max(frame.total / total, frame.total_before / total_before), frame.depth

    kept: list[int] = []
    for place in sorted(range(len(frames)), key=rank):
        most -= costs[place]
        if most < 0 and kept:
            break
        kept.append(place)
    kept.sort()
    now = sum(place < len(tree.frames) for place in kept)
    left = [frames[place] for place in kept]
    return replace(tree, frames=left[:now], gone=left[now:], thinned=len(frames) - len(left))


def starts(frames: Sequence[Frame], *, before: bool = False) -> list[int]:
    """The start of each frame: its parent's start plus the widths (or those before) of the siblings in between."""
    found: list[int] = []
    following = [0] * (max((frame.depth for frame in frames), default=0) + 2)  # at each depth
    for frame in frames:
        depth, start = frame.depth, following[frame.depth]
        found.append(start)
        following[depth] = start + (frame.total_before if before else frame.total)
        following[depth + 1] = start
    return found


def _merge(weights: dict[Path, list[int]], seen_after: float, seen_before: float) -> tuple[list[Frame], int, bool]:
    """Walk the sorted stacks; one path is open at a time, and frames that are too narrow are dropped when they close."""
    found: list[Frame] = [_OPEN]
    left_out, in_common = 0, False
    opened: list[list[int]] = [[0, 0, 0, 0, 0]]  # total, own, total_before, own_before, place in `found`
    names: list[str] = [ROOT]

    def close(down_to: int) -> None:
        nonlocal left_out, in_common
        while len(opened) > down_to:
            total, own, total_before, own_before, place = opened.pop()
            name = names.pop()
            if opened:
                above = opened[-1]
                above[0] += total
                above[2] += total_before
                if total and total_before:
                    in_common = True
                if total < seen_after and total_before < seen_before:
                    left_out += 1
                    del found[place:]
                    continue
            found[place] = Frame(len(opened), name, total, own, total_before, own_before)

    previous: Path = ()
    for path in sorted(weights):
        shared = 0
        for one, other in zip(path, previous):
            if one != other:
                break
            shared += 1
        close(shared + 1)
        for name in path[shared:]:
            opened.append([0, 0, 0, 0, len(found)])
            names.append(name)
            found.append(_OPEN)
        leaf = opened[-1]
        now, once = weights[path]
        leaf[0] += now
        leaf[1] += now
        leaf[2] += once
        leaf[3] += once
        previous = path
    close(0)
    return found, left_out, in_common


_OPEN = Frame(0, "", 0, 0)  # placeholder for a frame whose children are not closed yet


def _split(frames: Iterable[Frame], seen_after: float) -> tuple[list[Frame], list[Frame]]:
    """The frames that are wide enough now, and those that only were before."""
    now: list[Frame] = []
    gone: list[Frame] = []
    top = 0  # the depth of the top of the current vanished subtree
    for frame in frames:
        if frame.depth == 0 or frame.total >= seen_after:
            now.append(frame)
            top = 0
            continue
        if not top or frame.depth < top:
            top = frame.depth
        gone.append(frame._replace(depth=frame.depth - top))
    return now, gone
