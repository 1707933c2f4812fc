"""Fold frames that repeat, so that recursion takes one line: `Swallow.depth x183`; for a cycle, its frames and one more line. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.jpmp.stacks import merge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.jvm.profiles import WeightedStack

_LONGEST_CYCLE = 4
_FEWEST = 3  # two equal frames are mostly overloads

Part = tuple[tuple[str, ...], bool]  # frames, and whether they repeat


def fold(frames: Sequence[str]) -> tuple[tuple[Part, ...], tuple[int, ...]]:
    """The frames in parts, and how often each repeats: equal frames of different depths have equal parts."""
    parts: list[Part] = []
    counts: list[int] = []
    at = 0
    while at < len(frames):
        size, count = max(((each, _repeats(frames, at, each)) for each in range(1, _LONGEST_CYCLE + 1)), key=_gain)
        size, count = (size, count) if count >= _FEWEST else (1, 1)
        parts.append((tuple(frames[at : at + size]), count > 1))
        counts.append(count)
        at += size * count
    return tuple(parts), tuple(counts)


def _gain(found: tuple[int, int]) -> tuple[int, int]:
    """The frames that a cycle saves; of equal gains the shorter cycle."""
    size, count = found
    return (size * (count - 1) if count >= _FEWEST else 0), -size


def _repeats(frames: Sequence[str], at: int, size: int) -> int:
    """How often the `size` frames at `at` follow each other."""
    end = at + size
    while (
        end + size <= len(frames)
        and frames[end] == frames[end - size]
        and frames[end : end + size] == frames[at : at + size]
    ):
        end += size
    return (end - at) // size


def folded(stacks: Sequence[WeightedStack]) -> list[WeightedStack]:
    """The stacks with folded frames; those that differ in the depth of a recursion alone are added up."""
    depths: dict[object, list[tuple[int, ...]]] = {}
    parts_of: dict[tuple[str, ...], tuple[tuple[Part, ...], tuple[int, ...]]] = {}

    def key(stack: WeightedStack) -> object:
        parts, counts = parts_of.get(stack.frames) or parts_of.setdefault(stack.frames, fold(stack.frames))
        place = parts, stack.state, stack.idle, stack.container
        depths.setdefault(place, []).append(counts)
        return place

    return [
        stack._replace(frames=_shown(parts_of[stack.frames][0], depths[_place(stack, parts_of)]))
        for stack in merge(stacks, key)
    ]


def _place(stack: WeightedStack, parts_of: dict[tuple[str, ...], tuple[tuple[Part, ...], tuple[int, ...]]]) -> object:
    return parts_of[stack.frames][0], stack.state, stack.idle, stack.container


def _shown(parts: Sequence[Part], counts: Sequence[tuple[int, ...]]) -> tuple[str, ...]:
    shown: list[str] = []
    for index, (frames, repeats) in enumerate(parts):
        if not repeats:
            shown += frames
            continue
        least, most = min(each[index] for each in counts), max(each[index] for each in counts)
        times = f"x{most}" if least == most else f"x{least} to x{most}"
        shown += [f"{frames[0]} {times}"] if len(frames) == 1 else [*frames, f"({len(frames)} frames above {times})"]
    return tuple(shown)
