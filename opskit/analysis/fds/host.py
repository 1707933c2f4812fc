"""Which limits on fds of the machine are nearly used up: of a process, of all open files, of a user's inotify and epoll. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.fds.headroom import is_near, nearly_used
from opskit.analysis.fds.result import HostResult
from opskit.analysis.finding import HOST, Entity, Finding, Severity, most_severe_first
from opskit.proc.files.limits import is_nearly_full
from opskit.quantities import listed, percent
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.collect.fds.facts import HostFacts, User
    from opskit.collect.fds.quick import QuickFacts

_MOST_NAMED = 3  # processes that are a finding each: the first screen has room for the commands of so many
_ALARMING = 0.95  # of a limit of the machine or of a user


class _PerUser(NamedTuple):
    """A limit per user. `error`: what the call that exceeds it fails with."""

    code: str
    what: str
    sysctl: str
    error: str


_INSTANCES = _PerUser(
    "inotify-instances-nearly-used",
    "inotify instance",
    "fs.inotify.max_user_instances",
    "inotify_init: Too many open files",
)
_WATCHES = _PerUser(
    "inotify-watches-nearly-used",
    "inotify watch",
    "fs.inotify.max_user_watches",
    "inotify_add_watch: No space left on device",
)
_EPOLL = _PerUser(
    "epoll-watches-nearly-used",
    "epoll watch",
    "fs.epoll.max_user_watches",
    "epoll_ctl: No space left on device",
)


def judge_host(facts: HostFacts) -> HostResult:
    """Judge one look."""
    findings = [
        *_of_processes(facts),
        *_of_all_files(facts),
        *_of_users(facts, _INSTANCES, facts.inotify_instances, facts.max_instances),
        *_of_users(facts, _WATCHES, facts.inotify_watches, facts.max_watches),
        *_of_users(facts, _EPOLL, facts.epoll_watches, facts.max_epoll),
    ]
    return HostResult(facts, tuple(most_severe_first(findings)))


def judge_quick(facts: QuickFacts) -> list[Finding]:
    """Judge the counts of processes and of all open files."""
    near = [nearly_used(each.process, each.open, each.raise_limit) for each in facts.nearest if is_near(each.open)]
    return most_severe_first([*near, *_of_all_files(facts)])


def _of_processes(facts: HostFacts) -> Iterator[Finding]:
    close = [near for near in facts.nearest if is_near(near.open)]
    for near in close[:_MOST_NAMED]:
        yield nearly_used(near.process, near.open, near.raise_limit)


def _of_all_files(facts: HostFacts | QuickFacts) -> Iterator[Finding]:
    used, limit = facts.file_nr or (0, 0)
    if not is_nearly_full(limit or None, used):
        return
    is_full = used >= limit
    yield Finding(
        "file-max-nearly-used", "error" if is_full else _severity(used, limit), HOST,
        f"{percent(used / limit)} of fs.file-max are used: {used:,} of {limit:,} open files"
        + ("; open fails: Too many open files in system" if is_full else ""),
        "/proc/sys/fs/file-nr", fix=shell.command("sysctl", "-w", f"fs.file-max={limit * 2}"),
        next=shell.command("opskit", "fds", facts.nearest[0].process.pid) if facts.nearest else None,
        share=min(1.0, used / limit),
    )  # fmt: skip


def _of_users(facts: HostFacts, rule: _PerUser, users: tuple[User, ...], limit: int | None) -> Iterator[Finding]:
    for user in users:
        if not limit or not is_nearly_full(limit, user.used):
            continue
        is_full = user.used >= limit
        count = f"{'' if facts.complete else 'at least '}{user.used:,} of {limit:,} {rule.what}s"
        holders = [f"{command} ({pid}) {amount:,}" for pid, command, amount in user.processes]
        yield Finding(
            rule.code, _severity(user.used, limit), Entity("user", user.name, inside=HOST),
            f"user {user.name} has {count} ({rule.sysctl}): {listed(holders, 3)}"
            + (f"; the next one fails ({rule.error})" if is_full else ""),
            "/proc/PID/fd, /proc/PID/fdinfo", fix=shell.command("sysctl", "-w", f"{rule.sysctl}={limit * 2}"),
            next=shell.command("opskit", "fds", user.processes[0][0]) if user.processes else None,
            share=min(1.0, user.used / limit),
        )  # fmt: skip


def _severity(used: int, limit: int) -> Severity:
    """A program may watch as many files as the limit lets it: only near its end the next one is sure to fail."""
    return "warning" if used >= limit * _ALARMING else "note"
