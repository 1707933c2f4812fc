"""The looks of a watch in a few numbers each, for JSON. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.cswitch.result import Result


class Moment(NamedTuple):
    """One look. `at_s`: its end, since the first look began. `waiting`, `running`: of all threads together; 1 is one CPU.

    `worst`: the thread or process that waited most, and `worst_waiting` its share.
    """

    at_s: float
    waiting: float
    running: float
    worst: str | None
    worst_waiting: float | None
    runnable: float | None
    switches: float | None
    pressure: float | None


def moment_of(result: Result, earlier: Sequence[Moment]) -> Moment:
    """What to keep of a look."""
    facts = result.facts
    sums = facts.threads if facts.process is not None else facts.processes
    worst, share = None, None
    if result.rows:
        thread = result.rows[0].thread
        worst, share = thread.java_name or thread.name, thread.waiting
    elif result.processes:
        waits = result.processes[0].waits
        worst, share = f"{waits.process.pid} ({waits.process.command})", waits.waiting
    return Moment(
        (earlier[-1].at_s if earlier else 0.0) + facts.window_s, sum(each.waiting or 0.0 for each in sums),
        sum(each.running for each in sums), worst, share, facts.runnable, facts.switches, facts.pressure,
    )  # fmt: skip
