"""The limits of a machine as findings: cgroups, users and the kernel that are out of tasks. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import HOST, Entity, Finding, most_severe_first
from opskit.analysis.limits.fix import pids_fix
from opskit.analysis.limits.limit import Limit
from opskit.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.finding import Severity
    from opskit.collect.limits.sweep import Facts, Members, TaskLimit, Total, UserTasks
    from opskit.collect.process_names import Named

_NEARLY_NONE = 0.1  # of a limit: what is left
_BY_DESIGN = 4  # a limit of so few tasks keeps a service from starting any: full is as it should be


def judge(facts: Facts) -> list[Finding]:
    """What is wrong, the most severe first."""
    found = [
        *(finding for limit in facts.tasks for finding in _tasks(limit, facts.window_s)),
        *(finding for user in facts.users for finding in _user(user)),
        *(finding for total in facts.totals for finding in _total(total)),
    ]
    return most_severe_first(found)


def _tasks(limit: TaskLimit, window_s: float) -> Iterator[Finding]:
    left = max(0, limit.limit - limit.used)
    if left >= _NEARLY_NONE * limit.limit and not limit.refused:
        return
    by_design = limit.limit <= _BY_DESIGN and not limit.refused
    code, severity = ("threads-nearly-none-left", "warning") if left else ("threads-none-left", "error")
    if limit.refused and left:
        code, severity = "threads-none-left", "warning"
        start = f"{plural(limit.refused, 'task')} could not start in {limit.path} within {window_s:.1f} s"
    else:
        start = f"{plural(left, 'more thread')} can start" if left else "no thread can start"
        start += f" in {limit.path}"
    evidence = f"{limit.used} of {limit.limit} tasks, from {limit.file}"
    if limit.refused_before:
        evidence += f"; pids.events counted {limit.refused_before:,} refused before"
    row = Limit("pids.max", "threads", limit.limit, limit.used, limit.file, limit.path)
    yield Finding(
        code, "note" if by_design else _severity(severity), _of_cgroup(limit.path),
        f"{start}: pids.max is {limit.limit}{_most(limit.members)}", evidence,
        fix=f"raise pids.max of {limit.path}: {pids_fix(row)}", next=_closer("limits", limit.members),
        share=min(1.0, limit.used / limit.limit) if limit.limit else 1.0, window_s=window_s if limit.refused else None,
    )  # fmt: skip


def _severity(word: str) -> Severity:
    return "error" if word == "error" else "warning"


def _most(members: Members) -> str:
    """`; 25393 (billing) has 38 of them`; empty where no process is visible."""
    most = members.main
    if most is None:
        return ""
    has = f"; {most.pid} ({most.name}) has {plural(most.threads or 1, 'thread')}"
    return has if members.processes > 1 else f"; its process is {most.pid} ({most.name})"


def _closer(command: str, members: Members) -> str | None:
    return members.main and shell.command("opskit", command, members.main.pid)


def _of_cgroup(path: str) -> Entity:
    return Entity("cgroup", path, inside=HOST)


def _user(user: UserTasks) -> Iterator[Finding]:
    yield from _few_left(
        Entity("user", user.user, inside=HOST), f"for user {user.user}", "RLIMIT_NPROC", user.limit, user.threads,
        f"{user.threads:,} threads of uid {user.uid}, limit of {_who(user.largest)}",
        shell.command("opskit", "limits", user.largest.pid),
    )  # fmt: skip


def _who(process: Named) -> str:
    return f"{process.pid} ({process.name})"


def _total(total: Total) -> Iterator[Finding]:
    threads = ("ps", "-eLo", "nlwp,pid,comm", "--sort", "-nlwp")
    yield from _few_left(
        HOST, "on this machine", total.name, total.limit, total.used, f"{total.used:,} tasks, /proc/loadavg",
        shell.command(*threads, shell.Syntax("|"), "head"),
    )  # fmt: skip


def _few_left(
    entity: Entity, where: str, name: str, limit: int, used: int, evidence: str, closer: str
) -> Sequence[Finding]:
    left = max(0, limit - used)
    if left >= _NEARLY_NONE * limit:
        return ()
    share = min(1.0, used / limit) if limit else 1.0
    if left:
        code, severity, start = "threads-nearly-none-left", "warning", f"{plural(left, 'more thread')} can start"
    else:
        code, severity, start = "threads-none-left", "error", "no thread can start"
    summary = f"{start} {where}: {name} is {limit:,}"
    return [Finding(code, _severity(severity), entity, summary, evidence, None, closer, share)]
