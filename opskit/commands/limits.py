"""`opskit limits`: why a thread cannot be started, and how many more can until then."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import click

from opskit import shell
from opskit.analysis.limit_findings import limit_findings
from opskit.analysis.limit_origin import explained
from opskit.analysis.limit_trend import HeadroomSample, trend
from opskit.analysis.limit_use import limit_uses
from opskit.analysis.limits import judge
from opskit.analysis.probe_plan import probe_plan
from opskit.commands.shared.confirm import agreed
from opskit.commands.shared.options import Pid, Size, check_watch, common, open_host, watching
from opskit.commands.shared.output import Output, about
from opskit.commands.shared.watch import old_run_watch as run_watch
from opskit.errors import BadInput, NoSuchProcess, NotPermitted, NotSupported, OpskitError, UsageError
from opskit.escape import printable
from opskit.proc.config.systemd_units import unit_of_path
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.fs import DENIED, GONE, Refused
from opskit.proc.limit_sources import read_origins
from opskit.proc.process import command_name
from opskit.proc.rights import how_to_be_allowed
from opskit.proc.thread_limits import INIT_USER_NAMESPACE, largest_written_bytes, read_situation
from opskit.quantities import integer
from opskit.render.report import Block, Report
from opskit.render.views import limits as view
from opskit.render.views.limits import Probed

if TYPE_CHECKING:
    from opskit.analysis.limit_use import LimitUse
    from opskit.analysis.limits import Verdict
    from opskit.host import Host
    from opskit.proc.process import Process
    from opskit.proc.thread_limits import Situation


_ENDED = ("Z", "X")  # a zombie keeps its pid until its parent collects it


@dataclass(frozen=True)
class Look:
    """One look at a process."""

    situation: Situation
    verdict: Verdict
    uses: list[LimitUse] | None
    unread: list[str]


@dataclass
class Target:
    """The process that is asked about. `named`: it was given by its pid; otherwise it is this very shell's."""

    who: Process
    named: bool
    samples: list[HeadroomSample] = field(default_factory=list)
    verdict: Verdict | None = None
    clone3_by_filters: dict[str, str | None] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The subject of the verdict's sentence."""
        if self.named:
            return f"{self.who.pid} ({self.who.command}, user {self.who.user or 'unknown'})"
        return f"A program started from this shell (user {self.who.user or 'unknown'})"


@click.command(name="limits", help=__doc__.partition(": ")[2] if __doc__ else None)
@click.argument("pid", type=Pid(), required=False)
@click.option("--all", "every", is_flag=True, help="Add the other limits with what is used of each.")
@click.option("--stack", type=Size(), metavar="SIZE", help="Ask for threads with a stack of SIZE (512K, 8M, 1G).")
@click.option(
    "--probe", is_flag=True, help="Prove it: start a few threads in a child with the process's limits and user."
)
@click.option("--in-cgroup", is_flag=True, help="With --probe: inside the process's pids cgroup too.")
@click.option("--yes", is_flag=True, help="With --probe: go ahead without asking.")
@watching
@common("table", "text", "json", "markdown")
def command(
    pid: int | None,
    every: bool,
    stack: int | None,
    probe: bool,
    in_cgroup: bool,
    yes: bool,
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
    if (in_cgroup or yes) and not probe:
        raise UsageError(f"{'--in-cgroup' if in_cgroup else '--yes'} goes with --probe")
    if probe and watch:
        raise UsageError("--probe and -w/--watch exclude each other: a probe is made once")
    if stack == 0:
        raise UsageError("--stack 0: a thread needs a stack; write 512K, 8M, 1G")
    out = Output.choose(format_, output, no_color)
    host = open_host(root, proc, watch)
    target = _target(host, pid)
    if watch:
        begun = host.monotonic()

        def take() -> Report:
            look = _look(host, target, every, stack)
            _remember(target, look, host.monotonic() - begun)
            return _report(host, target, look, narrow=out.format == "table")

        code = run_watch(host, out, interval, count, take, fit_height=False)
        return code or _exit_code(target.verdict)
    look = _look(host, target, every, stack)
    done = _probe(host, target, look, in_cgroup=in_cgroup, yes=yes) if probe else None
    out.emit(_report(host, target, look, done, narrow=out.format == "table"))
    return _exit_code(look.verdict)


def _exit_code(verdict: Verdict | None) -> int:
    if verdict is None or verdict.binding is None:
        return 2
    return int(verdict.has_run_out)


def _target(host: Host, pid: int | None) -> Target:
    if pid is None:
        try:
            ours = integer(host.fs.link("self")) if host.fs.is_live else None  # a copy's is who copied it
        except OSError:
            ours = None
        if ours is None:
            raise UsageError(f"{host.fs.proc} has no process of ours: name a PID")
        return Target(host.process(ours), named=False)
    if not host.fs.exists(pid):
        raise NoSuchProcess(pid, "it may have ended; ps -e lists what runs")
    try:
        stat = host.fs.load(parse_stat, pid, "stat")
    except (*GONE, DENIED):
        return Target(host.process(pid), named=True)
    if stat.is_kernel_thread:
        raise NotSupported(f"{pid} ({stat.comm}) is a thread of the kernel itself: it starts none by these limits")
    if stat.state in _ENDED and (others := _other_threads(host, pid)):
        raise NotSupported(
            f"the first thread of {pid} ({stat.comm}) has ended and {len(others)} others run on; name one of them: "
            + shell.command("opskit", "limits", others[0])
        )
    if stat.state in _ENDED:
        raise NoSuchProcess(pid, f"it has ended and waits for its parent {stat.ppid} to collect it (a zombie)")
    return Target(host.process(pid), named=True)


def _other_threads(host: Host, pid: int) -> list[int]:
    try:
        return [tid for tid in host.fs.tids(pid) if tid != pid]
    except (*GONE, DENIED):
        return []


def _look(host: Host, target: Target, every: bool, stack: int | None) -> Look:
    pid = target.who.pid
    try:
        situation = _with_jvm_options(host, read_situation(host.fs, pid, command_name))
        uses = _uses(host, situation) if every else None
        now = host.process(pid)
    except GONE as error:
        if not host.fs.is_live:
            raise NotSupported(f"{error.filename} is not in this copy: what limits {pid} cannot be told") from None
        raise NoSuchProcess(pid, "it ended while it was looked at") from None
    except Refused as error:
        raise NotSupported(f"{error.filename} was not read: {error.strerror}") from None
    except DENIED as error:
        raise NotPermitted(f"{error.filename}: permission denied; {_to_read_it(host, pid)}") from None
    if now.start_ticks != target.who.start_ticks or now.state in _ENDED:
        raise NoSuchProcess(pid, "it ended while it was looked at")
    origins = read_origins(host.fs, situation, target.who.user or "")
    verdict = judge(
        situation,
        stack,
        host.page_bytes,
        namespace_owner=_namespace_owner(host, situation),
        clone3=_clone3(host, target, situation),
    )
    return Look(situation, explained(verdict, situation, origins), uses, origins.pam.unread)


def _to_read_it(host: Host, pid: int) -> str:
    return how_to_be_allowed(host.fs, "CAP_SYS_PTRACE", "opskit", "limits", pid, pid=pid)


def _with_jvm_options(host: Host, situation: Situation) -> Situation:
    """A JVM's own account of its options, where it shares one: argument files are in it, which no command line shows."""
    if situation.space is None or situation.space.jvm is None:
        return situation
    from opskit.jvm.discover import read_perfdata

    try:
        options = read_perfdata(host.fs, situation.pid).text("java.rt.vmArgs")
    except OpskitError:
        return situation
    return replace(situation, java_options=tuple(options.split())) if options else situation


def _namespace_owner(host: Host, situation: Situation) -> int | None:
    if situation.user_namespace in (None, INIT_USER_NAMESPACE) or not host.is_own:
        return None
    from opskit.proc.kernel.syscalls import user_namespace_owner

    try:
        return user_namespace_owner(host.fs.path(situation.pid, "ns", "user"))
    except OSError:
        return None


def _clone3(host: Host, target: Target, situation: Situation) -> str | None:
    """The filters' answer; asked once, since filters can only become more."""
    count = situation.status.fields.get("Seccomp_filters", "?")
    if count not in target.clone3_by_filters:
        target.clone3_by_filters[count] = _filter_answer(host, situation, named=target.named)
    return target.clone3_by_filters[count]


def _filter_answer(host: Host, situation: Situation, *, named: bool) -> str | None:
    """What a seccomp filter answers to the start of a thread; None where there is none, or it cannot be read unnoticed."""
    status = situation.status
    if status.fields.get("Seccomp") != "2" or (status.threads or 1) > 1 or not host.is_own:
        return None
    from opskit.proc.kernel.seccomp import filter_answer, own_answer
    from opskit.proc.kernel.syscalls import can_start_a_thread, clone3_errno, seccomp_filters

    answer = filter_answer(host.fs, situation.pid, host.machine, seccomp_filters) if named else None
    if answer is None and (not named or _is_filtered_as_we_are(host, situation)):
        answer = own_answer(clone3_errno(), can_start_a_thread)
    return answer


def _is_filtered_as_we_are(host: Host, situation: Situation) -> bool:
    """Whether it runs in our own container, under as many filters as we do: then they are the container's."""
    ours = host.fs.load(parse_status, "self", "status").fields
    try:
        same_container = host.fs.link(situation.pid, "ns", "pid") == host.fs.link("self", "ns", "pid")
    except OSError:
        same_container = False
    return same_container and ours.get("Seccomp_filters", "0") == situation.status.fields.get("Seccomp_filters") != "0"


def _uses(host: Host, situation: Situation) -> list[LimitUse]:
    try:
        stat = host.fs.load(parse_stat, situation.pid, "stat")
        cpu: float | None = (stat.user_ticks + stat.system_ticks) / host.clock_ticks
    except (*GONE, DENIED, BadInput):
        cpu = None
    return limit_uses(situation, cpu, largest_written_bytes(host.fs, situation.pid))


def _probe(host: Host, target: Target, look: Look, *, in_cgroup: bool, yes: bool) -> Probed | None:
    """Plan, ask, do; None after a no."""
    plan = probe_plan(look.situation, look.verdict, in_cgroup=in_cgroup)
    if plan is None:
        raise NotSupported("--probe: no headroom is known, so that half of it is not known either; nothing was started")
    host.prove_own(plan.pid)
    if plan.threads == 0:
        return Probed(plan, None)
    user = target.who.user or str(plan.uid)
    click.echo(printable(view.plan_line(plan, user)), err=True)
    if not agreed(yes, "Start them?"):
        click.echo("Nothing was changed; add --yes", err=True)
        return None
    from opskit.actions.probe import run_probe

    return Probed(plan, run_probe(host, plan))


def _remember(target: Target, look: Look, at_s: float) -> None:
    binding = look.verdict.binding
    target.verdict = look.verdict
    target.samples.append(
        HeadroomSample(
            at_s,
            look.verdict.threads_left,
            binding.full_name if binding else None,
            binding.in_use if binding else None,
        )
    )


def _report(host: Host, target: Target, look: Look, probed: Probed | None = None, *, narrow: bool) -> Report:
    verdict, situation = look.verdict, look.situation
    lines = view.verdict_lines(verdict, target.title, situation, lambda: _to_read_it(host, situation.pid))
    found = trend(target.samples)
    if target.samples:
        lines.insert(1, view.trend_line(target.samples, found))
    if probed:
        lines.insert(1, view.probe_line(probed, verdict))
    blocks = view.blocks(verdict, narrow=narrow)
    if look.uses is not None:
        blocks.append(Block(view.USE_COLUMNS, look.uses, len(look.uses), "all limits"))
    units = [unit for member in situation.memberships if (unit := unit_of_path(member.path))]
    return Report(
        about(
            host,
            {
                "pid": target.who.pid,
                "command": target.who.command,
                "user": target.who.user,
                "unit": units[0] if units else None,
            },
        ),
        verdict=lines,
        blocks=blocks,
        footer=[f"could not read {name}" for name in look.unread],
        data=lambda: {
            "threads_left": verdict.threads_left,
            "threads_left_is_at_most": verdict.is_at_most,
            "unknown_limits": [view.unknown_object(limit) for limit in verdict.unknown],
            "binding": verdict.binding.name if verdict.binding else None,
            "limits": [view.limit_object(limit) for limit in verdict.limits],
            "stack_bytes": verdict.stack.bytes,
            "stack_origin": verdict.stack.origin,
            "open_files": {
                "in_use": situation.open_files,
                "value": view.number(situation.limits["RLIMIT_NOFILE"].soft)
                if "RLIMIT_NOFILE" in situation.limits
                else None,
            },
            "findings": [finding.to_object() for finding in limit_findings(target.who.pid, verdict, look.uses or ())],
            "probe": view.probe_object(probed) if probed else None,
            "all": None if look.uses is None else [view.use_object(use) for use in look.uses],
            "samples": [
                {"at_s": round(s.at_s, 3), "threads_left": s.threads_left, "binding": s.binding} for s in target.samples
            ]
            or None,
            "threads_left_per_min": round(found.per_min, 2) if found else None,
            "zero_in_s": round(found.zero_in_s, 1) if found and found.zero_in_s is not None else None,
        },
    )
