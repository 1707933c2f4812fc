"""`opskit jpmp`: Java's poor man's profiler: where the threads of a JVM, live or in saved dumps, stand, and what costs CPU."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from opskit.analysis import stacks as analysis
from opskit.collect.targets import is_file
from opskit.commands import jpmp_picture as picture
from opskit.commands.gathered import Gathered
from opskit.commands.shared.options import Duration, common, open_host, top
from opskit.commands.shared.output import Output, about
from opskit.errors import NothingFound, UsageError
from opskit.escape import printable
from opskit.jvm.dumps.dialects import DumpReader
from opskit.jvm.dumps.thread_dump import STATES
from opskit.proc.user_files import read_bytes, source_name
from opskit.quantities import percent
from opskit.render.report import Block, Report
from opskit.render.views import stacks as view

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.host import Host
    from opskit.jvm.dumps.thread_dump import Waits

_SAFEPOINTS = "Stacks of running threads are taken at safepoints: the hot line may be nearby; stacks of waiting threads are exact."
_FRAMES_ON_SCREEN = 10
_EXACT = "text", "folded"  # formats of bare lines: everything else goes to stderr


class Options(NamedTuple):
    """What was asked."""

    naming: analysis.Naming
    selection: analysis.Selection
    root: analysis.Root | None
    on_cpu: bool
    top: int | None
    picture: picture.Asked


class _Command(click.Command):
    """Says what is wrong with `jpmp 4242 -5`, which click takes for an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if re.fullmatch(r"-[\d.]", error.option_name):
                raise UsageError(
                    f"jpmp: {error.option_name}… is negative: PID, SAMPLES and INTERVAL are numbers from 0 up"
                ) from None
            raise


class _Pattern(click.ParamType):
    """A regular expression."""

    name = "regex"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> re.Pattern[str]:
        try:
            return re.compile(value)
        except (re.error, OverflowError, RecursionError) as error:
            self.fail(f"{value!r} is no regular expression: {error}", param, ctx)


@click.command(
    name="jpmp", cls=_Command, help=__doc__.partition(": ")[2] if __doc__ else None, short_help="Where threads stand."
)
@click.argument("words", metavar="[PID [SAMPLES=20] [INTERVAL=0.25] | FILE...]", nargs=-1)
@click.option("--on-cpu", is_flag=True, help="Weigh stacks by the CPU that was spent in them (ms), not by samples.")
@click.option(
    "--state",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    help="Only threads in this state; repeatable.",
)
@click.option("--by-thread", is_flag=True, help="The thread's name as the root frame.")
@click.option("--by-pool", is_flag=True, help="The same with pool-1-thread-17 folded to pool-1-thread-*.")
@click.option("--include", multiple=True, type=_Pattern(), metavar="RE", help="Only stacks with a frame that matches.")
@click.option("--exclude", multiple=True, type=_Pattern(), metavar="RE", help="No stacks with a frame that matches.")
@click.option("--idle/--no-idle", default=None, help="With or without threads that wait for work (table: without).")
@click.option("--depth", type=click.IntRange(min=1), metavar="N", help="Keep the N frames next to the leaf.")
@click.option("--full-names", is_flag=True, help="Names as the dump has them: java whole, lambdas and modules kept.")
@click.option("--lines", is_flag=True, help="Frames with file and line.")
@click.option(
    "--max-stop",
    type=click.FloatRange(min=0, min_open=True, max=100),
    metavar="PERCENT",
    help="Stretch the default interval so that sampling stops the JVM for no more of the time (1 %).",
)
@click.option(
    "--timeout", type=Duration(), metavar="SECONDS", help="How long to wait for a dump (10 s; with --virtual 60 s)."
)
@click.option("--save", metavar="DIR", help="Keep the raw dumps in DIR, a file a sample.")
@click.option("--locks", is_flag=True, help="Which locks hold up how many threads, who holds them; deadlocks first.")
@click.option(
    "--synchronizers", is_flag=True, help="With --locks: owners of java.util.concurrent locks (walks the heap)."
)
@click.option("--virtual", is_flag=True, help="Every virtual thread too, mounted or not (JDK 21 and later).")
@click.option("--yes", is_flag=True, help="With --synchronizers: do not ask.")
@picture.picture_options
@top
@common("table", "text", "markdown", "folded", "json", *picture.FORMATS)
def command(
    words: tuple[str, ...],
    on_cpu: bool,
    state: tuple[str, ...],
    by_thread: bool,
    by_pool: bool,
    include: tuple[re.Pattern[str], ...],
    exclude: tuple[re.Pattern[str], ...],
    idle: bool | None,
    depth: int | None,
    full_names: bool,
    lines: bool,
    max_stop: float | None,
    timeout: float | None,
    save: str | None,
    locks: bool,
    synchronizers: bool,
    virtual: bool,
    yes: bool,
    inverted: bool,
    reverse: bool,
    diff: str | None,
    title: str | None,
    width: int | None,
    top: int | None,
    format_: str | None,
    output: str | None,
    root: str | None,
    proc: str | None,
    no_color: bool,
) -> int:
    """Options, collect, analyse, emit."""
    if by_thread and by_pool:
        raise UsageError("--by-thread and --by-pool exclude each other: choose one")
    _check_locks(locks, synchronizers, virtual, yes, on_cpu)
    out = Output.choose(format_, output, no_color, picture.KNOWN_SUFFIXES, needs_plot=False)
    asked = picture.Asked(inverted, reverse, diff, title, width)
    asked.check(out.format, top)
    for_people = out.format in ("table", "markdown")
    options = Options(
        analysis.Naming(full_names, lines),
        analysis.Selection(frozenset(state), include, exclude, not for_people if idle is None else idle, depth),
        "thread" if by_thread else "pool" if by_pool else None,
        on_cpu,
        top,
        asked,
    )
    host = open_host(root, proc)
    detailed = on_cpu or options.root is not None or out.format not in _EXACT or bool(state)
    if locks and out.format in ("folded", *picture.FORMATS):
        raise UsageError(
            f"--locks is no profile, and has no {out.format} form; -f text, table, json and markdown have it"
        )
    reader = DumpReader("locks" if locks else "threads" if detailed or virtual else "stacks")
    before = None if diff is None else _read_files((diff,), reader)
    if words and is_file(words[0]):
        for name, value in (
            ("--max-stop", max_stop),
            ("--timeout", timeout),
            ("--save", save),
            ("--synchronizers", synchronizers or None),
            ("--virtual", virtual or None),
        ):
            if value is not None:
                raise UsageError(f"{name} goes with a live JVM, not with files")
        read = _read_files(words, reader)
        read.before = before
        _show(host, options, out, read, detailed=detailed, locks=locks)
        return 0
    from opskit.commands import jpmp_live

    what: jpmp_live.What = "virtual" if virtual else "synchronizers" if synchronizers else "threads"
    live = jpmp_live.Live(host, words, max_stop, timeout, save, what)
    if synchronizers:
        live.ask_before_long_stop(yes)
    gathered, code = live.gather(reader, cpu=detailed and not virtual)
    if gathered is not None:
        gathered.before = before
        _show(host, options, out, gathered, detailed=detailed or virtual, locks=locks)
    if gathered is not None and gathered.error is not None:
        raise gathered.error
    return code


def _check_locks(locks: bool, synchronizers: bool, virtual: bool, yes: bool, on_cpu: bool) -> None:
    """Raise UsageError for options that say nothing together."""
    if synchronizers and not locks:
        raise UsageError("--synchronizers goes with --locks: it finds who owns java.util.concurrent locks")
    if synchronizers and virtual:
        raise UsageError("--synchronizers and --virtual exclude each other: two kinds of dump; choose one")
    if yes and not synchronizers:
        raise UsageError("--yes goes with --synchronizers")
    if virtual and on_cpu:
        raise UsageError("--virtual and --on-cpu exclude each other: nobody counts the CPU of a virtual thread")


def _show(host: Host, options: Options, out: Output, gathered: Gathered, *, detailed: bool, locks: bool) -> None:
    if not locks:
        _emit(host, options, out, gathered, detailed=detailed)
        return
    from opskit.commands.jpmp_locks import locks_report

    if not gathered.dumps:
        raise UsageError("--locks: collapsed stacks say nothing of locks; give the thread dumps themselves")
    out.emit(locks_report(host, gathered, options.top, [_footer(gathered)]), fit_height=options.top is None)


def _read_files(paths: Sequence[str], reader: DumpReader) -> Gathered:
    gathered = Gathered()
    for path in paths:
        _read_file(path, reader, gathered)
    dumps = len(gathered.dumps)
    profiles = f"{len(paths)} {'file' if len(paths) == 1 else 'files'}"
    gathered.head = f"{dumps} {'dump' if dumps == 1 else 'dumps'}" if dumps else profiles
    gathered.target = {"files": " ".join(paths)}
    return gathered


def _read_file(path: str, reader: DumpReader, gathered: Gathered) -> None:
    source = source_name(path)
    data = read_bytes(path, "jpmp")
    if source.removesuffix(".gz").endswith((".folded", ".collapsed")):
        text = data.decode("utf-8", "surrogateescape")
        del data  # such files are big
        from opskit.analysis import saved_profiles as readback

        gathered.stacks += readback.parse_folded(text, source)
        return
    try:
        dumps = reader.read(data, source)
    except NothingFound:
        # Not a dump: a profile that somebody wrote from dumps, perhaps.
        stacks = _read_profile(data.decode("utf-8", "surrogateescape"), source)
        if stacks is None:
            raise
        gathered.stacks += stacks
        return
    gathered.dumps += dumps
    for number, dump in enumerate(dumps, 1):
        if dump.cut_off:
            whole = sum(bool(thread.stack.frames) for thread in dump.threads)
            place = f"dump {number} of {len(dumps)}" if len(dumps) > 1 else "the dump"
            _say(f"{source}: {place} is cut off: {whole} stacks were whole, the rest is missing")


def _read_profile(text: str, source: str) -> list[analysis.WeightedStack] | None:
    from opskit.analysis import saved_profiles as readback

    if text[:1000].lstrip().startswith("{"):
        import json

        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return readback.parse_profile(document, source) if readback.is_profile(document) else None
    return readback.parse_folded(text, source) if readback.is_folded(text) else None


def _say(line: str) -> None:
    click.echo(f"opskit: {printable(line)}", err=True)


def _emit(host: Host, options: Options, out: Output, gathered: Gathered, *, detailed: bool) -> None:
    stacks, cpu = _weigh(options, gathered, detailed=detailed)
    selected = analysis.select(stacks, options.selection)
    deadlocks = tuple(dict.fromkeys(deadlock for dump in gathered.dumps for deadlock in dump.deadlocks))
    if out.format in picture.FORMATS:
        notes = [view.deadlock_line(deadlock) for deadlock in deadlocks]
        _draw(options, out, gathered, stacks, selected, notes)
    elif out.format in _EXACT:
        _emit_lines(options, out, selected)
    if out.format in (*_EXACT, *picture.FORMATS):
        for line in map(view.deadlock_line, deadlocks):
            _say(line)
        if gathered.dumps:
            click.echo(printable(_footer(gathered)), err=True)
        return
    out.emit(_report(host, options, out, gathered, stacks, selected, deadlocks, cpu), fit_height=options.top is None)


def _emit_lines(options: Options, out: Output, selected: Sequence[analysis.WeightedStack]) -> None:
    folded = out.format == "folded"
    if options.picture.reverse:
        selected = [stack._replace(frames=stack.frames[::-1]) for stack in selected]
    write = view.root_first if folded else view.leaf_first_in_full if options.naming.full else view.leaf_first
    rows = analysis.lines_by_weight(selected, write, on_cpu=options.on_cpu)
    lines = (view.folded_lines if folded else view.count_lines)(rows[: options.top or None])
    out.write("".join(f"{line}\n" for line in lines))


def _draw(
    options: Options,
    out: Output,
    gathered: Gathered,
    stacks: Sequence[analysis.WeightedStack],
    selected: Sequence[analysis.WeightedStack],
    notes: list[str],
) -> None:
    idle = sum(stack.samples for stack in stacks if stack.idle and stack.frames)
    if idle and not options.on_cpu:
        share = percent(idle / sum(stack.samples for stack in stacks if stack.frames))
        left_out = "are in the picture; --no-idle leaves them out" if options.selection.idle else "are left out"
        notes.append(f"threads that wait for work ({share} of the samples) {left_out}")
    if gathered.dumps:
        notes.append(_footer(gathered).removesuffix("."))
    if options.top:
        selected = analysis.heaviest_first(selected, options.on_cpu)[: options.top]
    before = None
    if gathered.before is not None:
        weighed, _ = _weigh(options, gathered.before, detailed=True)
        before = picture.Profile(_name_of(gathered.before), analysis.select(weighed, options.selection))
    picture.emit(
        out,
        options.picture,
        picture.Profile(_name_of(gathered), selected, notes),
        before,
        on_cpu=options.on_cpu,
        threads_outermost=options.root is not None,
    )


def _name_of(gathered: Gathered) -> str:
    """The files, or the JVM by pid and main class."""
    target = gathered.target or {}
    return str(target.get("files") or f"{target.get('main') or 'JVM'} {target.get('pid', '')}").strip()


def _weigh(
    options: Options, gathered: Gathered, *, detailed: bool
) -> tuple[list[analysis.WeightedStack], Mapping[int, float] | None]:
    dumps = gathered.dumps
    if not detailed:
        return [*analysis.count(dumps, options.naming, idle=not options.selection.idle), *gathered.stacks], None
    cpu = analysis.cpu_over_run(dumps, gathered.cpu_before, gathered.cpu_after)
    if options.on_cpu:
        _check_cpu(gathered, cpu)
    weighed = analysis.weigh(
        dumps, options.naming, root=options.root, cpu_ms=cpu, natives=gathered.natives, on_cpu=options.on_cpu
    )
    return [*weighed, *gathered.stacks], cpu


def _check_cpu(gathered: Gathered, cpu: Mapping[int, float] | None) -> None:
    """Without two readings of the threads' CPU there is no CPU over a run: better no answer than a wrong one."""
    if any(stack.cpu_ms is None for stack in gathered.stacks):
        raise UsageError("--on-cpu: collapsed stacks say nothing about CPU; leave it out")
    if gathered.dumps and cpu is None:
        if len(gathered.dumps) < 2:
            raise UsageError(
                "--on-cpu needs two dumps or more of the same JVM: what a thread used since its start says nothing "
                "about its stack now"
            )
        raise UsageError("--on-cpu: these dumps have no cpu= (JDK 11 and later write it); sample the live JVM instead")


def _footer(gathered: Gathered) -> str:
    """`20 samples, 115 threads; the JVM stood still … . Stacks of running threads are taken at safepoints: …`."""
    threads = analysis.thread_count(gathered.dumps)
    said = f"{gathered.head}, {threads} threads" if threads else gathered.head
    dialects = ", ".join(dict.fromkeys(dump.dialect for dump in gathered.dumps))
    read_as = f"; read as {dialects}" if dialects else ""
    return "; ".join([said, *gathered.said]) + f"{read_as}. {_SAFEPOINTS}"


def _report(
    host: Host,
    options: Options,
    out: Output,
    gathered: Gathered,
    stacks: Sequence[analysis.WeightedStack],
    selected: Sequence[analysis.WeightedStack],
    deadlocks: Sequence[Sequence[Waits]],
    cpu: Mapping[int, float] | None,
) -> Report:
    ordered = (
        analysis.hottest_first(selected) if out.format != "json" else analysis.heaviest_first(selected, options.on_cpu)
    )
    if options.on_cpu and out.format != "json":
        ordered = [stack for stack in ordered if stack.cpu_ms and round(stack.cpu_ms)]
    rows = ordered[: options.top] if options.top else ordered
    hidden = 0 if options.selection.idle else sum(stack.idle and not stack.deadlocked for stack in stacks)
    footer = [f"{hidden} idle stacks hidden; --idle shows them"] if hidden else []
    if gathered.dumps:
        footer.append(_footer(gathered))
    columns = view.columns(
        stacks,
        on_cpu=options.on_cpu,
        full_names=options.naming.full,
        most_frames=_FRAMES_ON_SCREEN if out.terminal and options.selection.depth is None else None,
    )
    return Report(
        about(host, gathered.target),
        [Block(columns, rows, len(ordered))],
        verdict=[view.deadlock_line(deadlock) for deadlock in deadlocks],
        footer=footer,
        data=lambda: {
            "stacks": [view.stack_object(stack) for stack in rows],
            "weight": "cpu_ms" if options.on_cpu else "samples",
            "samples": len(gathered.dumps) or None,
            "threads": analysis.thread_count(gathered.dumps),
            "cpu_ms": None if cpu is None else round(sum(cpu.values()), 3),
            "deadlocks": [view.deadlock_object(deadlock) for deadlock in deadlocks],
            "dialects": list(dict.fromkeys(dump.dialect for dump in gathered.dumps)),
            **gathered.data,
        },
    )
