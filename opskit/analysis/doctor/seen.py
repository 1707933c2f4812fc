"""What doctor's checks saw in one look: the seam between those that read (opskit.checks) and what ranks and shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.analysis.finding import Finding

NOTHING_THERE = "it has nothing to look at here"  # the reason of a check that is not about the processes asked about


class Gap(NamedTuple):
    """What was not checked, or in part: `pipes of 3 processes`, and why: `permission denied: run as root`."""

    check: str
    what: str
    reason: str


class Outcome(NamedTuple):
    """What a check returns. `looked_at`: what it covered, for -v: `1,130 processes`, `53 pipes`. `gaps`: what it could not read.

    `asked`: the JVMs of which it took a thread dump, and for how long each was stopped, in seconds.
    """

    findings: Sequence[Finding] = ()
    looked_at: Sequence[str] = ()
    gaps: Sequence[Gap] = ()
    asked: Mapping[int, float | None] = {}


class Checked(NamedTuple):
    """A check that ended, by its name in the catalog; `cpu_s` is of its thread, None where it was not measured."""

    name: str
    outcome: Outcome
    took_s: float
    cpu_s: float | None = None


class Place(NamedTuple):
    """Where a process of a finding stands: what it is called, and the paths of its cgroups (one on v2), without `/`."""

    pid: int
    name: str
    cgroups: tuple[str, ...] = ()
    ppid: int | None = None


class Seen(NamedTuple):
    """One look. `unchecked`: what did not finish, crashed, was denied or skipped. `pids`: those that were asked about; none: all."""

    checked: Sequence[Checked]
    unchecked: Sequence[Gap]
    places: Mapping[int, Place]
    took_s: float
    at_s: float  # seconds since the epoch
    pids: tuple[int, ...] = ()
    ask: bool = False
