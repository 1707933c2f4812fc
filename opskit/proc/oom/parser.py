"""Puts the lines of OOM reports together: kernels 3.10 to 6.x, cut logs, and reports whose lines are mixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.oom import phrases
from opskit.proc.oom.lines import When, when_of
from opskit.proc.oom.records import KILLED, NONE, PANIC, Kill
from opskit.proc.oom.report import Report, Victim
from opskit.quantities import integer, signed

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from opskit.proc.oom.lines import Line

# A line outside of a report has one of these, or nothing to do with a kill.
NEEDLES = (
    "invoked oom-killer", "oom-kill:constraint=", "Kill process ", "Killed process ", "memory.oom.group set",
    "Manual OOM execution", "Kernel panic - not syncing: ", "no killable process",
)  # fmt: skip
_MOST_OPEN, _MOST_KILLS = 16, 10_000
_FIRST_LINES = 3_000  # of a log, in which the rest of a report may be whose beginning was overwritten
_STALE_LINES, _STALE_S = 200_000, 60.0
_KIB = 1024
_ESCAPED_NEWLINE = "\\x0a"


class OomParser:
    """Takes lines in the order of a log; `kills()` are those found so far, in the order in which they were named.

    `now_s` gives dates without a year theirs. Reports are held apart by the caller of printk where the log has it; otherwise each
    kind of line goes to the first report that lacks it, and the cgroup's path decides.
    """

    def __init__(self, page_bytes: int = 4096, now_s: float | None = None) -> None:
        self._page_bytes, self._now_s = page_bytes, now_s
        self._open: list[Report] = []
        self._done: list[Report] = []
        self._last: Report | None = None
        self._lines = 0
        self._victims = 0
        self._manual: Line | None = None
        self.more = 0  # kills above the most that are kept
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
        )

    @property
    def is_reading(self) -> bool:
        """Whether the next line matters even without one of the NEEDLES."""
        return bool(self._open) or self._lines < _FIRST_LINES

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
        for part in text.split(_ESCAPED_NEWLINE) if _ESCAPED_NEWLINE in text else (text,):
            self._detail(part, line)

    def kills(self) -> list[Kill]:
        """Every victim; of reports that did not end, what they tell."""
        found = [kill for report in [*self._done, *self._open] for kill in report.kills(self._page_bytes)]
        # The remains of a report without its beginning tell nothing without a victim.
        return [kill for kill in found if kill.pid is not None or not kill.is_cut]

    def _when(self, line: Line) -> When:
        return when_of(line.date, line.uptime, self._now_s)

    def _detail(self, text: str, line: Line) -> None:
        if text.lstrip().startswith("[") and (found := phrases.NUMBERS.match(text.lstrip())):
            self._row(found, line)
        elif self._open:
            if phrases.MEM_INFO.match(text) or text.endswith(("kB", "RAM", "reserved")):
                if report := self._by_caller(line) or (self._open[-1] if len(self._open) == 1 else None):
                    report.note_host(text)
            elif found := phrases.STAT_LINE.fullmatch(text.strip()):
                self._stat(found, line)

    def _by_caller(self, line: Line) -> Report | None:
        if not line.caller:
            return None
        return next((report for report in self._open if report.caller == line.caller), None)

    def _pick(self, kind: str, line: Line, fits: Callable[[Report], bool] = bool) -> Report:
        """The report that a line belongs to; a new one, without its beginning, where there is none."""
        found = self._by_caller(line)
        if found is None:
            lacking = (report for report in self._open if kind not in report.seen and fits(report))
            others = (report for report in lacking if not (line.caller and report.caller))
            found = next(others, None)
        if found is None:
            found = self._new(line, is_cut=True)
        found.seen.add(kind)
        return found

    def _new(self, line: Line, *, is_cut: bool) -> Report:
        when = self._when(line)
        self._drop_stale(line, when)
        report = Report(line.caller, when, self._lines, is_cut=is_cut)
        self._open.append(report)
        if len(self._open) > 1:
            for each in self._open:
                each.is_mixed = each.is_mixed or not each.caller
        return report

    def _drop_stale(self, line: Line, when: When) -> None:
        """Close reports that got no end: the log lost it, or the same thread or CPU begins another one."""
        for report in list(self._open):
            before = report.when
            later_s = [
                now - then for now, then in zip(when[:3], before[:3]) if now is not None and then is not None
            ]  # fmt: skip
            is_old = any(not -1 <= each <= _STALE_S for each in later_s) or self._lines - report.line > _STALE_LINES
            if is_old or (line.caller and report.caller == line.caller) or len(self._open) >= _MOST_OPEN:
                self._close(report)

    def _close(self, report: Report) -> None:
        self._open.remove(report)
        if report.is_cut and not report.victims and report.chosen is None:
            return
        if len(self._done) < _MOST_KILLS:
            self._done.append(report)
        else:
            self.more += 1
        self._last = report

    def _begin(self, found: re.Match[str], line: Line) -> None:
        for report in [each for each in self._open if each.is_cut and "context" not in each.seen]:
            self._close(report)  # what was left of an overwritten one
        report = self._new(line, is_cut=False)
        report.begin(found)
        report.manual = self._manual is not None
        self._manual = None

    def _invoker(self, found: re.Match[str], line: Line) -> None:
        named = [
            each
            for each in self._open
            if each.invoker == found[2].partition(" Not tainted")[0].partition(" Tainted")[0]
        ]
        report = self._by_caller(line) or next((each for each in named if each.invoker_pid is None), None)
        if report is None and len(self._open) == 1 and (found[2] + " ").startswith(f"{self._open[0].invoker} "):
            report = self._open[0]
        if report is not None:
            report.invoker_pid = integer(found[1])

    def _limit_of(self, found: re.Match[str], line: Line) -> None:
        report = self._pick("limit of", line)
        report.task_cgroup, report.cgroup = found[1], found[2]

    def _usage(self, found: re.Match[str], line: Line) -> None:
        self._pick(found[1], line).use(found)

    def _stats(self, found: re.Match[str], line: Line) -> None:
        path = found[1]
        below = [each for each in self._open if each.cgroup and f"{path}/".startswith(each.cgroup.rstrip("/") + "/")]
        report = self._by_caller(line) or max(below, key=lambda each: len(each.cgroup or ""), default=None)
        if report is None:
            report = self._pick("stats", line, lambda each: each.cgroup is None)
        report.cgroup = report.cgroup or path
        if found[2]:
            report.add_stats(found[2])
        for each in self._open:
            each.in_stats = each.in_stats and bool(each.caller)
        report.in_stats = not found[2]

    def _stat(self, found: re.Match[str], line: Line) -> None:
        report = self._by_caller(line) or next((each for each in self._open if each.in_stats), None)
        if report is not None and report.in_stats:
            report.stats[found[1]] = integer(found[2]) or 0

    def _header(self, found: re.Match[str], line: Line) -> None:
        if not self._open and not self.is_reading:
            return
        report = self._pick("table", line)
        report.columns, report.in_stats = found[1].split(), False
        tables = [each for each in self._open if each.lists_tasks]
        if len(tables) > 1 and not line.caller:
            for each in tables:
                each.has_mixed_table = True

    def _row(self, found: re.Match[str], line: Line) -> None:
        report = self._by_caller(line)
        tables = [report] if report else [each for each in self._open if each.lists_tasks]
        if not tables and not self._open and self._lines <= _FIRST_LINES:
            tables = [self._new(line, is_cut=True)]
        for each in tables or [each for each in self._open if each.is_cut]:
            each.add_row(found)

    def _context(self, found: re.Match[str], line: Line) -> None:
        end = phrases.CONTEXT_END.fullmatch(found[2])
        paths = end[1] if end else found[2]
        is_host = ",global_oom" in paths

        def fits(report: Report) -> bool:
            return report.cgroup is None if is_host else f"oom_memcg={report.cgroup}," in paths

        report = self._by_caller(line)
        if report is None and not any("context" not in each.seen and fits(each) for each in self._open):
            unnamed = [each for each in self._open if each.cgroup is None and "context" not in each.seen]
            report = unnamed[0] if unnamed else None
        report = report or self._pick("context", line, fits)
        report.seen.add("context")
        report.add_context(found, self._when(line))

    def _chosen(self, found: re.Match[str], line: Line) -> None:
        pid = integer(found[2]) or 0
        victim = Victim(pid, found[3], "chosen", self._when(line), found[1])
        report = self._of_victim(pid, victim, line)
        report.chosen = victim if report.chosen is None else report.chosen._replace(why=victim.why)
        report.score = integer(found[4])

    def _killed(self, found: re.Match[str], line: Line) -> None:
        total_vm, anon, file, shmem = (
            None if found[n] is None else (integer(found[n]) or 0) * _KIB for n in (5, 6, 7, 8)
        )
        end = phrases.AFTER_KILLED.match(line.text, found.end())
        uid = integer(found[4] or (end[1] if end else None) or "")
        tables = integer((end[2] if end else None) or "")
        adj = signed((end[3] if end else None) or "")
        pid = integer(found[2]) or 0
        sizes = total_vm, anon, file, shmem, tables and tables * _KIB
        self._end(Victim(pid, found[3], KILLED, self._when(line), found[1], uid, *sizes, adj), line)

    def _killed_cut(self, found: re.Match[str], line: Line) -> None:
        self._end(Victim(integer(found[2]) or 0, found[3], KILLED, self._when(line), found[1]), line)

    def _end(self, victim: Victim, line: Line) -> None:
        last = self._last
        if last is not None and last.group and not self._names(victim.pid):
            if victim.pid not in {each.pid for each in last.victims} and len(last.victims) < _MOST_KILLS:
                last.victims.append(victim)
            return
        report = self._of_victim(victim.pid, victim, line)
        report.victims.append(victim)
        self._close(report)

    def _names(self, pid: int) -> Report | None:
        """The open report that has chosen this process."""
        return next((each for each in self._open if each.chosen is not None and each.chosen.pid == pid), None)

    def _of_victim(self, pid: int, victim: Victim, line: Line) -> Report:
        """By the caller, by the process that was chosen, by its table, by what was full; else one without a beginning."""
        if report := self._by_caller(line) or self._names(pid):
            return report
        rest = [each for each in self._open if not (line.caller and each.caller)]
        listing = [each for each in rest if pid in each.rows and not each.has_mixed_table]
        full = phrases.MEMCG_MESSAGE if victim.why else None
        same = [
            each for each in rest
            if (each.cgroup is not None) == (victim.why == full) and (each.chosen is None or victim.why is None)
        ]  # fmt: skip
        found = listing or (same if victim.why else rest)
        return found[0] if found else self._new(line, is_cut=True)

    def _group(self, found: re.Match[str], line: Line) -> None:
        report = self._by_caller(line) or self._last or (self._open[0] if self._open else None)
        if report is not None:
            report.group = found[1]

    def _by_hand(self, _: re.Match[str], line: Line) -> None:
        self._manual = line

    def _panic(self, _: re.Match[str], line: Line) -> None:
        report = self._by_caller(line) or (self._open[0] if self._open else self._new(line, is_cut=False))
        report.outcome = PANIC
        self._close(report)

    def _no_victim(self, _: re.Match[str], line: Line) -> None:
        report = self._by_caller(line) or (self._open[0] if self._open else self._new(line, is_cut=False))
        report.outcome = NONE
        self._close(report)
