"""The looks of a watch in a few numbers each, for JSON. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.tcp.groups import summed
from opskit.proc.tcp_sockets import TIME_WAIT
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.analysis.tcp.result import Result


class Moment(NamedTuple):
    """One look: connections by verdict, bytes a second of all of them, CLOSE-WAIT and TIME-WAIT. `at_s`: since the first look."""

    at_s: float
    verdicts: Mapping[str, int]
    sent_bytes_s: float | None
    received_bytes_s: float | None
    close_wait: int
    time_wait: int


def moment_of(result: Result) -> Moment:
    """What to keep of a look."""
    verdicts: dict[str, int] = {}
    for group in result.groups:
        for name, number in group.verdicts:
            verdicts[name] = verdicts.get(name, 0) + number
    return Moment(
        result.facts.at_s, verdicts, summed(group.rates.sent_bytes_s for group in result.groups),
        summed(group.rates.received_bytes_s for group in result.groups), sum(each.last for each in result.closing),
        sum(space.states.get(TIME_WAIT, 0) for space in result.facts.spaces),
    )  # fmt: skip
