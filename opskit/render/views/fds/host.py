"""How the machine's limits of open files, inotify and epoll are shown."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opskit.analysis.fds.headroom import is_near
from opskit.proc.files.limits import UNLIMITED
from opskit.quantities import listed, percent, plural
from opskit.records import NamedTuple
from opskit.render.cells import TARGET
from opskit.render.fields import COUNT, FLAG, ID, SHARE, TEXT, Field, records, sheet
from opskit.render.report import Block, Report
from opskit.render.views.fds.process import OPEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.fds.result import HostResult
    from opskit.collect.fds.facts import HostFacts, Near, User
    from opskit.render.report import About

DEFAULT_TOP = 5
_MOST_PROCESSES = 2  # of a user in a table's row; json has all
_NO_LIMIT = 1 << 53  # fs.file-max by default: 2**63 - 1
_WORTH_A_ROW = 0.01  # of a limit; -v and -n 0 show the users below it

INSTANCES, WATCHES, EPOLL = "fs.inotify.max_user_instances", "fs.inotify.max_user_watches", "fs.epoll.max_user_watches"


class Use(NamedTuple):
    """What a user has of a limit per user. `most`: the limit; None: unknown."""

    limit: str
    most: int | None
    user: User

    @property
    def share(self) -> float | None:
        """Of the limit."""
        return None if self.most is None else self.user.used / self.most if self.most else float(self.user.used > 0)


def uses_of(facts: HostFacts) -> list[Use]:
    """All users of all limits, the fullest first."""
    uses = [
        Use(limit, most, user)
        for limit, most, users in (
            (INSTANCES, facts.max_instances, facts.inotify_instances),
            (WATCHES, facts.max_watches, facts.inotify_watches),
            (EPOLL, facts.max_epoll, facts.epoll_watches),
        )
        for user in users
    ]
    return sorted(uses, key=lambda use: (-(use.share or 0.0), use.limit, use.user.uid))


def share_of(near: Near) -> float | None:
    """How much of its limit a process uses; None without a limit."""
    soft = near.open.limit.soft
    return None if soft == UNLIMITED else near.open.taken / soft if soft else 1.0


def _of_process(field: Field[Any], title: str = "", **more: Any) -> Field[Near]:
    return Field(field.name, field.kind, title, attrgetter(f"process.{field.name}"), help=field.help, **more)


_PROCESS = {field.name: field for field in TARGET}
_OPEN = {field.name: field for field in OPEN}


def _of_open(name: str, title: str, **more: Any) -> Field[Near]:
    field = _OPEN[name]
    return Field(name, field.kind, title, lambda near: field.value(near.open), help=field.help, **more)


def _or(word: str) -> Any:
    return lambda value: word if value is None else f"{value:,}"


NEAR: Sequence[Field[Near]] = (
    Field(
        "share",
        SHARE,
        "of limit",
        share_of,
        help="0 to 1, of the soft limit; null: no limit",
        show=lambda share: "" if share is None else percent(share),
    ),
    _of_open("taken", "open"),
    _of_open("soft_limit", "limit", show=_or("none")),
    _of_open("hard_limit", "hard limit", show=_or("none"), rank=2),
    _of_open("left", "left", show=_or(""), rank=1),
    _of_process(_PROCESS["pid"], "pid"),
    _of_process(_PROCESS["start_ticks"]),
    _of_process(_PROCESS["user"], "user", rank=3),
    _of_process(_PROCESS["command"], "command", shrinks=12),
)
HOLDER: Sequence[Field[tuple[int, str, int]]] = (
    Field("pid", ID, value=lambda each: each[0]),
    Field("command", value=lambda each: each[1]),
    Field("used", COUNT, value=lambda each: each[2]),
)
USE: Sequence[Field[Use]] = (
    Field("share", SHARE, "of limit", help="0 to 1; null: the limit is unknown"),
    Field("used", COUNT, "used", attrgetter("user.used"), help="without all processes (`complete`) a lower bound"),
    Field("most", COUNT, "limit"),
    Field("limit", TEXT, "limit per user", help="the sysctl"),
    Field("uid", ID, value=attrgetter("user.uid")),
    Field("user", TEXT, "user", attrgetter("user.name")),
    Field("processes", records(HOLDER), value=lambda use: [*use.user.processes], help="those with the most"),
    Field("by", TEXT, "processes", lambda use: _processes(use.user), json=False, shrinks=16, rank=1),
)
DOCUMENT: Sequence[Field[HostResult]] = (
    Field("nearest", records(NEAR), value=lambda it: [*it.facts.nearest], help="the processes nearest to RLIMIT_NOFILE"),
    Field("files_open", COUNT, value=lambda it: it.facts.file_nr and it.facts.file_nr[0], help="of the machine"),
    Field("file_max", COUNT, value=lambda it: it.facts.file_nr and it.facts.file_nr[1], help="fs.file-max"),
    Field("users", records(USE), value=lambda it: uses_of(it.facts), help="of inotify and epoll, by limit; the fullest first"),
    Field("complete", FLAG, value=attrgetter("facts.complete"), help="whether every process could be read"),
)  # fmt: skip


def _processes(user: User) -> str:
    """`java (4242) 90, tail (17) 2, … 3 more`."""
    return listed([f"{command} ({pid}) {used:,}" for pid, command, used in user.processes], _MOST_PROCESSES)


def report(about: About, result: HostResult, top: int | None, *, is_text: bool) -> Report:
    """The processes nearest to their limit, then the users of inotify and epoll. `top`: -n; 0 shows all."""
    facts, limit = result.facts, (None if is_text else DEFAULT_TOP) if top is None else top or None
    blocks: list[Block[Any]] = []
    if facts.nearest:
        title = "processes nearest to their limit of open files (RLIMIT_NOFILE)"
        is_told = bool(result.findings)  # which name them
        blocks.append(Block(NEAR, facts.nearest[:limit], len(facts.nearest), title, one_line=True, details=is_told))
    uses = uses_of(facts)
    shown = [use for use in uses if is_text or top == 0 or use.share is None or use.share >= _WORTH_A_ROW]
    if shown:
        blocks.append(Block(USE, shown[:limit], len(uses), "inotify and epoll, by user", one_line=True, details=True))
    return Report(
        about,
        blocks,
        verdict=[*verdict(result)],
        footer=facts.missing,
        findings=result.findings,
        sheet=lambda: sheet(NEAR, facts.nearest),
    )


def verdict(result: HostResult) -> Iterator[str]:
    """Who is nearest to its limit, the machine's open files, the fullest limit of inotify and epoll."""
    facts = result.facts
    nearest = next((near for near in facts.nearest if share_of(near) is not None), None)
    if nearest is not None:
        process, used = nearest.process, nearest.open
        close = sum(is_near(near.open) for near in facts.nearest)
        yield (
            f"Nearest to its limit: {process.pid} ({process.command}), {used.taken:,} of {used.limit.soft:,.0f} "
            f"file descriptors ({percent(share_of(nearest))})."
            + (f" {close} processes use more than 80 % of theirs." if close > 1 else "")
        )
    else:
        yield "No process whose open files could be counted has a limit."
    if facts.file_nr is not None:
        count, most = facts.file_nr
        limit = "no limit" if most >= _NO_LIMIT else f"{most:,}, {percent(count / most if most else 1.0)} used"
        yield f"The machine has {plural(count, 'file')} open (fs.file-max: {limit})."
    fullest = next((use for use in uses_of(facts) if use.most is not None), None)
    if fullest is not None:
        least = "" if facts.complete else "at least "
        yield (
            f"{fullest.user.name} is nearest to {fullest.limit}: {least}{fullest.user.used:,} of {fullest.most:,} "
            f"({percent(fullest.share)})."
        )
