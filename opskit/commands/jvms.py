"""`opskit jvms`: every JVM on the machine, what it uses, and whether opskit could attach to it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import click

from opskit.analysis import jvms as analysis
from opskit.commands.shared.options import Pid, check_watch, common, open_host, uids_of, users, watching
from opskit.commands.shared.output import Output, about
from opskit.commands.shared.watch import old_run_watch as run_watch
from opskit.errors import BadInput, NoSuchProcess, NotAJvm
from opskit.jvm.attach.readiness import Attachable, attachable
from opskit.jvm.discover import Survey, check_told, find_jvm, survey
from opskit.jvm.launch import parse_words
from opskit.jvm.release import jdk_release
from opskit.proc.cgroup.limits import CpuLimit, MemoryLimit, cpu_limit, frozen_by, memory_limit
from opskit.proc.cgroup.owner import Place, place_of
from opskit.proc.cgroup.tree import cgroup_mounts, levels_of, parse_cgroup
from opskit.proc.files.boot_time import parse_uptime
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.fs import DENIED, GONE
from opskit.proc.rights import how_to_be_allowed
from opskit.proc.visibility import coverage_lines
from opskit.quantities import size
from opskit.render.report import Report
from opskit.render.views import jvms as view

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opskit.host import Host
    from opskit.jvm.discover import Jvm
    from opskit.proc.cgroup.tree import Membership
    from opskit.proc.files.mountinfo import Mount


class Options(NamedTuple):
    """What was asked."""

    pids: tuple[int, ...]
    uids: frozenset[int]
    sort: str
    vm_args: bool
    properties: bool


@click.command(name="jvms", help=__doc__.partition(": ")[2] if __doc__ else None)
@click.argument("pids", metavar="[PID]...", type=Pid(), nargs=-1)
@users
@click.option(
    "--sort",
    type=click.Choice(["pid", "heap", "cpu", "rss", "uptime"]),
    default="pid",
    show_default=True,
    help="Order of the rows; all but pid with the largest first.",
)
@click.option("--vm-args", is_flag=True, help="The JVM's options too; values of -D and of agents are hidden.")
@click.option("--show-properties", is_flag=True, help="With the values: they may hold passwords.")
@watching
@common("table", "text", "json", "markdown")
def command(
    pids: tuple[int, ...],
    user: tuple[str, ...],
    sort: str,
    vm_args: bool,
    show_properties: bool,
    watch: bool,
    interval: float | None,
    count: int | None,
    format_: str | None,
    output: str | None,
    root: str | None,
    proc: str | None,
    no_color: bool,
) -> int:
    """Options, collect, analyse, emit."""
    check_watch(watch, interval, count)
    out = Output.choose(format_, output, no_color)
    host = open_host(root, proc, watch)
    uids = uids_of(host, user)
    options = Options(tuple(dict.fromkeys(pids)), uids, sort, vm_args or show_properties, show_properties)
    take = _taker(host, options, out.format)
    if watch:
        return run_watch(host, out, interval, count, take, fit_height=False)
    out.emit(take())
    return 0


def _taker(host: Host, options: Options, format_: str) -> Callable[[], Report]:
    """The next look, with shares since the look before it. Raises NoSuchProcess when all that were asked for have ended."""
    begun = host.monotonic()
    before: dict[tuple[int, int | None], analysis.Seen] = {}
    samples: list[tuple[float, list[analysis.Sample]]] = []

    def take() -> Report:
        nonlocal before
        found = _find(host, options, frozenset(before))
        seen = _see_all(host, found)
        rows = analysis.ordered([analysis.row(now, before.get(key)) for key, now in seen.items()], options.sort)
        before = seen
        if format_ == "json":  # only the whole story in one object needs them all
            samples.append((host.monotonic() - begun, [analysis.sample(row) for row in rows]))
        return _report(host, options, format_, found, rows, samples)

    return take


def _find(host: Host, options: Options, known: frozenset[tuple[int, int | None]]) -> Survey:
    """The JVMs that were asked for. In a watch, one that has ended is missing, and one of its pid is another process."""
    if not options.pids:
        found = survey(host.fs, host.clock_ticks)
        check_told(host.fs, found)
        return found._replace(jvms=[jvm for jvm in found.jvms if not options.uids or jvm.uid in options.uids])
    found = Survey([], [], [], [])
    ended: NoSuchProcess | None = None
    for pid in options.pids:
        try:
            jvm = find_jvm(host.fs, pid, host.clock_ticks)
        except (NoSuchProcess, NotAJvm):  # in a watch also a zombie, or a program of the same pid
            if not known:
                raise
            ended = NoSuchProcess(pid, "it ended while it was watched")
            continue
        if known and (pid, jvm.start_ticks) not in known:
            ended = NoSuchProcess(pid, "it ended while it was watched")
        elif not options.uids or jvm.uid in options.uids:
            found.jvms.append(jvm)
    if ended is not None and not found.jvms:
        raise ended
    return found


def _see_all(host: Host, found: Survey) -> dict[tuple[int, int | None], analysis.Seen]:
    jvms = found.jvms
    mounts = cgroup_mounts(host.fs, jvms[0].pid) if jvms else []
    ours = (os.geteuid(), os.getegid())
    own = host.is_own
    seen = {}
    for jvm in jvms:
        try:
            seen[jvm.pid, jvm.start_ticks] = _see(host, jvm, mounts, ours if own else None)
        except GONE:
            continue
        except (DENIED, BadInput):
            found.denied.append(jvm.pid)
    return seen


def _see(host: Host, jvm: Jvm, mounts: list[Mount], ours: tuple[int, int] | None) -> analysis.Seen:
    stat = host.fs.load(parse_stat, jvm.pid, "stat")
    status = host.fs.load(parse_status, jvm.pid, "status")
    place, memory, cpu, frozen = _cgroups(host, jvm, mounts)
    try:
        age_s = host.fs.load(parse_uptime, "uptime") - stat.start_ticks / host.clock_ticks
    except (*GONE, DENIED, BadInput):
        age_s = None
    try:
        words = tuple(host.fs.load(parse_words, jvm.pid, "cmdline"))
    except (*GONE, DENIED):  # a copy may lack it
        words = ()
    attach: Attachable | None = None
    if ours is not None:
        attach = attachable(host.fs, jvm, status, stat.state, frozen, ours)
    return analysis.Seen(
        jvm=jvm,
        at_s=host.monotonic(),
        age_s=age_s,
        user=host.user_name(jvm.uid),
        cpu_s=(stat.user_ticks + stat.system_ticks) / host.clock_ticks,
        threads=stat.threads,
        rss_bytes=status.bytes_of("VmRSS"),
        place=place,
        memory=memory,
        cpu=cpu,
        attach=attach,
        release=None if jvm.perf else jdk_release(host.fs, jvm).get("JAVA_VERSION"),
        words=words,
    )


def _cgroups(
    host: Host, jvm: Jvm, mounts: list[Mount]
) -> tuple[Place | None, MemoryLimit | None, CpuLimit | None, str | None]:
    try:
        memberships: list[Membership] = host.fs.load(parse_cgroup, jvm.pid, "cgroup")
    except (*GONE, DENIED, BadInput):  # a kernel, or a captured tree, without cgroups
        return None, None, None, None
    memory = levels_of(host.fs, memberships, "memory", mounts)
    cpu = levels_of(host.fs, memberships, "cpu", mounts)
    freezer = levels_of(host.fs, memberships, "freezer", mounts) or (
        memory if memory and memory[0].version == 2 else None
    )
    return (
        place_of(memberships),
        memory_limit(host.fs, memory) if memory else None,
        cpu_limit(host.fs, cpu) if cpu else None,
        frozen_by(host.fs, freezer) if freezer else None,
    )


def _report(
    host: Host,
    options: Options,
    format_: str,
    found: Survey,
    rows: Sequence[analysis.Row],
    samples: Sequence[tuple[float, Sequence[analysis.Sample]]],
) -> Report:
    findings = analysis.findings(rows, size)
    said = [finding.summary + (f"; {finding.fix}" if finding.fix else "") for finding in findings]
    footer = list(coverage_lines(host.fs, len(found.scanned), len(found.denied), len(found.vanished)))
    footer += view.notes(rows, lambda: how_to_be_allowed(host.fs, "CAP_SYS_PTRACE CAP_DAC_READ_SEARCH"))
    if not rows:
        whose = f" of {', '.join(map(host.user_name, sorted(options.uids)))}" if options.uids else ""
        known = " among those that could be judged" if found.denied and not host.fs.is_live else ""
        footer.append(f"no JVM{whose} is running here{known}")
    shown: Mapping[str, bool] = {"vm_args": options.vm_args, "properties": options.properties}
    if format_ == "text":
        # One table and nothing else on stdout.
        return Report(about(host), [view.text_block(rows, **shown)], footer=[*said, *footer])
    return Report(
        about(host, {"pids": " ".join(map(str, options.pids))} if options.pids else None),
        view.blocks(rows, **shown) if rows else (),
        verdict=said,
        footer=footer,
        data=lambda: {
            "jvms": [view.row_object(row, properties=options.properties) for row in rows],
            "jvm_count": len(rows),
            "processes_scanned": len(found.scanned),
            "processes_denied": len(found.denied),
            "processes_vanished": len(found.vanished),
            "findings": [finding.to_object() for finding in findings],
            "samples": [view.sample_object(*sample) for sample in samples] if len(samples) > 1 else None,
        },
    )
