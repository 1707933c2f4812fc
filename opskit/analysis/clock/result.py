"""What `opskit clock` concludes. Offsets are what has to be added to the clock: positive where it is behind. None: unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.finding import Finding
    from opskit.collect.clock.answers import Answer
    from opskit.collect.clock.facts import Facts

State = Literal["synchronised", "unsynchronised", "stale", "unknown"]


class Sync(NamedTuple):
    """Whether something keeps the clock right. `by`: the daemon and its reference, as a clause; `why`: what shows it.

    `stale`: it was right, and nobody has corrected it for about `stale_s`.
    `is_said`: by the daemon itself.
    """

    state: State
    by: str | None
    why: str
    error_s: float | None = None
    offset_s: float | None = None
    stale_s: float | None = None
    is_said: bool = False


class Skew(NamedTuple):
    """The offset to the server. `error_s`: it is right within this; `zone_s`: the offset of a time zone that it matches."""

    offset_s: float
    error_s: float
    zone_s: int | None


class Result(NamedTuple):
    """The answer. `is_answered` False: the server that was asked for gave no time."""

    facts: Facts
    answers: Sequence[Answer]
    sync: Sync
    skew: Skew | None
    is_slow_source: bool | None
    verdict: Sequence[str]
    findings: Sequence[Finding]
    is_answered: bool
    notes: Sequence[str] = ()
