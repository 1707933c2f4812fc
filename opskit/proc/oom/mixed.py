"""Reports whose lines are mixed in the log: two CPUs print at once, and the kernel does not tell which line is whose.

What names a process belongs to it. A cgroup's counters belong to a victim only where sizes leave no other way to give them out.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

from opskit.proc.oom import phrases
from opskit.proc.oom.report import MOST_ROWS, Report
from opskit.quantities import integer

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Sequence

    from opskit.proc.oom.lines import When
    from opskit.proc.oom.records import Usage
    from opskit.proc.oom.report import Victim

_MOST = 5  # reports at once; more have too many ways
_MOST_LINES = 1_000  # of each kind
_SLACK = 1.02
_KIB = 1024


class Mixed:
    """The lines of several reports; `begun` counts them. `reports()`: one for each victim, with what is certain."""

    def __init__(self, first: Report) -> None:
        self.begun = 2
        self.first = first
        self.usages = [first.usages["memory"]] if "memory" in first.usages else []
        self.paths = [(first.cgroup, first.task_cgroup)] if first.cgroup else []
        self.anon: dict[str, int] = {}
        if first.cgroup and "rss" in first.stats:
            self.anon[first.cgroup] = first.stats["rss"]
        self.victims: list[Victim] = []
        self._table = Report(first.key, first.when, 0, is_cut=True)  # holds the rows of all
        self._table.columns, self._table.rows = first.columns, dict(first.rows)
        self._chosen: dict[int, Report] = {}
        if first.chosen is not None:
            self._chosen[first.chosen.pid] = first

    @property
    def is_over(self) -> bool:
        """Whether each report has its victim."""
        return len(self.victims) >= self.begun

    def limit_of(self, found: re.Match[str]) -> None:
        """The cgroup that was full, and the victim's."""
        if len(self.paths) < _MOST_LINES:
            self.paths.append((found[2].rstrip(), found[1]))

    def use(self, usage: Usage) -> None:
        """The memory of one of the cgroups."""
        if len(self.usages) < _MOST_LINES:
            self.usages.append(usage)

    def stats(self, found: re.Match[str]) -> None:
        """The statistics of a cgroup, where they are in the same line."""
        if found[2] and len(self.anon) < _MOST_LINES:
            kib = next((integer(value) or 0 for name, value in phrases.STAT.findall(found[2]) if name == "rss"), 0)
            self.anon[found[1]] = self.anon.get(found[1], 0) + kib * _KIB

    def columns(self, names: list[str]) -> None:
        """The head of a table; one kernel has one."""
        self._table.columns = names

    def row(self, found: re.Match[str]) -> None:
        """A row of any of the tables."""
        if len(self._table.rows) < MOST_ROWS:
            self._table.add_row(found)

    def choose(self, pid: int, when: When, take: Callable[[Report], None]) -> None:
        """A line that names a chosen process; `take` puts it into that process's report."""
        if pid not in self._chosen and len(self._chosen) < _MOST * 2:
            self._chosen[pid] = Report(self.first.key, when, 0, is_cut=False)
        if pid in self._chosen:
            take(self._chosen[pid])

    def reports(self) -> list[Report]:
        """A report for each victim, and for each chosen process that the log does not show killed."""
        killed = {victim.pid for victim in self.victims}
        causes = {report.chosen.why for report in self._chosen.values() if report.chosen is not None}
        why = causes.pop() if len(causes) == 1 else None
        victims = [victim if victim.why else victim._replace(why=why) for victim in self.victims]
        found = [self._report(self._chosen.get(victim.pid), victim) for victim in victims]
        if not self.is_over:  # 3.10 chooses a thread, whose PID is not the victim's
            found += [self._report(report, None) for pid, report in self._chosen.items() if pid not in killed]
        self._give_paths([each for each in found if each.cgroup is None and each.is_cgroup])
        self._give_usages([each for each in found if each.is_cgroup])
        return found

    def _report(self, chosen: Report | None, victim: Victim | None) -> Report:
        report = Report(self.first.key, (victim or self.first).when, 0, is_cut=self.first.is_cut)
        report.is_mixed = True
        if chosen is not None:
            report.chosen, report.score, report.constraint = chosen.chosen, chosen.score, chosen.constraint
            if chosen.constraint is not None:
                report.cgroup, report.task_cgroup = chosen.cgroup, chosen.task_cgroup
        if victim is not None:
            report.add_victim(victim)
        pids = {each.pid for each in (victim, report.chosen) if each is not None}
        report.rows = {pid: row for pid, row in self._table.rows.items() if pid in pids}
        return report

    def _give_paths(self, reports: Sequence[Report]) -> None:
        """The cgroup of each victim until 4.20, where it is named apart from the victim."""
        if len(reports) != len(self.paths) or len(reports) > _MOST:
            return
        sums = [sum(kib for path, kib in self.anon.items() if _is_below(path, full)) for full, _ in self.paths]
        for report, places in self._ways(reports, sums):
            found = {self.paths[place] for place in places}
            if len({full for full, _ in found}) == 1:
                report.cgroup = next(iter(found))[0]
                report.task_cgroup = next(iter(found))[1] if len(found) == 1 else None

    def _give_usages(self, reports: Sequence[Report]) -> None:
        for report, places in self._ways(reports, [usage.usage_bytes for usage in self.usages]):
            found = [self.usages[place] for place in places]
            if len({usage[:2] for usage in found}) == 1:
                report.usages["memory"] = found[0]

    @staticmethod
    def _ways(reports: Sequence[Report], sizes: Sequence[int]) -> list[tuple[Report, set[int]]]:
        """For each report the places that it may have, when all are given out and none holds less than its victim had."""
        if len(reports) != len(sizes) or len(reports) > _MOST:
            return []
        needs = [max((victim.anon_bytes or 0 for victim in report.victims), default=0) for report in reports]
        possible = [
            way
            for way in permutations(range(len(sizes)))
            if all(need <= sizes[place] * _SLACK for need, place in zip(needs, way))
        ]
        return [(report, {way[number] for way in possible}) for number, report in enumerate(reports)]


def _is_below(path: str, top: str | None) -> bool:
    return f"{path}/".startswith(f"{(top or '').rstrip('/')}/")
