"""`opskit hsperf-check`: whether jstack, jps and their like can get at a JVM, why not, and how to repair it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from opskit.analysis import hsperf_check as analysis
from opskit.analysis.finding import Finding, is_failure, most_severe_first
from opskit.commands.shared.confirm import agreed
from opskit.commands.shared.options import Duration, Pid, common, open_host
from opskit.commands.shared.output import Output, about, progress
from opskit.errors import (
    BadInput,
    NoSuchProcess,
    NotAJvm,
    NotPermitted,
    OpskitError,
    UsageError,
)
from opskit.jvm.attach.client import DEFAULT_TIMEOUT_S, AttachClient
from opskit.jvm.attach.files import FileFinder
from opskit.jvm.attach.leftovers import Leftover, find_leftovers, sees_everything
from opskit.jvm.discover import HOTSPOT, Jvm, check_told, find_jvm, survey
from opskit.jvm.perfdata.holders import Holders
from opskit.proc.fs import GONE
from opskit.proc.rights import how_to_be_allowed
from opskit.proc.visibility import coverage_lines
from opskit.render.report import Report
from opskit.render.views import hsperf_check as view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.hsperf_check import Checked, Repair
    from opskit.host import Host

_NOTHING_CHANGED = "Nothing was changed; add --yes to do it"


@dataclass
class Look:
    """One look at the JVMs and leftovers that were asked for."""

    checked: list[Checked] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    jvms: int = 0


@click.command(name="hsperf-check", help=__doc__.partition(": ")[2] if __doc__ else None)
@click.argument("pids", metavar="[PID]...", type=Pid(), nargs=-1)
@click.option("--probe", is_flag=True, help="Attach for real: a thread dump; leaves the listener in the JVM.")
@click.option(
    "--timeout",
    type=Duration(),
    metavar="SECONDS",
    help=f"With --probe: how long to wait for a JVM ({DEFAULT_TIMEOUT_S:g} s).",
)
@click.option("--fix", is_flag=True, help="Show what would be repaired; with --yes do it.")
@click.option("--yes", is_flag=True, help="With --fix: do it without asking.")
@common("table", "text", "json", "markdown")
def command(
    pids: tuple[int, ...],
    probe: bool,
    timeout: float | None,
    fix: bool,
    yes: bool,
    format_: str | None,
    output: str | None,
    root: str | None,
    proc: str | None,
    no_color: bool,
) -> int:
    """Options, collect, analyse, repair, emit."""
    if yes and not fix:
        raise UsageError("--yes goes with --fix")
    if timeout is not None and not probe:
        raise UsageError("--timeout goes with --probe: nothing else waits for a JVM")
    out = Output.choose(format_, output, no_color)
    host = open_host(root, proc)
    if probe or fix:
        host.prove_own()
    pids = tuple(dict.fromkeys(pids))
    look = _look(host, pids)
    before = list(look.findings)
    code, probes = _probe(host, look, DEFAULT_TIMEOUT_S if timeout is None else timeout) if probe else (0, {})
    repairs: list[view.RepairRow] = []
    if fix and not code:
        repairs = _fix(look.repairs, host, yes)
        if any(row.state == "done" for row in repairs):
            probe_findings = [finding for finding in look.findings if finding not in before]
            look = _look(host, pids, again=True)
            look.findings += probe_findings
        elif any(row.state == "would" for row in repairs):
            look.notes.append(_NOTHING_CHANGED)
        elif not repairs:
            look.notes.append("There is nothing that --fix could repair")
    out.emit(_report(host, pids, look, before, probes, repairs, fix=fix))
    return code or (1 if is_failure(look.findings) else 0)


def _look(host: Host, pids: Sequence[int], *, again: bool = False) -> Look:
    """Collect and judge. `again`: what was asked about may be gone by now, since it was repaired."""
    look = Look()
    finder = FileFinder(host.fs, host.user_name)
    holders = Holders(host.fs)
    names = analysis.Names(host.user_name, host.group_name)
    now_s = host.now().timestamp()
    all_seen = sees_everything(host.fs)
    if not host.fs.is_live:
        look.notes.append(
            f"{host.fs.proc} is a copy: sockets, owners, modes and inodes in its /tmp are not the machine's, and were not judged"
        )
    living = [pid for pid in pids if host.fs.exists(pid)]
    found = [_asked_for(host, pid) for pid in living] if pids else _all_jvms(host, look)
    for jvm in found:
        try:
            around = finder.look(jvm)
        except GONE:
            if pids:
                raise NoSuchProcess(jvm.pid, "it has ended just now") from None
            continue
        except BadInput as error:
            if pids:
                raise
            look.notes.append(f"{jvm.pid} ({jvm.main}) was not judged: {error}")
            continue
        if around.counters is None:
            if pids:
                raise NotPermitted(
                    f"{jvm.pid} ({jvm.main}) belongs to {host.user_name(around.euid)}, and cannot be looked into; "
                    f"{_to_look_into(host, jvm)}"
                )
            look.notes.append(
                f"{jvm.pid} ({jvm.main}) belongs to {host.user_name(around.euid)}: its hsperfdata was not judged; "
                f"{_to_look_into(host, jvm)}"
            )
        look.checked.append(
            analysis.check(around, names, now_s, holders.holder, host.page_bytes, initial_namespace=all_seen)
        )
    look.jvms = len(look.checked)
    left = _leftovers(host, finder, holders, look, found, [pid for pid in pids if pid not in living] if pids else None)
    if not again:
        for pid in pids:
            if pid not in living and not any(each.pid == pid for each in left):
                left_too = "nothing in /tmp was left by it either" if host.fs.is_live else "it is not in this copy"
                raise NoSuchProcess(pid, f"{left_too}; opskit jvms lists the JVMs")
    findings, repairs = analysis.check_leftovers(left, names, now_s, initial_namespace=all_seen)
    for checked in look.checked:
        look.findings += checked.findings
        look.repairs += checked.repairs
    look.findings = most_severe_first(analysis.once([*look.findings, *findings]))
    look.repairs += repairs
    return look


def _to_look_into(host: Host, jvm: Jvm) -> str:
    return how_to_be_allowed(host.fs, "CAP_SYS_PTRACE", "opskit", "hsperf-check", jvm.pid, pid=jvm.pid)


def _leftovers(
    host: Host, finder: FileFinder, holders: Holders, look: Look, found: Sequence[Jvm], wanted: Sequence[int] | None
) -> list[Leftover]:
    """What dead JVMs left; of the `wanted` pids only, where PIDs were given. A copy does not tell who holds a file."""
    if (wanted is not None and not wanted) or not host.fs.is_live:
        return []
    everyone = found if wanted is None else survey(host.fs, host.clock_ticks).jvms
    return find_leftovers(finder, holders, [checked.around.tmp for checked in look.checked], everyone, wanted)


def _asked_for(host: Host, pid: int) -> Jvm:
    jvm = find_jvm(host.fs, pid, host.clock_ticks)
    if jvm.kind != HOTSPOT:
        raise NotAJvm(
            f"{pid} ({jvm.main}) is {_article(jvm.kind)}: it has neither HotSpot's hsperfdata nor its attach socket"
        )
    return jvm


def _article(kind: str) -> str:
    return "an OpenJ9 JVM" if kind == "OpenJ9" else "a GraalVM native image"


def _all_jvms(host: Host, look: Look) -> list[Jvm]:
    seen = survey(host.fs, host.clock_ticks)
    check_told(host.fs, seen)
    look.notes += coverage_lines(host.fs, len(seen.scanned), len(seen.denied), len(seen.vanished))
    others = [jvm for jvm in seen.jvms if jvm.kind != HOTSPOT]
    look.notes += [f"{jvm.pid} ({jvm.main}) is {_article(jvm.kind)}, and was not judged" for jvm in others]
    return [jvm for jvm in seen.jvms if jvm.kind == HOTSPOT]


def _probe(host: Host, look: Look, timeout_s: float) -> tuple[int, dict[int, view.ProbeRow]]:
    """Attach to each JVM for real. Exit code 2 where one did not answer in time, 130 after Ctrl-C; 0 otherwise."""
    rows: dict[int, view.ProbeRow] = {}
    code = 0
    try:
        for checked in look.checked:
            pid = checked.around.pid
            progress(f"attaching to {pid} …")
            rows[pid] = row = _probe_one(host, pid, timeout_s)
            if row.reason is not None:
                look.findings.append(
                    Finding(
                        "attach-probe-failed",
                        "note" if row.reason in ("disabled", "other-user") else "error",
                        str(pid),
                        row.said,
                        f"--probe: {row.reason} after {row.took_ms:.0f} ms",
                    )
                )
            if row.reason == "timeout":
                code = 2  # what nobody answers could not be checked
    except KeyboardInterrupt:
        code = 130
    look.findings = most_severe_first(look.findings)
    if any(row.reason is None for row in rows.values()):
        look.notes.append("Each JVM that was attached to has now a thread `Attach Listener` and its socket in /tmp")
    return code, rows


def _probe_one(host: Host, pid: int, timeout_s: float) -> view.ProbeRow:
    begun = host.monotonic()
    reason = None
    try:
        client = AttachClient(host.fs, pid, timeout_s)
        lines = client.jcmd("VM.version").splitlines()
        client.thread_dump()  # what jstack asks for; unlike VM.version it needs the JVM to reach a safepoint
        said = f"{lines[1] if len(lines) > 1 else lines[0]}, attach protocol version {client.version}"
    except OpskitError as error:
        reason, said = getattr(error, "reason", "failed"), str(error)
    return view.ProbeRow(pid, reason, said, (host.monotonic() - begun) * 1000)


def _fix(repairs: Sequence[Repair], host: Host, yes: bool) -> list[view.RepairRow]:
    """What was or would be done, a row a repair."""
    doable = [repair for repair in repairs if repair.refused is None]
    rows = [view.RepairRow(repair, "refused", why=repair.refused) for repair in repairs if repair.refused is not None]
    if not doable:
        return rows
    if not yes:
        for repair in doable:
            progress(f"{repair.path}: {repair.change}")
    if not agreed(yes, f"Do {len(doable)} repair{'' if len(doable) == 1 else 's'}?"):
        return [*(view.RepairRow(repair, "would") for repair in doable), *rows]
    from opskit.actions.repair_ownership import carry_out  # noqa: PLC0415

    done = [
        view.RepairRow(each.repair, "done" if each.problem is None else "failed", each.before, each.after, each.problem)
        for each in carry_out(host, doable)
    ]
    return [*done, *rows]


def _report(
    host: Host,
    pids: Sequence[int],
    look: Look,
    before: Sequence[Finding],
    probes: dict[int, view.ProbeRow],
    repairs: Sequence[view.RepairRow],
    *,
    fix: bool,
) -> Report:
    users = {checked.around.pid: host.user_name(checked.around.euid) for checked in look.checked}
    clients = [
        view.ClientRow(checked.around.pid, users[checked.around.pid], checked.around.jvm.main, verdict)
        for checked in look.checked
        for verdict in checked.clients
    ]
    troubled = [checked for checked in look.checked if any(finding.severity == "error" for finding in checked.findings)]
    footer = list(look.notes)
    if not fix and any(repair.refused is None for repair in look.repairs):
        footer.append("--fix repairs what can be repaired: it shows what it would do, and does it with --yes")

    def data() -> dict[str, Any]:
        return {
            "jvms": [
                view.jvm_object(checked, users[checked.around.pid], probes.get(checked.around.pid))
                for checked in look.checked
            ],
            "findings": [finding.to_object() for finding in look.findings],
            "findings_before": [finding.to_object() for finding in before] if fix else None,
            "repairs": [view.repair_object(row) for row in repairs] if fix else None,
        }

    return Report(
        about(host, {"pids": " ".join(map(str, pids))} if pids else None),
        verdict=[
            _summary(look, pids, whole=host.fs.is_live),
            *(view.verdict_line(checked, users[checked.around.pid]) for checked in troubled),
        ],
        blocks=view.blocks(clients, look.findings, list(probes.values()), repairs),
        footer=footer,
        data=data,
    )


def _summary(look: Look, pids: Sequence[int], *, whole: bool) -> str:
    well = "all well" if whole else "nothing found in what a copy tells"
    jvms = (
        f"{look.jvms} JVM{'' if look.jvms == 1 else 's'}"
        if look.jvms
        else "No JVM now"
        if pids
        else "No JVM is running here"
    )
    counts = {
        severity: sum(finding.severity == severity for finding in look.findings)
        for severity in ("error", "warning", "note")
    }
    said = [f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items() if count]
    unread = sum(checked.around.counters is None for checked in look.checked)
    if unread and not said:
        said = [f"nothing was found, but {unread} {'was' if unread == 1 else 'were'} not judged in full"]
    return f"{jvms}: {', '.join(said)}" if said else f"{jvms}: {well}" if look.jvms else jvms
