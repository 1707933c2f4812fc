"""`opskit safepoints PID`: a live JVM's safepoints, out of its hsperfdata alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.analysis import safepoint_rates as analysis
from opskit.analysis.safepoint_advice import Jdk
from opskit.collect.schedule import schedule
from opskit.commands.shared.output import Output, about
from opskit.errors import BadInput, NoSuchProcess
from opskit.escape import printable
from opskit.jvm.perfdata.safepoint_counters import Probe, Reading
from opskit.proc.cgroup.owner import unit_of
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.fs import DENIED, GONE
from opskit.render.report import Report
from opskit.render.views import safepoint_rates as view
from opskit.render.views.safepoints import finding_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.host import Host


def run(host: Host, out: Output, pid: int, interval_s: float, count: int) -> int:
    """Sample on a fixed schedule; show each interval as it ends, and the sum of all. 130 after Ctrl-C."""
    host.prove_moving(f"safepoints {pid}")
    probe = Probe(host.fs, pid, host.monotonic, host.sleep)
    target = _target(host, pid, probe)
    readings: list[Reading] = []
    intervals: list[analysis.Interval] = []
    code = late_samples = 0
    try:
        for number, late in schedule(host, interval_s, count + 1):
            late_samples += late > 0.5 * interval_s
            readings.append(probe.read())
            if number > 1:
                intervals.append(analysis.between(readings[-2], readings[-1]))
                _show(host, out, probe, target, readings, intervals)
    except KeyboardInterrupt:
        code = 130
    except NoSuchProcess as ended:
        if not intervals:
            raise
        click.echo(printable(f"opskit: {ended}"), err=True)
    if not intervals:
        return code
    report = _report(host, out, probe, target, readings, intervals)
    if out.format == "text" and out.path is None:
        out.write("".join(f"{line}\n" for line in view.closing_lines(_whole(readings, intervals), report.verdict)))
        for line in report.footer:
            click.echo(printable(line), err=True)
    elif not (out.format == "table" and out.terminal):  # there it stands already
        out.emit(report)
    if late_samples:
        click.echo(f"{late_samples} samples came late: this machine is busy, or -i is too short", err=True)
    return code


def _whole(readings: Sequence[Reading], intervals: Sequence[analysis.Interval]) -> analysis.Interval:
    return analysis.overall(readings, intervals)


def _show(
    host: Host,
    out: Output,
    probe: Probe,
    target: dict[str, object],
    readings: Sequence[Reading],
    intervals: Sequence[analysis.Interval],
) -> None:
    """A line as it comes, or the table painted anew; other forms come at the end."""
    if out.format == "table" and out.terminal:
        report = _report(host, out, probe, target, readings, intervals)
        out.repaint(out.render(report, fit_height=True))
    elif out.format == "text" and out.path is None:
        lines = [] if len(intervals) > 1 else [view.header_line()]
        out.write("".join(f"{line}\n" for line in [*lines, view.interval_line(intervals[-1], readings[0].at_s)]))


def _target(host: Host, pid: int, probe: Probe) -> dict[str, object]:
    try:
        unit = unit_of(host.fs.load(parse_cgroup, pid, "cgroup"))
    except (*GONE, DENIED, BadInput):
        unit = None
    return {
        "pid": pid,
        "name": host.process(pid).command,
        "jdk": probe.perf.text("java.property.java.version") or probe.jdk,
        "unit": unit,
    }


def _report(
    host: Host,
    out: Output,
    probe: Probe,
    target: dict[str, object],
    readings: Sequence[Reading],
    intervals: Sequence[analysis.Interval],
) -> Report:
    whole = _whole(readings, intervals)
    jdk = Jdk(probe.jdk, probe.jdk)
    found = analysis.advise_live(str(target["pid"]), whole, intervals, jdk, probe.cpus, probe.pressure_of)
    verdict = [analysis.verdict_live(whole, intervals)]
    advice = [line for finding in found for line in finding_lines(finding)]
    notes = _notes(probe, whole)
    shown = out.format in ("table", "markdown")
    begun_s = readings[0].at_s
    return Report(
        about(host, target),
        blocks=view.blocks(intervals, whole, begun_s),
        verdict=verdict,
        summary=advice if shown else (),
        footer=notes if shown or out.format == "json" else [*advice, *notes],
        text=lambda: [
            view.header_line(),
            *(view.interval_line(interval, begun_s) for interval in intervals),
            *view.closing_lines(whole, verdict),
        ],
        data=lambda: {
            **view.to_object(whole),
            "findings": [finding.to_object() for finding in found],
            "samples": [view.interval_object(interval, begun_s) for interval in intervals],
            "counters": view.counters_object(readings),
        },
        sheet=lambda: view.sheet(intervals, begun_s),
    )


def _notes(probe: Probe, whole: analysis.Interval) -> list[str]:
    notes = []
    if whole.ttsp_s is None:
        notes.append("this JVM does not count the time to the safepoint (TTSP)")
    if whole.throttled_s is None:
        notes.append("no CPU quota is counted for its cgroup: throttling cannot be told")
    if probe.pressure_of == "machine":
        notes.append("pressure is the whole machine's: its cgroup tells none")
    elif probe.pressure_of is None:
        notes.append("this kernel tells no pressure (PSI)")
    return notes
