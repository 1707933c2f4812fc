"""`opskit dentry`: the memory in dentry and inode caches, who makes negative entries, and dropping them safely."""

from __future__ import annotations

from typing import Any

import click

from opskit import shell
from opskit.actions import drop_caches
from opskit.analysis.dentry.findings import exceeds
from opskit.analysis.dentry.judge import Result, judge, judge_drop, judge_lookups
from opskit.analysis.dentry.usage import measure
from opskit.collect.dentry import Collector, Request, collect
from opskit.commands.shared.confirm import agreed
from opskit.commands.shared.options import TOP, WATCH, Duration, option
from opskit.commands.shared.run import Run, command
from opskit.errors import NotPermitted, UsageError
from opskit.escape import printable
from opskit.proc.fs import ProcFS
from opskit.proc.rights import how_to_be_allowed
from opskit.quantities import decimal
from opskit.render.views import dentry as view

DEFAULT_SYNC_TIMEOUT_S = 30.0
DROP, CULPRIT = "Drop", "Find the culprit"


class Level(click.ParamType):
    """`dentries`, `pagecache`, `all`, or the kernel's numbers 2, 1, 3; gives the word."""

    name = "level"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word."""
        levels = drop_caches.LEVELS
        words = {**{str(number): word for word, number in levels.items()}, **{word: word for word in levels}}
        word = words.get(str(value).lower())
        if word is None:
            why = " (4 would only mute the kernel's log)" if str(value) == "4" else ""
            self.fail(f"{value!r} is not a level{why}; write dentries (2), pagecache (1) or all (3)", param, ctx)
        return word


class Percent(click.ParamType):
    """`25` or `25%`; gives a float from 0 to 100."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        number = decimal(str(value).strip().removesuffix("%").strip())
        if number is None or not 0 <= number <= 100:
            self.fail(f"{value!r} is not a percentage; write a number from 0 to 100", param, ctx)
        return number


@command(
    "dentry",
    formats=("table", "text", "json", "markdown", "svg", "png"),
    options=(TOP, WATCH),
    exclusive=[("drop", "culprit"), ("drop", "watch"), ("culprit", "watch")],
    needs={"yes": "drop", "sync_timeout": "drop", "in_container": "drop"},
)
@option(
    "--culprit",
    type=Duration(),
    is_flag=False,
    flag_value="5",
    metavar="[SECONDS]",
    group=CULPRIT,
    help="Name the processes that look up absent files, by tracing for SECONDS (5; root).",
)
@option(
    "--drop",
    type=Level(),
    is_flag=False,
    flag_value="dentries",
    metavar="[dentries|pagecache|all]",
    group=DROP,
    help="Drop dentries and inodes (or the page cache, or all) after a sync; asks first.",
)
@option("--yes", is_flag=True, group=DROP, help="With --drop: do not ask.")
@option(
    "--sync-timeout",
    type=Duration(),
    metavar="SECONDS",
    group=DROP,
    help="With --drop: go on without the sync after SECONDS (30).",
)
@option("--in-container", is_flag=True, group=DROP, help="With --drop: affect the whole host from within a container.")
@option(
    "--check", type=Percent(), metavar="PERCENT", help="Exit with 1 only when dentries and inodes take more of RAM."
)
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
        drop_caches.check_may_drop(run.host, drop, in_container=in_container)
        result = _drop(run, drop, sync_timeout or DEFAULT_SYNC_TIMEOUT_S, yes=yes, check=check)
        if result is None:
            return view.INTERRUPTED
        return _checked(run.show(lambda: result, lambda found: view.drop_report(run.about(), found)), result, check)
    if culprit is not None:
        result = _trace(run, culprit, check)
        code = run.show(lambda: result, lambda found: view.culprit_report(run.about(), found, run.top))
        return _checked(code, result, check)
    collector = Collector(run.host, Request(needs_slabs=run.format in ("svg", "png")))
    results: list[Result] = []

    def look() -> Result:
        earlier = (results[-1].samples if results else ()) if run.watching else None
        results[:] = [judge(collector.look(), check, earlier)]
        return results[0]

    code = run.show(
        look, lambda found: view.report(run.about(), found, run.top), fit_height=run.watching and run.top is None
    )
    return _checked(code, results[0], check) if results else code


def _checked(code: int, result: Result, max_percent: float | None) -> int:
    """The exit code. Raises NotPermitted where --check cannot be answered."""
    if code == 0 and max_percent is not None and exceeds(result.usage, max_percent) is None:
        raise NotPermitted(
            f"whether dentries and inodes take more than {max_percent:g} % of RAM is unknown without slabinfo; "
            f"{how_to_be_allowed(ProcFS(), '', 'opskit', 'dentry', '--check', f'{max_percent:g}')}"
        )
    return code


def _drop(run: Run, level: str, sync_timeout_s: float, *, yes: bool, check: float | None) -> Result | None:
    """Say what will happen, ask, do it; None where Ctrl-C came before the drop."""
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
        return None
    return judge_drop(done, before, collect(run.host, Request()), check)


def _trace(run: Run, seconds: float, check: float | None) -> Result:
    from opskit.actions.trace_lookups import check_may_trace, trace_failed_lookups  # noqa: PLC0415  (ctypes, json)

    check_may_trace(run.host)
    before = collect(run.host, Request())
    run.progress(f"tracing failed lookups for {seconds:g} s …")
    seen = trace_failed_lookups(run.host, seconds)
    return judge_lookups(before, collect(run.host, Request()), seen, check)
