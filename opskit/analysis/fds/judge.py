"""Judge the file descriptors of a process: how near its limit is, and what keeps growing. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.fds.growth import group_growth, total_growth
from opskit.analysis.fds.headroom import is_near, nearly_used
from opskit.analysis.fds.result import Result
from opskit.analysis.finding import HOST, Entity, Finding, most_severe_first
from opskit.quantities import duration, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.fds.result import Growth
    from opskit.analysis.finding import Severity
    from opskit.collect.fds.facts import Facts, Group

_SOON_S = 3600.0
_MOST_KINDS = 3


def judge(facts: Facts, samples: Sequence[Facts] = ()) -> Result:
    """Judge the last look. `samples`: all looks of a watch, this one included, the oldest first."""
    total, growth = total_growth(samples), tuple(group_growth(samples))
    leading = growth[0] if growth else total
    # In a watch the advice to watch is followed already.
    closer = _closer(facts, leading) if len(samples) > 1 else None
    headroom = (found._replace(next=closer or found.next) for found in _headroom(facts))
    findings = most_severe_first([*headroom, *_leaks(facts, samples, total, growth)])
    return Result(facts, total, growth, tuple(findings))


def name_of(group: Group) -> str:
    """`CLOSE_WAIT to 10.0.0.9:443`, `file /var/log`, `eventfd`."""
    return group.detail if group.kind == "tcp" else f"{group.kind} {group.detail}".rstrip()


def _headroom(facts: Facts) -> Iterator[Finding]:
    if facts.open is not None and is_near(facts.open):
        largest = sorted(facts.groups, key=lambda group: -group.fds)
        evidence = listed([f"{group.fds:,} {name_of(group)}" for group in largest], _MOST_KINDS)
        yield nearly_used(facts.process, facts.open, facts.raise_limit, evidence)


def _leaks(facts: Facts, samples: Sequence[Facts], total: Growth | None, growth: Sequence[Growth]) -> Iterator[Finding]:
    """The group that grows steadily, or the process where no single group does."""
    steady = [each for each in growth if each.is_steady]
    leading = steady[0] if steady else total if total is not None and total.is_steady else None
    if leading is None:
        return
    process = facts.process
    grew = "all file descriptors" if leading.group is None else name_of(leading.group)
    said = f"{process.command} ({process.pid}): {grew} grew from {leading.first:,} to {leading.last:,}, {leading.per_min:+,.1f} a minute"
    # All that is opened counts against the limit, not this group alone.
    pace = total if total is not None and total.full_s is not None else leading
    if pace.full_s is not None:
        said += f"; limit reached in {duration(pace.full_s)} at this pace"
    yield Finding(
        "fds-keep-growing", _severity(leading, pace), Entity("process", process.pid, process.start_ticks, HOST), said,
        f"{len(samples)} looks at /proc/{process.pid}/fd", next=_closer(facts, leading),
        window_s=round(samples[-1].at_s - samples[0].at_s, 3),
    )  # fmt: skip


def _severity(leading: Growth, pace: Growth) -> Severity:
    """Connections that the peer has closed, and this process has not, are a leak. Others may be its work: until a limit is near."""
    is_unclosed = leading.group is not None and leading.group.detail.startswith("CLOSE_WAIT ")
    is_soon = pace.full_s is not None and pace.full_s <= _SOON_S
    return "warning" if is_unclosed or is_soon else "note"


def _closer(facts: Facts, leading: Growth | None) -> str:
    """The closer look: the stacks of a JVM, the connections, or the descriptors themselves."""
    pid = facts.process.pid
    if facts.is_jvm:
        return shell.command("opskit", "fds", pid, "--ask")
    if leading is not None and leading.group is not None and leading.group.kind == "tcp":
        return shell.command("opskit", "tcp", pid)
    return shell.command("ls", "-l", f"/proc/{pid}/fd")
