"""Judge a quick look at storage: devices that are slow or hung, threads that are stuck, cgroups at their limit, processes that wait. Pure.

A backup that keeps a disk busy, and waits for it itself, is healthy: pressure is a finding where programs of several cgroups wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.finding import HOST, Entity, Finding, most_severe_first
from opskit.analysis.io.host import host_findings
from opskit.analysis.io.waits import wait_of
from opskit.analysis.thresholds import IO_LIMIT_SHARE
from opskit.proc.cgroup.tree import is_at_or_below
from opskit.quantities import agreeing, duration, listed, percent, plural, size, whole
from opskit.shell import command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.finding import Severity
    from opskit.collect.io.facts import IoLimit
    from opskit.collect.io.quick import QuickIo, Waiter
    from opskit.proc.files.pressure import Averages

_SOME, _LASTING = 0.5, 0.3  # of the window; of the last 10 s or the last minute
_FEWEST, _FEWEST_OWNERS = 3, 2  # processes that wait, and cgroups that they are in
_WAITS = 0.2
# One request that just missed the window, where tasks wait: requests are large beside small limits.
_MISSED = {"rbps": 1 << 20, "wbps": 1 << 20, "riops": 2, "wiops": 2}
_AT_LEAST = 0.4
_WHAT = {"rbps": "reads", "wbps": "writes", "riops": "read requests", "wiops": "write requests"}


def is_pressed(share: float, averages: Averages | None) -> bool:
    """Whether tasks wait for storage much of the time, and not only now."""
    return share >= _SOME and averages is not None and max(averages.of_10_s, averages.of_60_s) >= _LASTING


def judge_quick(quick: QuickIo) -> list[Finding]:
    """The findings."""
    found = [*host_findings(quick.facts), *_limits(quick)]
    explained = {finding.code for finding in found} & {"io-device-slow", "io-device-hung", "io-cgroup-throttled"}
    if not explained:
        found += _pressure(quick)
    return most_severe_first(found)


def looked_at(quick: QuickIo, pids: Sequence[int] = ()) -> list[str]:
    """What was looked at, in words. `pids`: of these processes alone."""
    if pids:
        return [plural(len(pids), "process", "processes")]
    facts = quick.facts
    some = [] if facts.host_some is None else [f"some task waited for storage {percent(facts.host_some)} of the time"]
    limits = [plural(len(quick.limits), "I/O limit")] if quick.limits else []
    return [plural(len(facts.devices), "device"), plural(quick.processes, "process", "processes"), *limits, *some]


def _limits(quick: QuickIo) -> Iterator[Finding]:
    """The fullest limit of each cgroup that is used up; a warning where its tasks wait for it."""
    full: dict[str, IoLimit] = {}
    for limit in quick.limits:
        if limit.used is not None and limit.limit and _is_used_up(quick, limit):
            known = full.get(limit.path)
            if known is None or limit.used / limit.limit > (known.used or 0.0) / known.limit:
                full[limit.path] = limit
    for path, limit in full.items():
        waiters, share = _waiters(quick, path), quick.pressed.get(path)
        severity: Severity = "warning" if waiters or (share is not None and share >= _WAITS) else "note"
        waits = f"; {_names(waiters)} {agreeing(len(waiters), 'waits', 'wait')} for it" if waiters else ""
        if not waiters and share is not None:
            waits = f"; its tasks wait for storage {percent(share)} of the time"
        yield Finding(
            "io-cgroup-throttled", severity, Entity("cgroup", path),
            f"{path} is throttled by its I/O limit: {_used(limit)}{waits}",
            f"limits of {path} (io.max, blkio.throttle): {limit.what} {limit.limit:,.0f}, used {limit.used or 0:,.0f} a second",
            next=command("opskit", "io", *(each.process.pid for each in waiters[:1])),
            share=min(1.0, (limit.used or 0.0) / limit.limit), window_s=quick.facts.window_s,
        )  # fmt: skip


def _is_used_up(quick: QuickIo, limit: IoLimit) -> bool:
    used = limit.used or 0.0
    if used >= IO_LIMIT_SHARE * limit.limit:
        return True
    waits = _waiters(quick, limit.path) or quick.pressed.get(limit.path, 0.0) >= _SOME
    missed = _MISSED.get(limit.what, 0) / quick.facts.window_s
    return bool(waits) and used >= max(_AT_LEAST * limit.limit, limit.limit - missed)


def _waiters(quick: QuickIo, path: str) -> list[Waiter]:
    return [each for each in quick.waiters if _is_in(each, path)]


def _used(limit: IoLimit) -> str:
    """`2.0 MiB/s of 2.0 MiB/s (writes on 8:16)`."""
    shown = size if limit.what.endswith("bps") else whole
    return f"{shown(limit.used)}/s of {shown(limit.limit)}/s ({_WHAT.get(limit.what, limit.what)} on {limit.device})"


def _is_in(waiter: Waiter, path: str) -> bool:
    return any(is_at_or_below(each, path) for each in waiter.cgroups)


def _pressure(quick: QuickIo) -> Iterator[Finding]:
    some = quick.facts.host_some
    if some is None or not is_pressed(some, quick.averages):
        return
    waiting = [each for each in quick.waiters if any(_is_storage(where) for where in each.where)]
    owners = {each.cgroups or each.process.command for each in waiting}
    if len(waiting) < _FEWEST:
        return
    busiest = max(quick.facts.devices, key=lambda device: device.busy, default=None)
    device = (
        ""
        if busiest is None
        else f"; {busiest.name} is busy {percent(busiest.busy)} of the time, {busiest.queue:,.1f} requests at a time"
    )
    yield Finding(
        "io-pressure", "warning" if len(owners) >= _FEWEST_OWNERS else "note", HOST,
        f"{plural(len(waiting), 'process', 'processes')} wait for storage, {_names(waiting)}: some task does {percent(some)} of the time",
        f"IO pressure (PSI) in {duration(quick.facts.window_s)}{device}", next=command("opskit", "io"), share=some, window_s=quick.facts.window_s,
    )  # fmt: skip


def _is_storage(where: str | None) -> bool:
    wait = wait_of(where)
    return wait is not None and wait.is_storage


def _names(waiters: Sequence[Waiter]) -> str:
    return listed([f"{each.process.pid} ({each.process.command})" for each in waiters], 2)
