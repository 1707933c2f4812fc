"""/proc/PID/uid_map and gid_map (user_namespaces(7)): `first-inside first-outside count` a line, outside as the reader sees it.

0     100000      65536
"""

from __future__ import annotations

from typing import NamedTuple

from opskit.errors import BadInput


class IdMap(NamedTuple):
    """The ranges of one user namespace: (first inside, first outside, how many)."""

    ranges: tuple[tuple[int, int, int], ...]

    def inner(self, outer: int) -> int | None:
        """What an id of ours is inside; None where it has no name there."""
        for inside, outside, count in self.ranges:
            if outside <= outer < outside + count:
                return inside + outer - outside
        return None


def parse_id_map(text: str) -> IdMap:
    """Parse the lines. Raises BadInput."""
    ranges = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if len(words) != 3 or not all(word.isdigit() for word in words):
            raise BadInput("uid_map", "not `inside outside count`", number, line)
        ranges.append((int(words[0]), int(words[1]), int(words[2])))
    return IdMap(tuple(ranges))
