"""The kinds of sampled frames as marks behind their names, as perf and async-profiler write them. Pure.

    Shop.serve_[j]  HashMap.get_[i]  Parser.next_[0]  Parser.skip_[1]  do_syscall_64_[k]  memcpy

A method may be inlined in one sample and compiled in the next. A place in the call tree gets the mark of most of its weight, so
that a flame graph has one box for it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opskit.analysis.jpmp.flame_tree import Path

MARKS = {"compiled": "_[j]", "inlined": "_[i]", "interpreted": "_[0]", "c1": "_[1]", "kernel": "_[k]"}
JAVA_KINDS = frozenset({"interpreted", "c1", "compiled", "inlined"})
LABEL = "label"  # the kind of a frame that is the name of a thread, or a remark
NOT_NATIVE = JAVA_KINDS | {LABEL}
_OF_JAVA = re.compile(r"_\[[01ij]\]$")


def kinds_by_marks(frames: Sequence[str]) -> tuple[str, ...]:
    """The kinds of frames of which Java methods are marked; empty where none is: then nothing is known."""
    kinds = tuple("compiled" if frame.endswith("]") and _OF_JAVA.search(frame) else "native" for frame in frames)
    return kinds if "compiled" in kinds else ()


def without_native(frames: Sequence[str], kinds: Sequence[str]) -> tuple[str, ...]:
    """The Java methods and names of threads; all frames where no method is a Java method."""
    if not JAVA_KINDS.intersection(kinds):
        return tuple(frames)
    return tuple(name for name, kind in zip(frames, kinds) if kind in NOT_NATIVE)


class _Place:
    """A place in the call tree: what it calls, by name, and the weight of each mark."""

    __slots__ = ("calls", "weights")

    def __init__(self) -> None:
        self.calls: dict[str, _Place] = {}
        self.weights: dict[str, int] = {}


def marked(stacks: Iterable[tuple[Sequence[str], Sequence[str], int]]) -> list[tuple[Path, int]]:
    """The paths with marks, for (names, kinds, weight). All run from the same side; kinds may be empty."""
    top = _Place()
    walked: list[tuple[list[tuple[str, _Place]], int]] = []
    for names, kinds, weight in stacks:
        place, path = top, []
        for number, name in enumerate(names):
            place = place.calls.get(name) or place.calls.setdefault(name, _Place())
            mark = MARKS.get(kinds[number], "") if kinds else ""
            place.weights[mark] = place.weights.get(mark, 0) + weight
            path.append((name, place))
        walked.append((path, weight))
    return [(tuple(name + _heaviest(place) for name, place in path), weight) for path, weight in walked]


def _heaviest(place: _Place) -> str:
    weights = place.weights
    return next(iter(weights)) if len(weights) == 1 else max(weights, key=lambda mark: (weights[mark], mark))


def unmarked(frame: str) -> str:
    """The name without the mark of a Java frame: the same method before and after it was compiled."""
    return _OF_JAVA.sub("", frame) if frame.endswith("]") else frame
