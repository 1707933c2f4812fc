"""What `opskit jpmp` and `opskit profile` do: profile a live process by samples or dumps, or read saved ones, and show it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from opskit.analysis.jpmp.judge import Weighing, judge, judge_locks
from opskit.analysis.jpmp.stacks import Naming, Root, Selection, Weight
from opskit.collect.jpmp.collect import Request, collect, is_small
from opskit.collect.targets import is_file
from opskit.commands.shared.declare import refuse
from opskit.commands.shared.profile_options import LIVE_ONLY, check
from opskit.commands.shared.progress import Progress
from opskit.errors import UsageError
from opskit.escape import printable
from opskit.render.views.jpmp.report import PICTURES, View, locks_report, look_of, profile_report
from opskit.render.views.jpmp.sentences import asides, target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opskit.collect.jpmp.collect import Facts
    from opskit.commands.shared.run import Run

_INTERRUPTED = 130


def profile_threads(run: Run, words: tuple[str, ...], given: dict[str, Any], default_s: float | None = None) -> int:
    """Run the command line. `default_s`: the length of a CPU profile, which is then what is asked for by default."""
    if given["locks"] and run.format in ("folded", *PICTURES):
        raise UsageError(f"--locks is not a profile and has no {run.format} form; use -f text, table, json or markdown")
    from_files = bool(words) and is_file(words[0])
    if default_s is not None and not (from_files or _asks_otherwise(given)):
        given["on_cpu"] = True
    by: Weight = "cpu_ms" if given["on_cpu"] else "off_cpu_ms" if given["offcpu"] else "samples"
    exact = run.format in ("text", "folded")  # needs no thread names, unless they are shown or selected
    idle = run.format not in ("table", "markdown") if given["idle"] is None else given["idle"]
    root: Root | None = "thread" if given["by_thread"] else "pool" if given["by_pool"] else None
    selection = Selection(frozenset(given["state"]), given["include"], given["exclude"], idle, given["depth"])
    detailed = not exact or root is not None or by != "samples" or any(given[name] for name in ("state", "virtual"))
    named = detailed or (run.format == "text" and is_small(words))  # without names large files are read faster
    how = Weighing(Naming(given["full_names"], given["lines"]), selection, root, by, detailed)
    view = View(
        run.format, run.out.terminal, run.top, look_of(given, run.format, run.top), given["verbose"], given["wall"]
    )
    ask = Request(before=given["diff"], detail="locks" if given["locks"] or named else "stacks")
    progress = Progress(run.host)
    if from_files:
        refuse({**given, "watch": run.watching}, LIVE_ONLY, "goes with a live JVM, not with files")
        gather: Callable[[], Facts] = partial(collect, run.host, ask._replace(files=words))
    else:
        from opskit.commands.shared.live_profile import gatherer

        check(given, is_watch=run.watching)
        whole = by != "samples" or given["wall"] or given["save"] is not None or run.format in ("folded", *PICTURES)
        ask = ask._replace(cpu=named and not given["virtual"], to_the_end=whole)
        gather = gatherer(run, words, given, ask, default_s, progress)

    def take() -> Facts:
        with progress:
            return gather()

    facts = take()
    if not facts.counts_cpu:
        how = how._replace(by="samples")
    _say(asides(facts))
    if facts.ended == "interrupted":
        run.watching = False  # there is no further window
    if run.watching:
        return _watch(run, facts, take, how, view)
    return _show(run, facts, how, view, locks=given["locks"])


def _asks_otherwise(given: dict[str, Any]) -> bool:
    return any(given[name] for name in ("wall", "offcpu", "locks", "virtual")) or given["event"] in (
        "wall",
        "alloc",
        "lock",
    )


def _show(run: Run, facts: Facts, how: Weighing, view: View, *, locks: bool) -> int:
    """Show what was gathered, also where the run ended early."""
    live, code = facts.live, 0
    if live is None or live.dumps:
        about, display = run.about(target(facts)), partial(run.show, fit_height=run.top is None)
        if locks:
            code = display(
                lambda: judge_locks(facts, how.naming), lambda found: locks_report(about, facts, found, view)
            )
        else:
            code = display(lambda: judge(facts, how), lambda found: profile_report(about, facts, how, found, view))
    if live is not None and live.ended == "failed" and live.error:
        raise live.error
    return _INTERRUPTED if facts.ended == "interrupted" else code


def _watch(run: Run, first: Facts, take: Callable[[], Facts], how: Weighing, view: View) -> int:
    """One window after the other; the first one is there already."""
    ready = [first]

    def look() -> Facts:
        facts = ready.pop() if ready else take()
        if facts.ended == "interrupted":
            raise KeyboardInterrupt
        return facts

    run.interval_s = 0.0  # a window takes its time by itself
    return run.show(
        look,
        lambda facts: profile_report(run.about(target(facts)), facts, how, judge(facts, how), view),
        fit_height=run.top is None,
    )


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(f"opskit: {printable(line)}", err=True)
