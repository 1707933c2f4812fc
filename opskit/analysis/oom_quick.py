"""Judge a quick look for OOM kills: those of the last 24 h are findings, older ones notes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import HOST, Entity, Finding, most_severe_first
from opskit.quantities import duration, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.collect.oom_quick import Quick

_OOM = shell.command("opskit", "oom")


def judge_quick(quick: Quick) -> list[Finding]:
    """The findings. Kills in the window that no log names are an error, too."""
    if quick.facts is None:
        return []
    from opskit.analysis.oom import is_old, judge

    result = judge(quick.facts)
    named = any(not is_old(each.ago_s) and (each.ago_s or 0.0) <= 2 * quick.window_s for each in result.kills)
    found = [each._replace(next=_OOM) for each in result.findings if each.code != "oom-counted" or quick.paths is None]
    # A counter since boot has no time.
    found = [each._replace(severity="note") if each.code == "oom-counted" else each for each in found]
    if quick.gained and not named:
        found = [*_gained(quick), *(each for each in found if each.code != "oom-counted")]
    elif quick.paths is not None and quick.facts.counted and not result.kills:
        found += _in_cgroups(quick, quick.facts.counted)
    return most_severe_first([*found, *_gone(quick)])


def looked_at(quick: Quick) -> Sequence[str]:
    """What was looked at, in words."""
    return [*quick.sources, "the counters of OOM kills"]


def _gone(quick: Quick) -> Iterator[Finding]:
    """One note for all."""
    if not quick.gone:
        return
    last = min(quick.gone, key=lambda each: float("inf") if each.ago_s is None else each.ago_s)
    cgroup, name = last.kill.cgroup, last.kill.name
    ago = "" if last.ago_s is None else f", {duration(last.ago_s)} ago"
    yield Finding(
        "oom-killed", "note", Entity("process", last.kill.pid, inside=Entity("cgroup", cgroup) if cgroup else HOST),
        f"{plural(len(quick.gone), 'process was', 'processes were')} killed for memory in cgroups that are gone, the last {name}{ago}",
        f"{last.source} names {'it' if len(quick.gone) == 1 else 'them'}{f'; {cgroup}' if cgroup else ''}", next=_OOM,
    )  # fmt: skip


def _gained(quick: Quick) -> Iterator[Finding]:
    gained = quick.gained or 0
    yield Finding(
        "oom-counted", "error", _entity(quick),
        f"the OOM killer has killed {plural(gained, 'process', 'processes')} in the last {duration(quick.window_s)}",
        "oom_kill of /proc/vmstat or of the cgroup; no log that could be read names them", next=_OOM, window_s=quick.window_s,
    )  # fmt: skip


def _in_cgroups(quick: Quick, counted: int) -> Iterator[Finding]:
    entity = _entity(quick)
    yield Finding(
        "oom-counted", "note", entity,
        f"the OOM killer has killed {plural(counted, 'process', 'processes')} in {entity.id} since it was made; when is unknown",
        "oom_kill of the cgroup", next=_OOM,
    )  # fmt: skip


def _entity(quick: Quick) -> Entity:
    """The machine, or the deepest of the cgroups that were asked about."""
    return Entity("cgroup", max(quick.paths, key=lambda path: (path.count("/"), path))) if quick.paths else HOST
