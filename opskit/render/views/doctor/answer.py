"""What is shown: the ranked result, and what changed in a watch or since the last run."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING

from opskit.analysis.doctor.flat import flat
from opskit.analysis.doctor.seen import NOTHING_THERE
from opskit.quantities import plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.analysis.doctor.flat import Numbered
    from opskit.analysis.doctor.result import Result
    from opskit.analysis.doctor.seen import Gap, Seen
    from opskit.analysis.doctor.state import Changes
    from opskit.analysis.doctor.watched import Watched

_NEEDS_ASK = "needs --ask"  # a capture without replies says `capture with --ask`
_MOST_SUBJECTS = 2


class Shown(NamedTuple):
    """`all_`: --all. `verbose`: -v. `on_screen`: -w on a terminal. `repeats`: text of -w, which lists changes alone after the first sample."""

    all_: bool = False
    verbose: bool = False
    on_screen: bool = False
    repeats: bool = False


class Answer:
    """An answer about a machine. `names`: of processes, as they are called in the verdict."""

    def __init__(
        self, result: Result, host: str, names: Mapping[int, str] | None = None, watched: Watched | None = None,
        changes: Changes | None = None,
    ) -> None:  # fmt: skip
        self.result, self.host, self.names, self.watched, self.changes = result, host, names or {}, watched, changes
        self.seen = result.seen

    @cached_property
    def findings(self) -> Sequence[Numbered]:
        """All of them, with their numbers."""
        return flat(self.result)

    def named(self, pid: int) -> str:
        """`25393 (billing)`."""
        return f"{pid} ({self.names[pid]})" if pid in self.names else str(pid)

    @property
    def place(self) -> str:
        """`on vm`, `in 25393 (billing)`, `in 4 processes`."""
        pids = self.seen.pids
        if not pids:
            return f"on {self.host}"
        many = len(pids) > _MOST_SUBJECTS
        return f"in {plural(len(pids), 'process', 'processes') if many else ' and '.join(map(self.named, pids))}"

    @property
    def exit_code(self) -> int:
        """2 where nothing could be checked; 1 for an error or a warning, of those that changed where only these are reported."""
        if not self.seen.checked:
            return 2
        if self.changes is not None:
            return int(bool(self.changes.new or self.changes.worse))
        return int(bool(self.result.problems))

    @property
    def gaps(self) -> list[Gap]:
        """What was not checked, without what only --ask checks, and what has nothing to look at."""
        return [gap for gap in self.seen.unchecked if _NEEDS_ASK not in gap.reason and gap.reason != NOTHING_THERE]

    @property
    def all_gaps(self) -> list[Gap]:
        """The same with what has nothing to look at."""
        return [gap for gap in self.seen.unchecked if _NEEDS_ASK not in gap.reason]

    @property
    def failed(self) -> set[str]:
        """The checks without an answer."""
        return {gap.check for gap in self.gaps} - {each.name for each in self.seen.checked}

    @property
    def needs_ask(self) -> list[str]:
        """What --ask would check besides."""
        return list(dict.fromkeys(gap.what for gap in self.seen.unchecked if _NEEDS_ASK in gap.reason))


def asked_pids(seen: Seen) -> list[int]:
    """The JVMs of which a thread dump was taken."""
    return [pid for check in seen.checked for pid in check.outcome.asked]


def clock_time(at_s: float) -> str:
    """`14:03:10`, in UTC as all times that opskit shows."""
    return datetime.fromtimestamp(at_s, timezone.utc).strftime("%H:%M:%S")


def utc(at_s: float | None) -> str | None:
    """`2026-11-23T14:03:10Z`."""
    if at_s is None:
        return None
    return datetime.fromtimestamp(at_s, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
