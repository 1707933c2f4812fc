"""Judge a quick look for OOM kills: those of the last 24 h are findings, older ones notes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import HOST, Entity, Finding, most_severe_first
from opskit.quantities import duration, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.finding import Severity
    from opskit.collect.oom_quick import Quick, QuickKill

_LATELY_S = 24 * 3600.0
_MOST = 5  # findings of one severity; the last of them counts the others
_OOM = shell.command("opskit", "oom")


def judge_quick(quick: Quick) -> list[Finding]:
    """The findings: one for each program in each cgroup. Kills in the window that no log names are an error, too."""
    here = [each for each in quick.kills if not each.is_gone]
    lately = [each for each in here if each.ago_s is None or each.ago_s <= _LATELY_S]
    older = [each for each in here if each not in lately]
    gone = [each for each in quick.kills if each.is_gone]
    found = [*_killed(lately, "error"), *_killed(older, "note"), *_gone(gone)]
    named = any((each.ago_s or 0.0) <= 2 * quick.window_s + quick.drift_s for each in quick.kills)
    if quick.gained and not named:
        found.append(_gained(quick, quick.gained))
    elif missing := _missing(quick):
        found.append(_counted(quick, missing))
    return most_severe_first(found)


def looked_at(quick: Quick) -> Sequence[str]:
    """What was looked at, in words."""
    return [*([quick.source] if quick.source else []), "the counters of OOM kills"]


def _killed(kills: Sequence[QuickKill], severity: Severity) -> Iterator[Finding]:
    groups: dict[tuple[str | None, str], list[QuickKill]] = {}
    for each in reversed(kills):
        groups.setdefault((each.cgroup, each.name), []).append(each)
    ordered = [*groups.values()]
    for alike in ordered[:_MOST]:
        last = alike[0]
        times = f", {plural(len(alike), 'time')}" if len(alike) > 1 else ""
        where = f"at the memory limit of {last.cgroup}" if last.cgroup else "because the machine was out of memory"
        yield Finding(
            "oom-killed", severity, _entity(last), f"{last.pid} ({last.name}) was killed {where}{_ago(last)}{times}",
            f"the kernel's log: oom-kill, pid={last.pid}", next=_OOM,
        )  # fmt: skip
    if rest := [each for alike in ordered[_MOST:] for each in alike]:
        yield Finding(
            "oom-killed", severity, HOST,
            f"{plural(len(rest), 'more process was', 'more processes were')} killed for memory in other cgroups",
            "the kernel's log", next=_OOM,
        )  # fmt: skip


def _gone(kills: Sequence[QuickKill]) -> Iterator[Finding]:
    """One note for all."""
    if kills:
        last = kills[-1]
        yield Finding(
            "oom-killed", "note", HOST,
            f"{plural(len(kills), 'process was', 'processes were')} killed for memory in cgroups that are gone, the last {last.name}{_ago(last)}",
            f"the kernel's log: oom-kill, pid={last.pid}", next=_OOM,
        )  # fmt: skip


def _ago(kill: QuickKill) -> str:
    return "" if kill.ago_s is None else f", {duration(kill.ago_s)} ago"


def _entity(kill: QuickKill) -> Entity:
    path = kill.own if kill.cgroup else None
    return Entity("process", kill.pid, inside=Entity("cgroup", path or kill.cgroup) if path or kill.cgroup else HOST)


def _missing(quick: Quick) -> int:
    """Kills that a counter shows and no log: when is unknown."""
    if quick.counted is None or (quick.paths is not None and quick.kills):
        return 0
    return max(0, quick.counted - len(quick.kills))


def _gained(quick: Quick, gained: int) -> Finding:
    return Finding(
        "oom-counted", "error", _of(quick),
        f"the OOM killer has killed {plural(gained, 'process', 'processes')} in the last {duration(quick.window_s)}",
        "oom_kill of /proc/vmstat or of the cgroup; no log that could be read names them", next=_OOM, window_s=quick.window_s,
    )  # fmt: skip


def _counted(quick: Quick, missing: int) -> Finding:
    entity = _of(quick)
    since = "since boot" if quick.paths is None else f"in {entity.id} since it was made"
    return Finding(
        "oom-counted", "note", entity,
        f"{plural(missing, 'OOM kill')} {since} {'is' if missing == 1 else 'are'} not in the kernel's log; when is unknown",
        "oom_kill of /proc/vmstat or of the cgroup", next=_OOM,
    )  # fmt: skip


def _of(quick: Quick) -> Entity:
    """The machine, or the deepest of the cgroups that were asked about."""
    return Entity("cgroup", max(quick.paths, key=lambda path: (path.count("/"), path))) if quick.paths else HOST
