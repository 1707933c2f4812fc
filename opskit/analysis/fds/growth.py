"""What grows over the looks of a watch, and when the limit is reached at that pace. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.fds.result import Growth
from opskit.analysis.slope import is_steady, slope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.collect.fds.facts import Facts, Group

_LATER = 0.5
_MOST_LOOKS = 720

Key = tuple[str, str]
Track = "Sequence[tuple[float, int]]"  # seconds since the first look, fds


def kept(samples: Sequence[Facts]) -> list[Facts]:
    """The looks that a long watch keeps: at most 720, from its start to now; of older ones every second is dropped."""
    if len(samples) <= _MOST_LOOKS:
        return [*samples]
    return [*samples[:-1:2], samples[-1]]


def total_growth(samples: Sequence[Facts]) -> Growth | None:
    """Of all fds of the process; None with fewer than two looks."""
    return _growth(None, [(facts.at_s, facts.fds) for facts in samples], _free(samples))


def group_growth(samples: Sequence[Facts]) -> list[Growth]:
    """The groups with more fds than at the first look: those that grow steadily first, then the fastest."""
    if len(samples) < 2:
        return []
    counts: list[Mapping[Key, int]] = [{_key(group): group.fds for group in facts.groups} for facts in samples]
    free, last = _free(samples), counts[-1]
    found = []
    for group in samples[-1].groups:
        key = _key(group)
        if last[key] > counts[0].get(key, 0):
            track = [(facts.at_s, each.get(key, 0)) for facts, each in zip(samples, counts)]
            growth = _growth(group, track, free)
            if growth is not None:
                found.append(growth)
    return sorted(found, key=lambda each: (not each.is_steady, -each.per_min, each.group and _key(each.group)))


def _key(group: Group) -> Key:
    return group.kind, group.detail


def _free(samples: Sequence[Facts]) -> float | None:
    last = samples[-1].open if samples else None
    return None if last is None else last.free


def _growth(group: Group | None, track: Sequence[tuple[float, int]], free: float | None) -> Growth | None:
    per_s = slope(track)
    if per_s is None:
        return None
    full_s = (
        free / per_s if free is not None and free != float("inf") and per_s > 0 and track[-1][1] > track[0][1] else None
    )
    return Growth(group, track[0][1], track[-1][1], per_s * 60, is_steady(track) and _goes_on(track), full_s)


def _goes_on(track: Sequence[tuple[float, int]]) -> bool:
    """Whether the second half of the time has half the growth of the first at least: a server that has started slows down."""
    (begin_s, first), (end_s, last) = track[0], track[-1]
    middle = next(count for at_s, count in track if at_s >= (begin_s + end_s) / 2)
    return last - middle >= _LATER * (middle - first)
