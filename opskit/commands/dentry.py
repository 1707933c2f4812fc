"""`opskit dentry`: the memory in dentry and inode caches, who makes negative entries, and dropping them safely."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit import shell
from opskit.analysis.dentry.judge import Result, exceeds, judge, judge_drop, judge_lookups
from opskit.analysis.dentry.usage import measure
from opskit.collect.dentry import Collector, Request, collect
from opskit.commands.shared.confirm import agreed
from opskit.commands.shared.declare import command
from opskit.commands.shared.options import TOP, WATCH, Duration, option
from opskit.errors import NotPermitted, UsageError
from opskit.escape import printable
from opskit.proc.rights import how_to_be_allowed
from opskit.quantities import decimal
from opskit.render.views import dentry as view

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.commands.shared.run import Run

DEFAULT_SYNC_TIMEOUT_S = 30.0
DROP, CULPRIT = "Drop", "Find the culprit"


def _level(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """`dentries`, `pagecache` or `all`, also by the kernel's numbers 2, 1, 3."""
    if value is None:
        return None
    from opskit.actions import drop_caches

    word = {str(number): word for word, number in drop_caches.LEVELS.items()}.get(value, value.lower())
    if word not in drop_caches.LEVELS:
        why = " (4 would only mute the kernel's log)" if value == "4" else ""
        raise click.BadParameter(f"{value!r} is not a level{why}; write dentries (2), pagecache (1) or all (3)")
    return word


def _percent(_context: click.Context, _option: click.Parameter, value: str | None) -> float | None:
    """A number from 0 to 100, with or without a percent sign."""
    number = None if value is None else decimal(value.strip().removesuffix("%").strip())
    if value is not None and (number is None or number > 100):
        raise click.BadParameter(f"{value!r} is not a percentage; write a number from 0 to 100")
    return number


@command(
    "dentry",
    formats=("table", "text", "json", "markdown", "svg", "png"),
    options=(TOP, WATCH),
    exclusive=[("drop", "culprit"), ("drop", "watch"), ("culprit", "watch")],
    needs={"yes": "drop", "sync_timeout": "drop", "in_container": "drop"},
)
@option(
    "--culprit", type=Duration(), is_flag=False, flag_value="5", metavar="[SECONDS]", group=CULPRIT,
    help="Name the processes that look up absent files, by tracing for SECONDS (5; root).",
)  # fmt: skip
@option(
    "--drop", callback=_level, is_flag=False, flag_value="dentries", metavar="[dentries|pagecache|all]", group=DROP,
    help="Drop dentries and inodes (or the page cache, or all) after a sync; asks first.",
)  # fmt: skip
@option("--yes", is_flag=True, group=DROP, help="With --drop: do not ask.")
@option(
    "--sync-timeout", type=Duration(), group=DROP,
    help="With --drop: go on without the sync after this time (30 s).",
)  # fmt: skip
@option("--in-container", is_flag=True, group=DROP, help="With --drop: affect the whole host from within a container.")
@option(
    "--check", callback=_percent, metavar="PERCENT",
    help="Exit with 1 if dentries and inodes take more than PERCENT of RAM, and only then.",
)  # fmt: skip
def dentry(
    run: Run,
    culprit: float | None,
    drop: str | None,
    yes: bool,
    sync_timeout: float | None,
    in_container: bool,
    check: float | None,
) -> int:
    """Show the memory in dentry and inode caches; drop them safely."""
    if drop is not None:
        timeout_s = sync_timeout or DEFAULT_SYNC_TIMEOUT_S
        return _show(run, check, lambda _: _drop(run, drop, timeout_s, yes, in_container, check))
    if culprit is not None:
        return _show(run, check, lambda _: _trace(run, culprit, check))
    collector = Collector(run.host, Request(needs_slabs=run.format in ("svg", "png")))

    def take(last: Result | None) -> Result:
        return judge(collector.look(), check, ((last and last.samples) or ()) if run.watching else None)

    return _show(run, check, take)


def _show(run: Run, max_percent: float | None, take: Callable[[Result | None], Result]) -> int:
    """Show what `take` makes of the last result. Raises NotPermitted where --check cannot be answered."""
    last: Result | None = None

    def look() -> Result:
        nonlocal last
        last = take(last)
        return last

    fit = run.top is None
    short = fit and run.out.is_screen and not run.watching
    code = run.show(look, lambda result: view.report(run.about(), result, run.top, short=short), fit_height=fit)
    if code == 0 and last and max_percent is not None and exceeds(last.usage, max_percent) is None:
        raise NotPermitted(
            f"whether dentries and inodes take more than {max_percent:g} % of RAM is unknown without slabinfo; "
            f"{how_to_be_allowed(run.host.fs, '', 'opskit', 'dentry', '--check', f'{max_percent:g}')}"
        )
    return code


def _drop(run: Run, level: str, sync_timeout_s: float, yes: bool, in_container: bool, check: float | None) -> Result:
    """Say what will happen, ask, do it."""
    from opskit.actions import drop_caches

    drop_caches.check_may_drop(run.host, level, in_container=in_container)
    before = collect(run.host, Request())
    path = drop_caches.control_file(run.host)
    if not yes:
        for line in view.plan(measure(before), level, drop_caches.LEVELS[level], path, sync_timeout_s):
            click.echo(printable(line), err=True)
    if not agreed(yes, "Go ahead?"):
        do_it = shell.command("opskit", "dentry", "--drop", level, "--yes")
        raise UsageError(f"{drop_caches.NOTHING[:-1]}; add --yes to do it: {do_it}")
    run.progress("syncing and dropping …")
    done = drop_caches.sync_and_drop(run.host, level, sync_timeout_s)
    if done.drop_s is None:
        click.echo(f"opskit: interrupted while it waited for sync. {drop_caches.NOTHING}", err=True)
        raise click.exceptions.Exit(view.INTERRUPTED)
    return judge_drop(done, before, collect(run.host, Request()), check)


def _trace(run: Run, seconds: float, check: float | None) -> Result:
    from opskit.actions.trace_lookups import check_may_trace, trace_failed_lookups

    check_may_trace(run.host)
    before = collect(run.host, Request())
    run.progress(f"tracing failed lookups for {seconds:g} s …")
    seen = trace_failed_lookups(run.host, seconds)
    return judge_lookups(before, collect(run.host, Request()), seen, check)
