"""`opskit jpmp`: profile the threads of a JVM, live or from saved dumps."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from opskit.analysis.jpmp.judge import Weighing, judge, judge_locks
from opskit.analysis.jpmp.stacks import Naming, Root, Selection
from opskit.collect.jpmp.collect import DumpKind, Request, collect, heap_to_walk, heap_walk_s, is_small, read_words
from opskit.collect.targets import is_file
from opskit.commands.shared.declare import command, refuse
from opskit.commands.shared.options import SAMPLING, SHOW, TOP, Duration, Regex, option
from opskit.commands.shared.progress import Progress
from opskit.errors import UsageError
from opskit.escape import printable
from opskit.jvm.dumps.thread_dump import STATES
from opskit.render.views.jpmp.report import PICTURES, View, locks_report, look_of, profile_report
from opskit.render.views.jpmp.sentences import asides, heap_walk_line, target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from opskit.commands.shared.run import Run
    from opskit.host import Host

_LONG_PAUSE_S, _INTERRUPTED = 1.0, 130
_LIVE_ONLY = ("samples", "interval_s", "max_stop", "timeout", "save", "synchronizers", "virtual")
sampling, show = partial(option, group=SAMPLING), partial(option, group=SHOW)
locks, picture = partial(option, group="Locks"), partial(option, group="Pictures")


@command(
    "jpmp", formats=("table", "text", "markdown", "folded", "json", *PICTURES), options=(TOP,), plotted=False,
    exclusive=[("by_thread", "by_pool"), ("synchronizers", "virtual"), ("virtual", "on_cpu")],
    needs={"synchronizers": "locks", "yes": "synchronizers"},
)  # fmt: skip
@click.argument("words", metavar="[PID [SAMPLES=20] [INTERVAL=0.25] | FILE...]", nargs=-1)
@sampling("-c", "--count", "samples", type=click.IntRange(min=1), metavar="COUNT", help="Take COUNT samples (20).")
@sampling("-i", "--interval", "interval_s", type=Duration(zero=True), help="Time between samples (0.25 s).")
@sampling("--max-stop", type=click.FloatRange(min=0, min_open=True, max=100), metavar="PERCENT",
          help="Stretch the default interval so that sampling pauses the JVM for at most this share of the time (1 %).")  # fmt: skip
@sampling("--timeout", type=Duration(), help="Wait at most this long for a dump (10 s; with --virtual 60 s).")
@sampling("--virtual", is_flag=True, help="Include every virtual thread (JDK 21 and later; a busy JDK 25 can crash).")
@sampling("--save", metavar="DIR", help="Keep the raw dumps in DIR, one file per sample.")
@show("--on-cpu", is_flag=True, help="Weigh stacks by CPU time (ms) instead of samples.")
@show("--state", multiple=True, type=click.Choice(STATES, case_sensitive=False), help="Show this state; repeatable.")
@show("--by-thread", is_flag=True, help="Show the thread name as the root frame.")
@show("--by-pool", is_flag=True, help="The same, with pool-1-thread-17 shown as pool-1-thread-*.")
@show("--include", multiple=True, type=Regex(), metavar="RE", help="Show only stacks with a matching frame.")
@show("--exclude", multiple=True, type=Regex(), metavar="RE", help="Leave out stacks with a matching frame.")
@show("--idle/--no-idle", default=None, help="Show or hide threads that wait for work (hidden in tables).")
@show("--depth", type=click.IntRange(min=1), metavar="N", help="Keep the N frames next to the leaf.")
@show("--full-names", is_flag=True, help="Keep full class, lambda and module names.")
@show("--lines", is_flag=True, help="Show the file and line of each frame.")
@show("-v", "--verbose", is_flag=True, help="Show how the pauses were measured, late samples, the interval.")
@locks("--locks", is_flag=True, help="Show deadlocks, contended locks, their owners and waiters.")
@locks("--synchronizers", is_flag=True, help="With --locks: find owners of java.util.concurrent locks (heap walk).")
@locks("--yes", is_flag=True, help="With --synchronizers: do not ask for confirmation.")
@picture("--inverted", is_flag=True, help="Draw an icicle: the root on top (svg).")
@picture("--reverse", is_flag=True, help="Merge stacks from the leaves: the callers of hot methods.")
@picture("--diff", metavar="BEFORE", help="Show what changed since the profile or dumps in this file.")
@picture("--title", metavar="TEXT", help="Set the title of the picture.")
@picture("--width", type=click.IntRange(200, 20_000), metavar="PX", help="Fix the width; default: the window's width.")
def jpmp(run: Run, words: tuple[str, ...], **given: Any) -> int:
    """Profile the threads of a JVM, live or from saved dumps and profiles: stacks, CPU time, locks, flame graphs."""
    if given["locks"] and run.format in ("folded", *PICTURES):
        raise UsageError(f"--locks is not a profile and has no {run.format} form; use -f text, table, json or markdown")
    exact = run.format in ("text", "folded")  # needs no thread names, unless they are shown or selected
    idle = run.format not in ("table", "markdown") if given["idle"] is None else given["idle"]
    root: Root | None = "thread" if given["by_thread"] else "pool" if given["by_pool"] else None
    selection = Selection(frozenset(given["state"]), given["include"], given["exclude"], idle, given["depth"])
    detailed = not exact or root is not None or any(given[name] for name in ("on_cpu", "state", "virtual"))
    named = detailed or (run.format == "text" and is_small(words))  # without names large files are read faster
    how = Weighing(Naming(given["full_names"], given["lines"]), selection, root, given["on_cpu"], detailed)
    view = View(run.format, run.out.terminal, run.top, look_of(given, run.format, run.top), given["verbose"])
    ask = Request(before=given["diff"], detail="locks" if given["locks"] or named else "stacks")
    keep, progress = None, Progress(run.host)
    if words and is_file(words[0]):
        refuse(given, _LIVE_ONLY, "goes with a live JVM, not with files")
        ask = ask._replace(files=words)
    else:
        whole = given["on_cpu"] or given["save"] is not None or run.format in ("folded", *PICTURES)
        ask = _live(run.host, words, given, ask._replace(cpu=named and not given["virtual"], to_the_end=whole))
        keep = _keeper(run.host, ask, given["save"], progress)
    with progress:
        facts = collect(run.host, ask, dump_virtual=_dump_virtual, keep=keep)
    _say(asides(facts))
    live, code = facts.live, 0
    if live is None or live.dumps:
        about, display = run.about(target(facts)), partial(run.show, fit_height=run.top is None)
        if given["locks"]:
            code = display(
                lambda: judge_locks(facts, how.naming), lambda found: locks_report(about, facts, found, view)
            )
        else:
            code = display(lambda: judge(facts, how), lambda found: profile_report(about, facts, how, found, view))
    if live is not None and live.ended == "failed" and live.error:
        raise live.error
    return _INTERRUPTED if live is not None and live.ended == "interrupted" else code


def _live(host: Host, words: tuple[str, ...], given: Mapping[str, Any], ask: Request) -> Request:
    """The request for a live JVM; with --synchronizers after a confirmation. Raises UsageError without one."""
    from opskit.commands.shared.confirm import agreed

    kind: DumpKind = "virtual" if given["virtual"] else "synchronizers" if given["synchronizers"] else "threads"
    pid, schedule = read_words(host, words, kind, given["samples"], given["interval_s"], given["max_stop"])
    if kind == "synchronizers":
        heap = heap_to_walk(host, pid)
        pause_s = None if heap.bytes is None else heap_walk_s(heap.bytes, schedule.samples)
        _say([heap_walk_line(pid, heap, pause_s)])
        is_short = pause_s is not None and pause_s <= _LONG_PAUSE_S
        if not (is_short or agreed(given["yes"], f"Pause the JVM {pid} for that long?")):
            raise UsageError("nothing was sent to the JVM; add --yes to go on, or leave --synchronizers out")
    return ask._replace(pid=pid, schedule=schedule, kind=kind, timeout_s=given["timeout"])


def _keeper(host: Host, ask: Request, folder: str | None, progress: Progress) -> Callable[[int, bytes], None]:
    """What to do with each raw dump: write it to the folder of --save, show progress on a terminal."""
    from opskit.actions.outfile import dump_saver

    host.prove_own(ask.pid)
    save = None if folder is None else dump_saver(folder, f"jpmp-{ask.pid}-{host.now():%Y%m%dT%H%M%SZ}")

    def keep(number: int, dump: bytes) -> None:
        if save is not None:
            save(number, dump)
        progress.sampled(number, ask.schedule.samples, ask.schedule.planned_s)

    return keep


def _dump_virtual(*of_jvm: Any) -> bytes:
    from opskit.actions.dump_virtual_threads import dump_virtual_threads

    return dump_virtual_threads(*of_jvm)


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(f"opskit: {printable(line)}", err=True)
