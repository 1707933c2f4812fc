"""/proc/PID/uid_map and gid_map (user_namespaces(7)): `first-inside first-outside count` a line, outside as the reader sees it.

0     100000      65536
"""

from __future__ import annotations

from opskit.errors import BadInput
from opskit.quantities import integers
from opskit.records import NamedTuple


class IdMap(NamedTuple):
    """The ranges of one user namespace: (first inside, first outside, how many)."""

    ranges: tuple[tuple[int, int, int], ...]

    def inner(self, outer: int) -> int | None:
        """The id inside for an id of ours; None where it is not mapped."""
        found = (
            inside + outer - outside for inside, outside, count in self.ranges if outside <= outer < outside + count
        )
        return next(found, None)


def parse_id_map(text: str) -> IdMap:
    """Parse the lines. Raises BadInput."""
    ranges = []
    for number, line in enumerate(text.splitlines(), 1):
        numbers = integers(line.split())
        if numbers is None or len(numbers) != 3:
            raise BadInput("uid_map", "not `inside outside count`", number, line)
        ranges.append((numbers[0], numbers[1], numbers[2]))
    return IdMap(tuple(ranges))
