"""One report of the OOM killer while its lines come in, and the victims that are made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.oom import phrases
from opskit.proc.oom.records import (
    CHOSEN,
    CPUSET,
    HOST,
    MEMCG,
    POLICY,
    UNFINISHED,
    Held,
    Kill,
    Task,
    Usage,
    bytes_of_stats,
)
from opskit.quantities import integer, signed
from opskit.records import NamedTuple

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Sequence

    from opskit.proc.oom.lines import When

TASKS = 10  # of the table are kept
MOST_ROWS = 100_000
_MOST_STATS = 500
_NO_LIMIT_KB = (1 << 50) - 1  # v1 writes LONG_MAX rounded down
_KIB = 1024
_PAGES = (4096, 16384, 65536)
_LEAST_PAGES = 16  # of a process; the size of a page is not derived from fewer
_SCOPES = {
    "CONSTRAINT_MEMCG": MEMCG,
    "CONSTRAINT_NONE": HOST,
    "CONSTRAINT_CPUSET": CPUSET,
    "CONSTRAINT_MEMORY_POLICY": POLICY,
}


Key = tuple[str, str]  # the host and the caller of printk, "" where the log does not tell


class Row(NamedTuple):
    """A row of the table of tasks, in pages."""

    uid: int | None
    rss: int
    swap: int | None
    adj: int | None
    name: str


class Victim(NamedTuple):
    """What a sentence says about the process that is killed; `outcome` is KILLED or CHOSEN."""

    pid: int
    name: str
    outcome: str
    when: When
    why: str | None = None
    uid: int | None = None
    total_vm_bytes: int | None = None
    anon_bytes: int | None = None
    file_bytes: int | None = None
    shmem_bytes: int | None = None
    page_table_bytes: int | None = None
    adj: int | None = None


class Report:
    """The lines between `invoked oom-killer` and `Killed process`."""

    def __init__(self, key: Key, when: When, line: int, *, is_cut: bool) -> None:
        self.key, self.when, self.line, self.is_cut = key, when, line, is_cut
        self.is_mixed = False
        self.invoker: str | None = None
        self.invoker_pid: int | None = None
        self.gfp: str | None = None
        self.order: int | None = None
        self.cgroup: str | None = None
        self.task_cgroup: str | None = None
        self.usages: dict[str, Usage] = {}
        self.stats: dict[str, int] = {}
        self.in_stats = False
        self.columns: list[str] = []
        self.rows: dict[int, Row] = {}
        self._listed = 0  # rows before trim()
        self.constraint: str | None = None
        self.chosen: Victim | None = None
        self.score: int | None = None
        self.victims: list[Victim] = []
        self.members: set[int] = set()  # their PIDs
        self.group: str | None = None
        self.manual = False
        self.outcome: str | None = None
        self.follows: Report | None = None  # the one that ended just before, where this one lacks its beginning
        self.peers: Sequence[Report] = ()  # those that it was mixed with
        self.pages: dict[str, int] = {}
        self.host: dict[str, int] = {}

    @property
    def is_cgroup(self) -> bool:
        """Whether a cgroup was full."""
        victim = self.victims[0] if self.victims else self.chosen
        return victim is not None and self._scope(victim) == MEMCG

    def is_of_another(self, victim: Victim) -> bool:
        """Whether it has chosen another process, by a kernel that kills no child instead: 5.1 and later have no score."""
        return (
            self.constraint is not None
            and self.score is None
            and self.chosen is not None
            and self.chosen.pid != victim.pid
        )

    def settle(self) -> None:
        """Where the rest of a report follows one that has ended, their lines were mixed: only what names a victim is certain."""
        if self.follows is not None and (self.usages or self.stats or self.columns or self.rows or self.constraint):
            for report in (self, self.follows, *self.follows.peers):
                report.forget()
            self.follows = None

    def forget(self) -> None:
        """Drop what may be of another report."""
        self.is_mixed = True
        self.invoker = self.invoker_pid = self.gfp = self.order = None
        self.usages, self.stats, self.pages, self.host = {}, {}, {}, {}
        named = self.members | ({self.chosen.pid} if self.chosen else set())
        self.rows = {pid: row for pid, row in self.rows.items() if pid in named}
        self._listed = len(self.rows)
        if self.constraint is None or self.chosen is None or (self.members and self.chosen.pid not in self.members):
            self.cgroup = self.task_cgroup = None

    def begin(self, found: re.Match[str]) -> None:
        """The first line: who asked for memory, and what for."""
        self.invoker = found[1]
        gfp, order = phrases.GFP.search(found[2]), phrases.ORDER.search(found[2])
        self.gfp, self.order = gfp and gfp[1], signed(order[1]) if order else None

    def add_victim(self, victim: Victim) -> None:
        """A process that was killed."""
        self.victims.append(victim)
        self.members.add(victim.pid)

    def choose(self, victim: Victim, score: int | None) -> None:
        """The process with the highest score, until 5.0; a child of it may be killed instead."""
        self.chosen = victim if self.chosen is None else self.chosen._replace(why=victim.why)
        self.score = score

    def detail(self, text: str) -> None:
        """A line that belongs to no other kind: statistics of the cgroup, memory of the machine."""
        text = text.lstrip()
        if phrases.MEM_INFO.match(text) or text.endswith(("kB", "RAM", "reserved")):
            self._note_host(text)
        elif self.in_stats and len(self.stats) < _MOST_STATS and (found := phrases.STAT_LINE.fullmatch(text)):
            self.stats[found[1]] = integer(found[2]) or 0

    def add_stats(self, text: str) -> None:
        """The statistics of one cgroup in one line, which are added to those of the cgroups above it."""
        for name, kib in phrases.STAT.findall(text):
            if len(self.stats) >= _MOST_STATS:
                return
            self.stats[name] = self.stats.get(name, 0) + (integer(kib) or 0) * _KIB

    def add_row(self, found: re.Match[str]) -> None:
        """A row of the table: the columns that are known by the header, or by their number."""
        if len(self.rows) >= MOST_ROWS:
            return
        pid, words, name = integer(found[1]) or 0, found[2].split(), found[3]
        columns = self.columns or _columns_of(len(words))
        if len(words) > len(columns) and self.columns:  # a name that begins with a number
            name = " ".join([*words[len(columns) :], name])
        if len(words) < len(columns) or not columns:
            return
        values = dict(zip(columns, map(signed, words)))
        rss = values.get("rss")
        if rss is not None and rss >= 0:
            self.rows[pid] = Row(values.get("uid"), rss, values.get("swapents"), values.get("oom_score_adj"), name)

    def add_context(self, found: re.Match[str], when: When) -> None:
        """The line that has it all since 5.0. A key that occurs twice is in a name: its value is unknown."""
        self.constraint = found[1]
        end = phrases.CONTEXT_END.fullmatch(found[2])
        if end is None:
            return
        self.cgroup = value_of(end[1], "oom_memcg", ",task_memcg=") or self.cgroup
        self.task_cgroup = value_of(end[1], "task_memcg", None) or self.task_cgroup
        self.chosen = Victim(integer(end[3]) or 0, end[2], CHOSEN, when, None, integer(end[4]))

    def _note_host(self, text: str) -> None:
        """Memory of the whole machine, in pages and bytes."""
        for name, count in phrases.PAGES.findall(text)[: _MOST_STATS - len(self.pages)]:
            self.pages.setdefault(name, integer(count) or 0)
        if found := phrases.SWAP.match(text):
            self.host[f"{found[1]} swap"] = (integer(found[2]) or 0) * _KIB
        elif found := phrases.RAM.match(text):
            self.pages.setdefault(found[2], integer(found[1]) or 0)
        elif found := phrases.HUGE.match(text):
            total, kib = integer(found[1]) or 0, integer(found[3]) or 0
            self.host["huge"] = self.host.get("huge", 0) + total * kib * _KIB

    def trim(self) -> None:
        """Keep the rows that are shown: a log may have many tables of many processes."""
        self._listed = max(self._listed, len(self.rows))
        named = {victim.pid for victim in (*self.victims, self.chosen) if victim is not None}
        largest = sorted(self.rows.items(), key=lambda each: (-each[1].rss, each[0]))
        self.rows = dict([*largest[:TASKS], *(each for each in largest[TASKS:] if each[0] in named)])

    def kills(self, page_bytes: int) -> Iterator[Kill]:
        """A record each victim; one without a PID where none is known."""
        victims = self.victims or ([self.chosen] if self.chosen else [])
        page_bytes = self._page_bytes() or page_bytes
        self.trim()
        tasks = self._tasks(page_bytes)
        for victim in dict.fromkeys(victims):
            yield self._kill(victim, tasks, page_bytes)
        if not victims:
            none = Victim(0, "", self.outcome or UNFINISHED, self.when)
            yield self._kill(none, tasks, page_bytes)._replace(pid=None)

    def _kill(self, victim: Victim, tasks: tuple[Task, ...], page_bytes: int) -> Kill:
        row, chosen, kernel = self.rows.get(victim.pid), self.chosen, self.usages.get("kmem")
        uid = victim.uid if victim.uid is not None else row.uid if row else None
        adj = victim.adj if victim.adj is not None else row.adj if row else None
        is_chosen = chosen is not None and chosen.pid == victim.pid
        kill = Kill(
            victim.pid, victim.name, victim.outcome, victim.when if victim.when.text else self.when, self._scope(victim),
            self.constraint, self.cgroup, self.task_cgroup if is_chosen or not self.group else None, uid,
            victim.total_vm_bytes, victim.anon_bytes, victim.file_bytes, victim.shmem_bytes, victim.page_table_bytes, adj,
            self.score if is_chosen else None, self.usages.get("memory"),
            self.usages.get("swap", self.usages.get("memory+swap")), kernel, None,
            self.invoker, self.invoker_pid, self.gfp, self.order,
            self.manual or self.order == -1, self.group, tasks, self._listed, page_bytes, self.is_cut, self.is_mixed,
        )  # fmt: skip
        return kill._replace(held=bytes_of_stats(self.stats, kernel) if kill.by_cgroup else self._host_held(page_bytes))

    def _scope(self, victim: Victim) -> str | None:
        if self.constraint:
            return _SCOPES.get(self.constraint)
        why = victim.why or (self.chosen.why if self.chosen else None)
        if why == phrases.MEMCG_MESSAGE or (why is None and self.cgroup):
            return MEMCG
        return HOST if why or self.pages else None

    def _page_bytes(self) -> int | None:
        """The page size by a victim's row, in pages, and its last sentence, in KiB."""
        for victim in self.victims:
            row = self.rows.get(victim.pid)
            if row and row.rss >= _LEAST_PAGES and victim.anon_bytes is not None:
                rss = victim.anon_bytes + (victim.file_bytes or 0) + (victim.shmem_bytes or 0)
                return min(_PAGES, key=lambda size: abs(rss - row.rss * size))
        return None

    def _tasks(self, page_bytes: int) -> tuple[Task, ...]:
        return tuple(
            Task(pid, row.uid, row.name, row.rss * page_bytes, None if row.swap is None else row.swap * page_bytes, row.adj)
            for pid, row in self.rows.items()
        )  # fmt: skip

    def _host_held(self, page_bytes: int) -> Held | None:
        pages = {name: count * page_bytes for name, count in self.pages.items()}
        if not pages:
            return None
        anon = [pages[name] for name in ("active_anon", "inactive_anon") if name in pages]
        cache = [pages[name] for name in ("active_file", "inactive_file") if name in pages]
        kernel = [pages[name] for name in ("slab_unreclaimable", "pagetables") if name in pages]
        shmem = pages.get("shmem")
        # shmem is on the lists of anonymous memory.
        held_anon = max(0, sum(anon) - (shmem or 0)) if anon else None
        swaps = self.host.get("Free swap"), self.host.get("Total swap")
        used = None if None in swaps else max(0, (swaps[1] or 0) - (swaps[0] or 0))
        return Held(
            held_anon, shmem, sum(cache) if cache else None, sum(kernel) if kernel else None, used, pages.get("free"),
            *swaps, pages.get("RAM"), self.host.get("huge"),
        )  # fmt: skip


def usage_of(found: re.Match[str]) -> Usage:
    """A counter of the cgroup."""
    usage, limit, failures = (integer(found[number]) or 0 for number in (2, 3, 4))
    return Usage(usage * _KIB, None if limit >= _NO_LIMIT_KB >> 1 else limit * _KIB, failures)


def value_of(text: str, key: str, end: str | None) -> str | None:
    """The path after `,KEY=`, up to `end`; None where either occurs twice: a path may contain them."""
    if text.count(f",{key}=") != 1 or (end and text.count(end) != 1):
        return None
    value = text.partition(f",{key}=")[2]
    value = value.partition(end)[0] if end else value
    return value if value.startswith("/") else None


def _columns_of(count: int) -> list[str]:
    """The columns of a row without a header, by how many numbers it has; empty where that is unclear."""
    between = {7: 1, 8: 2, 10: 4}.get(count)
    if between is None:
        return []
    return ["uid", "tgid", "total_vm", "rss", *("-" * between), "swapents", "oom_score_adj"]
