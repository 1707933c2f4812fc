"""`opskit pipes`: which pipes are open, who uses them, which are full or one-sided, who keeps gaining them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from opskit.analysis import pipes as analysis
from opskit.commands.shared.options import Pid, check_watch, common, open_host, top, uids_of, users, watching
from opskit.commands.shared.output import Output, about
from opskit.commands.shared.watch import old_run_watch as run_watch
from opskit.errors import BadInput, NoSuchProcess, NotPermitted, NotSupported, UsageError
from opskit.proc.files.boot_time import parse_boot_time
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.fs import DENIED, GONE
from opskit.proc.pipe_scan import Holder, PipeScan, PipeScanner, fds_in_flight
from opskit.proc.process import command_name
from opskit.proc.rights import how_to_be_allowed
from opskit.proc.visibility import coverage_lines, hides_processes
from opskit.render.report import Block, Report
from opskit.render.views import pipes as view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from opskit.host import Host
    from opskit.proc.pipe_fill import Blocked, Fill

_SETTLE_S = 0.1  # between the two looks that tell a slow reader from one that does not read


class Options(NamedTuple):
    """What was asked."""

    pids: tuple[int, ...]
    uids: frozenset[int]
    by_process: bool
    by_user: bool
    ends: bool
    fill: bool
    fifos: bool
    threads: bool
    sort: str
    top: int | None

    @property
    def detailed(self) -> bool:
        """Whether more than counts and names is wanted."""
        return self.ends or self.fill or self.fifos

    @property
    def selective(self) -> bool:
        """Whether rows and counts cover some processes only."""
        return bool(self.pids or self.uids)


class Look(NamedTuple):
    """One look at the machine: what the chosen processes hold; for --ends also what all the others hold."""

    scan: PipeScan
    others: tuple[Holder, ...] = ()
    sockets: tuple[tuple[int, bytes], ...] = ()


@click.command(name="pipes", help=__doc__.partition(": ")[2] if __doc__ else None)
@click.argument("pids", metavar="[PID]...", type=Pid(), nargs=-1)
@click.option("--by-process", is_flag=True, help="Per pipe: the processes' names and their fds.")
@click.option("--by-user", is_flag=True, help="Per user: pipes, fds and capacity against fs.pipe-user-pages-soft.")
@users
@click.option("--ends", is_flag=True, help="Read and write ends, the processes on the other side, one-sided pipes.")
@click.option("--fill", is_flag=True, help="Bytes queued, capacity, and who blocks on a full pipe.")
@click.option("--fifos", is_flag=True, help="Named FIFOs too.")
@click.option("--threads", is_flag=True, help="Look into fd tables that a thread has of its own.")
@click.option(
    "--sort", type=click.Choice(["fds", "inode"]), default="fds", show_default=True, help="Order of the pipes."
)
@top
@watching
@common("table", "text", "json", "markdown")
def command(
    pids: tuple[int, ...],
    by_process: bool,
    by_user: bool,
    user: tuple[str, ...],
    ends: bool,
    fill: bool,
    fifos: bool,
    threads: bool,
    sort: str,
    top: int | None,
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
    if by_process and by_user:
        raise UsageError("--by-process and --by-user exclude each other: choose one")
    out = Output.choose(format_, output, no_color)
    host = open_host(root, proc, watch)
    uids = uids_of(host, user)
    options = Options(pids, uids, by_process, by_user, ends, fill, fifos, threads, sort, top)
    if fill and not host.is_own:
        raise NotPermitted(
            f"{host.fs.proc} is another machine or pid namespace: --fill has to reach into its processes"
        )
    _check_pids(host, pids)
    if watch:
        return run_watch(host, out, interval, count, _watched(host, options, out.format), fit_height=top is None)
    look = _look(host, options)
    _refuse_denied(host, options, look)
    out.emit(_report(host, options, out.format, look), fit_height=top is None)
    return 0


def _check_pids(host: Host, pids: Iterable[int]) -> None:
    for pid in pids:
        if not host.fs.exists(pid):
            if hides_processes(host.fs):
                advice = how_to_be_allowed(host.fs, "CAP_SYS_PTRACE", "opskit", "pipes", pid)
                hint = f"it may have ended, or is another user's and hidden (hidepid); {advice}"
            else:
                hint = "it may have ended; opskit pipes without a PID shows all"
            raise NoSuchProcess(pid, hint)


def _refuse_denied(host: Host, options: Options, look: Look) -> None:
    """A process that was asked for by its pid must be answered for; so must a copy that holds no fds at all."""
    scan = look.scan
    if scan.garbled and not scan.scanned:
        raise scan.garbled[0]
    if not host.fs.is_live and not scan.any_fd and (scan.scanned or scan.denied):
        raise NotSupported(
            f"{host.fs.proc} is a copy without fds: it cannot tell who uses pipes; copy the links in each PID/fd too (cp -a)"
        )
    for pid in options.pids:
        if pid in look.scan.vanished:
            raise NoSuchProcess(pid, "it ended during the scan")
        if pid in look.scan.denied and not host.fs.is_live:
            raise NotSupported(f"{host.fs.path(pid, 'fd')} is not in this copy: what {pid} holds is unknown")
        if pid in look.scan.denied:
            who = host.process(pid)
            owner = who.user or "another user"
            remedy = how_to_be_allowed(host.fs, "CAP_SYS_PTRACE", "opskit", "pipes", pid, pid=pid)
            raise NotPermitted(f"{pid} ({who.command}, user {owner}) does not let its fds be read; {remedy}")


def _scanner(host: Host, options: Options) -> PipeScanner:
    same_fd_table: Callable[[int, int], bool] | None = None
    if options.threads and host.is_own:
        from opskit.proc.kernel import syscalls  # noqa: PLC0415  (ctypes: only where it is needed)

        same_fd_table = syscalls.same_fd_table
    return PipeScanner(
        host.fs,
        ends=options.ends or options.fill or (options.by_user and host.is_own),
        fifos=options.fifos,
        threads=options.threads,
        same_fd_table=same_fd_table,
    )


def _look(host: Host, options: Options) -> Look:
    scanner = _scanner(host, options)
    wanted = list(dict.fromkeys(options.pids)) if options.pids else host.fs.pids()
    unknown: list[int] = []
    if options.uids:
        uids = {pid: _real_uid(host, pid) for pid in wanted}
        unknown = [] if host.fs.is_live else [pid for pid, uid in uids.items() if uid is None]
        wanted = [pid for pid in wanted if uids[pid] in options.uids]
    scan = scanner.scan(wanted)
    scan.denied += unknown
    if not (options.ends and options.selective):
        return Look(scan, sockets=tuple(scan.sockets))
    chosen = set(wanted)
    others = scanner.scan(pid for pid in host.fs.pids() if pid not in chosen)
    keys = {key for holder in scan.holders for key in holder.counts}
    scan.denied += others.denied
    scan.vanished += others.vanished
    scan.scanned += others.scanned
    touching = tuple(_only(holder, keys) for holder in others.holders if not keys.isdisjoint(holder.counts))
    return Look(scan, touching, (*scan.sockets, *others.sockets))


def _only(holder: Holder, keys: set[bytes]) -> Holder:
    counts = {key: count for key, count in holder.counts.items() if key in keys}
    ends = {key: end for key, end in holder.ends.items() if key in keys} if holder.ends is not None else None
    return Holder(holder.pid, counts, ends, holder.tid)


def _real_uid(host: Host, pid: int) -> int | None:
    try:
        return host.fs.load(parse_status, pid, "status").real_uid
    except (*GONE, DENIED, BadInput):
        return None


def _report(
    host: Host,
    options: Options,
    format_: str,
    look: Look,
    samples: Sequence[analysis.Sample] = (),
) -> Report:
    totals = analysis.total_fds(look.scan.holders)
    rows = analysis.ranked(totals, options.sort)
    shown = rows[: options.top] if options.top else rows
    gains = analysis.gains(samples, _boot_s(host), host.clock_ticks) if samples else []
    scan = look.scan
    footer = list(coverage_lines(host.fs, len(scan.scanned), len(scan.denied), len(scan.vanished)))
    if scan.garbled:
        footer.append(f"{len(scan.garbled)} of these for what is no link of a kernel's: {scan.garbled[0]}")
    if scan.remote_skipped:
        footer.append(f"{scan.remote_skipped} fds on network file systems were not looked at: a stat there may hang")
    if scan.copied_skipped:
        footer.append(
            f"which of {scan.copied_skipped} fds on files are FIFOs is not known: a captured tree does not tell"
        )
    fifos = len(scan.fifo_paths)
    total = view.total_line(len(rows) - fifos, fifos, sum(totals.values()))
    if format_ == "text" and not (options.detailed or options.by_user):
        return Report(
            about(host),
            footer=footer,
            text=lambda: [*_plain_lines(host, options, shown, look), total, *map(view.gain_line, gains)],
        )
    pipes, full = _pipes(host, options, rows if options.by_user else shown, look)
    owners = _owners(host, options, pipes)
    keys: dict[str, Any] = {"by_process": options.by_process, "ends": options.ends, "fill": options.fill}
    blocks: list[Block[Any]] = [
        Block(view.OWNER_COLUMNS, owners, len(owners))
        if owners is not None
        else Block(view.columns(**keys), pipes, len(rows))
    ]
    if gains:
        blocks.append(view.gains_block(gains))
    return Report(
        about(host, {"pids": " ".join(map(str, options.pids))} if options.pids else None),
        blocks=blocks,
        verdict=full,
        summary=[total, *map(view.gain_line, gains)],
        footer=[*full, *footer] if format_ == "text" else footer,
        text=None
        if options.by_user
        else lambda: [*view.detail_lines(pipes, **keys), total, *map(view.gain_line, gains)],
        data=lambda: {
            "pipes": [view.pipe_object(pipe) for pipe in (pipes[: options.top] if options.top else pipes)],
            "pipe_count": len(rows) - fifos,
            "fifo_count": fifos if options.fifos and not scan.copied_skipped else None,
            "fd_count": sum(totals.values()),
            "processes_scanned": len(scan.scanned),
            "processes_denied": len(scan.denied),
            "processes_vanished": len(scan.vanished),
            "users": None if owners is None else [view.owner_object(owner) for owner in owners],
            "gains": [view.gain_object(gain) for gain in gains] if samples else None,
            "samples": [
                {"at_s": round(sample.at_s, 3), "pipe_count": sample.pipe_count, "fd_count": sample.fd_count}
                for sample in samples
            ]
            or None,
        },
    )


def _boot_s(host: Host) -> int | None:
    try:
        return host.fs.load(parse_boot_time, "stat")
    except (*GONE, DENIED, BadInput):
        return None


def _plain_lines(host: Host, options: Options, rows: Sequence[tuple[int, int, bytes]], look: Look) -> Iterable[str]:
    if not options.by_process:
        return view.count_lines(rows)
    commands = {holder.pid: command_name(host.fs, holder.pid) for holder in look.scan.holders}
    return view.command_lines(rows, analysis.commands_by_pipe(look.scan.holders, commands))


def _pipes(
    host: Host, options: Options, rows: Sequence[tuple[int, int, bytes]], look: Look
) -> tuple[list[analysis.Pipe], list[str]]:
    """The rows with all that was asked about them, and a sentence about each full pipe of the machine."""
    holders = [*look.scan.holders, *look.others]
    people = {pid: host.process(pid) for pid in {holder.pid for holder in holders}}
    uses = analysis.uses_by_pipe(holders, people)
    classes = _classes(host, rows, uses, look) if options.ends else {}
    # Another machine's pids are not ours: their fds are never copied, so the capacities stay unknown.
    reach = host.is_own and (options.fill or options.by_user)
    fills, verdicts = _fills(host, options, holders, uses) if reach else ({}, {})
    pipes = []
    for fds, inode, key in rows:
        kind, _, device = analysis.identity(key)
        path = look.scan.fifo_paths.get(key)
        end_class, meaning = classes.get(key, (None, None))
        pipes.append(
            analysis.Pipe(
                kind=kind,
                inode=inode,
                device=device,
                path=None if path is None else path.decode("utf-8", "surrogateescape"),
                fds=fds,
                uses=_directed(uses[key], options),
                end_class=end_class,
                meaning=meaning,
                fill=fills.get(key),
                verdict=verdicts.get(key),
            )
        )
    full = [f"{view.key_name(key)} is {text}" for key, text in verdicts.items() if text and text.startswith("full")]
    return pipes, full


def _directed(uses: tuple[analysis.ProcessUse, ...], options: Options) -> tuple[analysis.ProcessUse, ...]:
    """Directions only where they were asked for: --fill and --fifos see them in passing."""
    if options.ends:
        return uses
    return tuple(analysis.ProcessUse(use.process, use.fds, None, None) for use in uses)


def _classes(
    host: Host,
    rows: Sequence[tuple[int, int, bytes]],
    uses: Mapping[bytes, tuple[analysis.ProcessUse, ...]],
    look: Look,
) -> dict[bytes, tuple[str, str | None]]:
    denied = len(look.scan.denied)
    classes = {key: analysis.classify(uses[key], {}, denied) for _, _, key in rows}
    one_sided = [key for key, (name, _) in classes.items() if name == "one-sided"]
    # Only then is it worth reading every socket's fdinfo.
    in_flight = fds_in_flight(host.fs, look.sockets) if one_sided else {}
    return classes | {key: analysis.classify(uses[key], in_flight, denied) for key in one_sided}


def _fills(
    host: Host, options: Options, holders: Sequence[Holder], uses: Mapping[bytes, tuple[analysis.ProcessUse, ...]]
) -> tuple[dict[bytes, Fill], dict[bytes, str | None]]:
    from opskit.proc.kernel.syscalls import pipe_fill  # noqa: PLC0415
    from opskit.proc.pipe_fill import blocked_writers, read_fills, times_slept  # noqa: PLC0415

    fills = read_fills(holders, pipe_fill)
    if not options.fill:
        return fills, {}
    blocked: list[Blocked] = blocked_writers(host.fs, holders, fills)
    drained: set[bytes] = set()
    if blocked:
        # A writer sleeps for a moment on any busy pipe: it counts as blocked when it still does after a while.
        keys = {entry.key for entry in blocked}
        before = times_slept(host.fs, blocked)
        host.sleep(_SETTLE_S)
        after = times_slept(host.fs, blocked)
        drained = {entry.key for entry in blocked if after.get(entry, 0) > before.get(entry, 0)}
        still = set(blocked_writers(host.fs, [_only(holder, keys) for holder in holders], fills))
        blocked = [entry for entry in blocked if entry in still]
    all_seen = options.ends or not options.selective
    verdicts = {
        key: analysis.verdict(key, uses[key], fill, blocked, drains=key in drained, all_seen=all_seen)
        for key, fill in fills.items()
    }
    return fills, verdicts


def _owners(host: Host, options: Options, pipes: Sequence[analysis.Pipe]) -> list[analysis.OwnerUse] | None:
    if not options.by_user:
        return None
    soft_pages = host.sysctl("fs", "pipe-user-pages-soft")
    return analysis.owners(pipes, host.user_name, soft_pages, host.page_bytes)


def _watched(host: Host, options: Options, format_: str) -> Callable[[], Report]:
    """The next look, told together with all looks before it. Raises NoSuchProcess when all that were asked for have ended."""
    samples: list[analysis.Sample] = []
    begun = host.monotonic()
    starts = {pid: host.process(pid).start_ticks for pid in options.pids}

    def take() -> Report:
        # A pid that has another start time by now is another process.
        now = {pid: host.process(pid) for pid in options.pids}
        alive = tuple(pid for pid, it in now.items() if it.start_ticks == starts[pid] and not it.has_ended)
        if options.pids and not alive:
            raise NoSuchProcess(options.pids[0], "it ended while it was watched")
        living = options._replace(pids=alive)
        look = _look(host, living)
        samples.append(_sample(host, look, host.monotonic() - begun))
        return _report(host, living, format_, look, samples)

    return take


def _sample(host: Host, look: Look, at_s: float) -> analysis.Sample:
    held: dict[int, set[bytes]] = {}
    for holder in look.scan.holders:
        held.setdefault(holder.pid, set()).update(holder.counts)
    pipes: dict[tuple[int, int], int] = {}
    commands: dict[tuple[int, int], str] = {}
    for pid in look.scan.scanned:
        try:
            start = host.fs.load(parse_stat, pid, "stat").start_ticks
        except (*GONE, DENIED, BadInput):
            continue
        pipes[pid, start] = len(held.get(pid, ()))
        if pid in held:
            commands[pid, start] = command_name(host.fs, pid)
    totals = analysis.total_fds(look.scan.holders)
    return analysis.Sample(at_s, len(totals), sum(totals.values()), pipes, commands)
