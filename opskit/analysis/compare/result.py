"""What differs between two machines, as `opskit compare` shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.collect.compare.facts import Facts, JvmFacts, Value

BAD, GOOD = "bad", "good"


class Echo(NamedTuple):
    """A difference that follows from another one. None: not set there."""

    key: str
    name: str
    bad: Optional[Value]  # noqa: UP045
    good: Optional[Value]  # noqa: UP045
    unit: str


class Difference(NamedTuple):
    """A value that differs. None: not set there. `jvm`: the pair's number, from 0; None: of the machine.

    `size`: how large it is, to rank the measured ones: in points of a share, or the relative change. `is_worse`: whether BAD has more
    of what slows down; None: it says neither. `explained_by`: keys of configured differences that may be the cause.
    """

    class_: str
    area: str
    key: str
    name: str
    bad: Optional[Value]  # noqa: UP045
    good: Optional[Value]  # noqa: UP045
    unit: str
    jvm: Optional[int] = None  # noqa: UP045
    size: float = 0.0
    is_worse: Optional[bool] = None  # noqa: UP045
    echoes: tuple[Echo, ...] = ()
    explained_by: tuple[str, ...] = ()


class Pair(NamedTuple):
    """One JVM of each side."""

    bad: JvmFacts
    good: JvmFacts


class Result(NamedTuple):
    """`differences`: measured first, then configured, then host. `equal`, `noise`, `own`: facts that are the same, differ too little, name one machine.

    `unknown`: (what, why) that could not be compared. `has_rates`: whether both sides have them. `unpaired`: (side, JVM).
    """

    facts: Facts
    pairs: Sequence[Pair]
    differences: Sequence[Difference]
    equal: int
    noise: int
    own: int
    unknown: Sequence[tuple[str, str]]
    has_rates: bool
    unpaired: Sequence[tuple[str, JvmFacts]] = ()

    def of_class(self, class_: str) -> list[Difference]:
        """The differences of a class, in order."""
        return [each for each in self.differences if each.class_ == class_]
