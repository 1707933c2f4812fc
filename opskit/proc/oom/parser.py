"""Puts the lines of OOM reports together: kernels 3.10 to 6.x, cut logs, and reports whose lines are mixed."""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING

from opskit.proc.oom import phrases
from opskit.proc.oom.lines import When, when_of
from opskit.proc.oom.mixed import Mixed
from opskit.proc.oom.records import CHOSEN, KILLED, NONE, PANIC, Kill
from opskit.proc.oom.report import Key, Report, Victim, usage_of
from opskit.quantities import integer, signed

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.proc.oom.lines import Line

# A line outside of a report has one of these, or nothing to do with a kill.
NEEDLES = (
    "invoked oom-killer", "oom-kill:constraint=", "Kill process ", "Killed process ", "memory.oom.group set",
    "Manual OOM execution", "Kernel panic - not syncing: ", "no killable process",
)  # fmt: skip
_MOST_OPEN, _MOST_KILLS, _MOST_HOSTS = 16, 10_000, 1_000
FIRST_LINES = 3_000  # of a log, in which the rest of a report may be whose beginning was overwritten
_MOST_MIXED = 64
_STALE_LINES, _STALE_S = 200_000, 5.0  # a report takes milliseconds, on a serial console seconds
_KIB = 1024
_ESCAPED_NEWLINES = re.compile(r"\\x0a|#012")  # of /dev/kmsg; of rsyslog, which reads the journal on RHEL


class OomParser:
    """Takes lines in the order of a log; `kills()` are those found so far, in the order in which their reports ended.

    `now_s` gives dates without a year theirs. Reports are held apart by host, and by the caller of printk where the log has it. In the
    `first_lines` a report without its beginning is looked for.
    """

    def __init__(self, page_bytes: int = 4096, now_s: float | None = None, first_lines: int = FIRST_LINES) -> None:
        self._page_bytes, self._now_s, self._first_lines = page_bytes, now_s, first_lines
        self._open: dict[Key, Report] = {}
        self._mixed: dict[str, Mixed] = {}  # by host: of those without a caller
        self._done: deque[Report] = deque(maxlen=_MOST_KILLS)
        self._members = 0  # further victims of reports
        self._last: dict[str, Report] = {}  # by host
        self._lines = 0
        self._is_manual = False
        self.more = 0  # reports above the most that are kept
        self._kinds: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str], Line], None]], ...] = (
            ("invoked oom-killer", phrases.INVOKED, self._begin),
            ("Killed process ", phrases.KILLED, self._killed),
            ("Killed process ", phrases.KILLED_CUT, self._killed_cut),
            ("Kill process ", phrases.CHOSEN, self._chosen),
            ("oom-kill:", phrases.CONTEXT, self._context),
            ("Comm: ", phrases.INVOKER, self._invoker),
            ("failcnt ", phrases.USAGE, self._usage),
            ("Memory cgroup stats for ", phrases.STATS_OF, self._stats),
            (" total_vm ", phrases.HEADER, self._header),
            (" killed as a result of limit of ", phrases.LIMIT_OF, self._limit_of),
            ("memory.oom.group", phrases.GROUP, self._group),
            ("Manual OOM", phrases.MANUAL, self._by_hand),
            ("Kernel panic", phrases.PANIC, self._panic),
            ("no killable process", phrases.NO_VICTIM, self._no_victim),
            ("[", phrases.NUMBERS, self._row),
        )

    @property
    def is_reading(self) -> bool:
        """Whether the next line matters even without one of the NEEDLES."""
        return bool(self._open or self._mixed) or self._lines < self._first_lines

    def skip(self, lines: int) -> None:
        """Count lines that were not looked at."""
        self._lines += lines

    def take(self, line: Line) -> None:
        """A line of the log."""
        self._lines += 1
        if not line.may_be_kernels:
            return
        text = line.text
        for needle, pattern, take in self._kinds:
            if needle in text and (found := pattern.match(text)):
                take(found, line)
                return
        report = self._of(line)
        if report is not None:
            for part in _ESCAPED_NEWLINES.split(text):
                report.detail(part)

    def kills(self) -> list[Kill]:
        """Every victim; of reports that did not end, what they tell."""
        mixed = [report for each in self._mixed.values() for report in each.reports()]
        for report in self._open.values():
            report.settle()
        reports = [*self._done, *mixed, *self._open.values()]
        found = [kill for report in reports for kill in report.kills(self._page_bytes)]
        # The remains of a report without its beginning tell nothing without a victim.
        return [kill for kill in found if kill.pid is not None or not kill.is_cut]

    def _when(self, line: Line) -> When:
        return when_of(line.date, line.uptime, self._now_s)

    def _of(self, line: Line) -> Report | None:
        """The open report of the line's caller. A further line of a message has no caller: it goes to the only one."""
        found = self._open.get((line.host, line.caller))
        if found is None and line.is_continued and len(self._open) == 1:
            return next(iter(self._open.values()))
        return found

    def _report(self, line: Line) -> Report:
        """The same, or a new one that lacks its beginning."""
        return self._of(line) or self._new(line, is_cut=True)

    def _is_mixed(self, line: Line) -> Mixed | None:
        return None if line.caller else self._mixed.get(line.host)

    def _new(self, line: Line, *, is_cut: bool) -> Report:
        when = self._when(line)
        key = line.host, line.caller
        for other, report in list(self._open.items()):
            if self._is_stale(report, when) or other == key or len(self._open) >= _MOST_OPEN:
                self._close(report)
        report = Report(key, when, self._lines, is_cut=is_cut)
        last = self._last.get(line.host)
        if is_cut and not line.caller and last is not None and not self._is_stale(last, when):
            report.follows = last
        self._open[key] = report
        return report

    def _is_stale(self, report: Report, now: When) -> bool:
        """Whether a report will get no end: the log lost it."""
        passed = [
            later - then for later, then in zip(now[:3], report.when[:3]) if later is not None and then is not None
        ]
        return any(not -1 <= each <= _STALE_S for each in passed) or self._lines - report.line > _STALE_LINES

    def _mixed_by(self, line: Line, report: Report, *, clashes: bool) -> Mixed | None:
        """The reports that are mixed, or those found to be: this one has already what a report has once."""
        if clashes and not report.key[1] and not self._is_stale(report, self._when(line)):
            return self._mix(report)
        return None

    def _mix(self, report: Report) -> Mixed:
        del self._open[report.key]
        if len(self._mixed) >= _MOST_OPEN:
            self._end_of_mixed(next(iter(self._mixed)))
        mixed = self._mixed[report.key[0]] = Mixed(report)
        return mixed

    def _close(self, report: Report) -> None:
        del self._open[report.key]
        report.settle()
        if not report.is_cut or report.victims or report.chosen is not None:
            self._keep(report)

    def _keep(self, report: Report) -> None:
        report.trim()
        if len(self._last) >= _MOST_HOSTS:
            self._last.clear()
        self._last[report.key[0]] = report
        self.more += len(self._done) == _MOST_KILLS
        self._done.append(report)  # the oldest gives way

    def _begin(self, found: re.Match[str], line: Line) -> None:
        when, before = self._when(line), self._open.get((line.host, line.caller))
        mixed = self._is_mixed(line)
        if mixed is not None and (self._is_stale(mixed.first, when) or mixed.begun >= _MOST_MIXED):
            self._end_of_mixed(line.host)
        elif mixed is not None:
            mixed.begun += 1
            return
        if before is not None and not line.caller and not before.is_cut and not self._is_stale(before, when):
            self._mix(before)
            return
        report = self._new(line, is_cut=False)
        report.begin(found)
        report.manual, self._is_manual = self._is_manual, False

    def _end_of_mixed(self, host: str) -> None:
        reports = self._mixed.pop(host).reports()
        for report in reports:
            report.peers = reports
            self._keep(report)

    def _invoker(self, found: re.Match[str], line: Line) -> None:
        report = self._of(line)
        if report is not None and f"{found[2]} ".startswith(f"{report.invoker} "):
            report.invoker_pid = integer(found[1])

    def _limit_of(self, found: re.Match[str], line: Line) -> None:
        if mixed := self._is_mixed(line):
            mixed.limit_of(found)
            return
        report = self._report(line)
        if mixed := self._mixed_by(line, report, clashes=report.task_cgroup is not None):
            mixed.limit_of(found)
            return
        report.task_cgroup, report.cgroup = found[1], found[2].rstrip()

    def _usage(self, found: re.Match[str], line: Line) -> None:
        usage, mixed = usage_of(found), self._is_mixed(line)
        if mixed is None:
            report = self._report(line)
            mixed = self._mixed_by(line, report, clashes=found[1] in report.usages)
        if mixed is None:
            report.usages[found[1]] = usage
        elif found[1] == "memory":
            mixed.use(usage)

    def _stats(self, found: re.Match[str], line: Line) -> None:
        if mixed := self._is_mixed(line):
            mixed.stats(found)
            return
        report = self._report(line)
        if report.is_cut and found[2] and "memory" not in report.usages:
            return  # until 5.1 each cgroup has a line: the first one, which was full, may be lost
        report.cgroup = report.cgroup or found[1]
        report.in_stats = not found[2]
        report.add_stats(found[2] or "")

    def _header(self, found: re.Match[str], line: Line) -> None:
        if mixed := self._is_mixed(line):
            mixed.columns(found[1].split())
        elif self.is_reading:
            report = self._report(line)
            if self._mixed_by(line, report, clashes=bool(report.columns)) is None:
                report.columns, report.in_stats = found[1].split(), False

    def _row(self, found: re.Match[str], line: Line) -> None:
        if mixed := self._is_mixed(line):
            mixed.row(found)
        elif (report := self._of(line)) is not None:
            report.add_row(found)
        elif self._lines <= self._first_lines:
            self._new(line, is_cut=True).add_row(found)

    def _context(self, found: re.Match[str], line: Line) -> None:
        end, mixed, when = phrases.CONTEXT_END.fullmatch(found[2]), self._is_mixed(line), self._when(line)
        if mixed is None:
            report = self._report(line)
            mixed = self._mixed_by(line, report, clashes=report.constraint is not None)
        if mixed is None:
            report.add_context(found, when)
        elif end is not None:
            mixed.choose(integer(end[3]) or 0, when, lambda report: report.add_context(found, when))

    def _chosen(self, found: re.Match[str], line: Line) -> None:
        pid, score = integer(found[2]) or 0, integer(found[4])
        victim = Victim(pid, found[3], CHOSEN, self._when(line), found[1])
        mixed = self._is_mixed(line)
        if mixed is None:
            report = self._report(line)
            mixed = self._mixed_by(line, report, clashes=report.score is not None)
        if mixed is None:
            report.choose(victim, score)
        else:
            mixed.choose(pid, victim.when, lambda report: report.choose(victim, score))

    def _killed(self, found: re.Match[str], line: Line) -> None:
        total_vm, anon, file, shmem = (
            None if found[n] is None else (integer(found[n]) or 0) * _KIB for n in (6, 7, 8, 9)
        )
        end = phrases.AFTER_KILLED.match(line.text, found.end())
        uid = integer(found[3] or found[5] or (end[1] if end else None) or "")
        tables = integer((end[2] if end else None) or "")
        adj = signed((end[3] if end else None) or "")
        sizes = total_vm, anon, file, shmem, tables and tables * _KIB
        self._end(Victim(integer(found[2]) or 0, found[4], KILLED, self._when(line), found[1], uid, *sizes, adj), line)

    def _killed_cut(self, found: re.Match[str], line: Line) -> None:
        self._end(Victim(integer(found[2]) or 0, found[3], KILLED, self._when(line), found[1]), line)

    def _end(self, victim: Victim, line: Line) -> None:
        mixed, report = self._is_mixed(line), self._of(line)
        if mixed is None and report is not None:
            mixed = self._mixed_by(line, report, clashes=report.is_of_another(victim))
        if mixed is not None:
            mixed.victims.append(victim)
            if mixed.is_over:
                self._end_of_mixed(line.host)
            return
        last = self._last.get(line.host)
        if report is None and last is not None and last.group:  # a further member of the cgroup
            if victim.pid not in last.members:
                self._members += 1
                self.more += self._members > _MOST_KILLS
                if self._members <= _MOST_KILLS:
                    last.add_victim(victim)
            return
        report = report or self._new(line, is_cut=True)
        report.add_victim(victim)
        self._close(report)

    def _group(self, found: re.Match[str], line: Line) -> None:
        report = self._of(line) or self._last.get(line.host)
        if report is not None:
            report.group = found[1]

    def _by_hand(self, _: re.Match[str], __: Line) -> None:
        self._is_manual = True

    def _panic(self, _: re.Match[str], line: Line) -> None:
        self._no_kill(line, PANIC)

    def _no_victim(self, _: re.Match[str], line: Line) -> None:
        self._no_kill(line, NONE)

    def _no_kill(self, line: Line, outcome: str) -> None:
        report = self._of(line) or self._new(line, is_cut=False)
        report.outcome = outcome
        self._close(report)
