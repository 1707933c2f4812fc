"""Takes class histograms of a running JVM: says what that costs before, and what it cost after."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import click

from opskit.collect.schedule import schedule
from opskit.commands.shared.confirm import agreed
from opskit.commands.shared.output import make_directory, progress, write_file
from opskit.errors import CannotWrite, NoSuchProcess, NotPermitted, OpskitError
from opskit.escape import printable
from opskit.jvm.attach.client import AttachClient
from opskit.jvm.discover import find_jvm
from opskit.jvm.dumps.histogram import Histogram, parse_histograms
from opskit.jvm.logs.timestamps import Stamp
from opskit.jvm.perfdata.counters import heap
from opskit.jvm.perfdata.stop_clock import StopClock
from opskit.proc.cgroup.owner import unit_of
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.files.status import parse_status
from opskit.proc.fs import DENIED, GONE
from opskit.quantities import size

if TYPE_CHECKING:
    from opskit.host import Host
    from opskit.jvm.discover import Jvm

DEFAULT_INTERVAL_S, DEFAULT_COUNT = 30.0, 2
_ASK_ABOVE_S = 1.0
# Measured: 160 million small objects, 3.7 GiB, G1, JDK 17, 2 CPUs.
_S_PER_GIB, _LIVE_S_PER_GIB = 2.3 / 3.7, 9.4 / 3.7
_LEAST_S, _LIVE_LEAST_S = 0.005, 0.02
_TIMEOUT_S, _TIMEOUT_STOPS = 30.0, 10  # of one exchange: that long, or that many times the estimate


@dataclass(frozen=True)
class Plan:
    """What is wanted: every `interval_s` seconds, `count` times; `live` by a full GC each; raw text kept in `save`.

    `timeout_s`: how long to wait for one; None: by what it is estimated to take.
    """

    interval_s: float
    count: int
    live: bool
    yes: bool
    save: str | None
    timeout_s: float | None = None


@dataclass
class Taken:
    """What came of it. `stops_s` has the JVM's stop for each histogram; None where it does not say.

    `error`: why it ended early.
    """

    jvm: Jvm
    unit: str | None
    heap_max_bytes: int | None
    histograms: list[Histogram] = field(default_factory=list)
    stops_s: list[float | None] = field(default_factory=list)
    saved: list[str] = field(default_factory=list)
    late: int = 0
    interrupted: bool = False
    error: OpskitError | None = None


def stop_estimate_s(used_bytes: int, *, live: bool) -> float:
    """How long one histogram stops a JVM, about, in seconds."""
    per_gib, least = (_LIVE_S_PER_GIB, _LIVE_LEAST_S) if live else (_S_PER_GIB, _LEAST_S)
    return max(least, used_bytes / (1 << 30) * per_gib)


def about_seconds(seconds: float) -> str:
    """An estimate, no more exact than it is: 10 ms, 0.7 s, 35 s, 4 min."""
    if seconds < 0.095:
        return f"{max(1, round(seconds * 100)) * 10} ms"
    if seconds < 0.95:
        return f"{seconds:.1f} s"
    if seconds < 10:
        return f"{seconds:.0f} s"
    return f"{round(seconds / 5) * 5} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def take(host: Host, pid: int, plan: Plan) -> Taken:
    """Say what it will cost, ask where that is much, and take them. What was taken before an end or Ctrl-C is given.

    Raises NotPermitted where nobody agreed, CannotWrite, and whatever attaching raises for the first histogram.
    """
    host.prove_own(pid)
    jvm = find_jvm(host.fs, pid, host.clock_ticks)
    estimate_s = _announce(host, jvm, plan)
    if plan.save is not None:
        make_directory(plan.save)
    client = AttachClient(host.fs, pid, plan.timeout_s or max(_TIMEOUT_S, _TIMEOUT_STOPS * estimate_s))
    sizes = heap(jvm.perf) if jvm.perf else None
    taken = Taken(jvm, _unit(host, pid), sizes.max_bytes if sizes else None)
    clock = StopClock(host.fs, jvm.perf)
    try:
        for number, late_s in schedule(host, plan.interval_s, plan.count):
            taken.late += late_s > plan.interval_s / 2
            _take_one(host, client, clock, plan, taken)
            if number < plan.count:
                progress(f"{number} of {plan.count} histograms taken; the next in {plan.interval_s:g} s")
    except KeyboardInterrupt:
        taken.interrupted = True
    except OpskitError as error:
        if not taken.histograms or isinstance(error, CannotWrite):
            raise
        taken.error = error
    return taken


def _announce(host: Host, jvm: Jvm, plan: Plan) -> float:
    """Say what each histogram will cost; its estimate in seconds. Raises NotPermitted where that is much and nobody agreed."""
    sizes = heap(jvm.perf) if jvm.perf else None
    used, what = sizes.used_bytes if sizes else None, "heap used"
    if not used:  # before the first objects are counted, nothing is known either
        used, what = _resident_bytes(host, jvm.pid), "resident memory (the JVM does not say how full its heap is)"
    estimate_s = stop_estimate_s(used, live=plan.live)
    how = "each histogram, by a full GC," if plan.live else "each histogram"
    cost = f"{jvm.pid} ({jvm.main}): {what} {size(used)}: {how} stops it for about {about_seconds(estimate_s)}"
    click.echo(printable(cost), err=True)
    if estimate_s > _ASK_ABOVE_S and not agreed(plan.yes, f"Stop it {plan.count} times?"):
        raise NotPermitted(f"{cost}, {plan.count} times. Nothing was sent; add --yes")
    return estimate_s


def _take_one(host: Host, client: AttachClient, clock: StopClock, plan: Plan, taken: Taken) -> None:
    at, begun_s, stopped_before = host.now(), host.monotonic(), clock.read_s()
    text = client.histogram(live=plan.live)
    stopped_after = clock.read_s()
    number = len(taken.histograms) + 1
    if plan.save is not None:
        path = os.path.join(plan.save, f"histogram-{client.pid}-{at:%Y%m%dT%H%M%S}.{at.microsecond // 1000:03d}Z.txt")
        write_file(path, text.encode("utf-8", "backslashreplace"))
        taken.saved.append(path)
    [histogram] = parse_histograms(text, f"histogram {number} of {client.pid}")
    taken.histograms.append(replace(histogram, stamp=Stamp(at.timestamp(), begun_s, client.pid)))
    if stopped_before is None or stopped_after is None:
        taken.stops_s.append(None)
    else:
        taken.stops_s.append(stopped_after - stopped_before)


def _resident_bytes(host: Host, pid: int) -> int:
    try:
        return host.fs.load(parse_status, pid, "status").bytes_of("VmRSS") or 0
    except GONE:
        raise NoSuchProcess(pid, "it ended just now") from None


def _unit(host: Host, pid: int) -> str | None:
    try:
        return unit_of(host.fs.load(parse_cgroup, pid, "cgroup"))
    except (*GONE, DENIED):
        return None
