"""`opskit dentry`: who ate the memory: the dentry and inode caches, and giving them back safely."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from opskit import shell
from opskit.actions import drop_caches
from opskit.actions.drop_caches import LEVELS, NOTHING, control_file
from opskit.analysis import dentry as analysis
from opskit.commands.shared.confirm import agreed
from opskit.commands.shared.options import Duration, check_watch, common, open_host, top, watching
from opskit.commands.shared.output import PICTURES, SUFFIXES, Output, about, progress
from opskit.commands.shared.watch import old_run_watch as run_watch
from opskit.errors import NotPermitted, NotSupported, UsageError
from opskit.escape import printable
from opskit.proc.cgroup.slab import read_cgroup_slabs
from opskit.proc.files.dentry_state import parse_dentry_state
from opskit.proc.files.meminfo import parse_meminfo
from opskit.proc.files.slab_aliases import merged_names, read_aliases
from opskit.proc.files.slabinfo import parse_slabinfo
from opskit.proc.files.vmstat import parse_vmstat
from opskit.proc.fs import DENIED, GONE, ProcFS, Refused
from opskit.proc.rights import how_to_be_allowed
from opskit.quantities import decimal, size
from opskit.render.report import Block, Report
from opskit.render.views import dentry as view

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.host import Host

DEFAULT_TOP = 10
DEFAULT_SYNC_TIMEOUT_S = 30.0


class Options(NamedTuple):
    """What was asked. `top` is the number of rows of a table, None for all; `max_percent` is --check's."""

    top: int | None
    max_percent: float | None


class Look(NamedTuple):
    """One look at the machine, and what of it could not be had."""

    facts: analysis.Facts
    groups: tuple[analysis.CgroupShare, ...]
    deletes: int | None
    missing: tuple[str, ...]


class Level(click.ParamType):
    """`dentries`, `pagecache`, `all`, or the numbers 2, 1, 3 that the kernel knows them by; gives the word."""

    name = "level"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word."""
        text = str(value).lower()
        numbers = {str(number): word for word, number in LEVELS.items()}
        if text not in LEVELS and text not in numbers:
            why = " (4 would only mute the kernel's log)" if text == "4" else ""
            self.fail(f"{value!r} is no level{why}; write dentries (2), pagecache (1) or all (3)", param, ctx)
        return numbers.get(text, text)


class Percent(click.ParamType):
    """`25` or `25%`; gives a float from 0 to 100."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        number = decimal(str(value).strip().removesuffix("%").strip())
        if number is None or not 0 <= number <= 100:
            self.fail(f"{value!r} is no percentage; write a number from 0 to 100", param, ctx)
        return number


@click.command(name="dentry", help=__doc__.partition(": ")[2] if __doc__ else None)
@click.option(
    "--culprit",
    type=Duration(),
    is_flag=False,
    flag_value="5",
    metavar="[SECONDS]",
    help="Name the processes that look for absent files, tracing for SECONDS (5; root).",
)
@click.option(
    "--drop",
    type=Level(),
    is_flag=False,
    flag_value="dentries",
    metavar="[dentries|pagecache|all]",
    help="Give back dentries and inodes (or the page cache, or all) after a sync; asks first.",
)
@click.option("--yes", is_flag=True, help="With --drop: do not ask.")
@click.option(
    "--sync-timeout",
    type=Duration(),
    metavar="SECONDS",
    help="With --drop: go on without the sync after SECONDS (30).",
)
@click.option("--in-container", is_flag=True, help="With --drop: hit the whole host from within a container.")
@click.option(
    "--check",
    type=Percent(),
    metavar="PERCENT",
    help="Exit with 1 when dentries and inodes take more than that of RAM.",
)
@top
@watching
@common("table", "text", "json", "markdown", "svg", "png")
def command(
    culprit: float | None,
    drop: str | None,
    yes: bool,
    sync_timeout: float | None,
    in_container: bool,
    check: float | None,
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
    _check_together(
        drop=drop, yes=yes, sync_timeout=sync_timeout, in_container=in_container, culprit=culprit, watch=watch
    )
    out = Output.choose(format_, output, no_color, SUFFIXES | PICTURES)
    host = open_host(root, proc, watch)
    if out.format in PICTURES.values() and culprit is None and drop is None:
        _check_can_picture(host)
    options = Options(DEFAULT_TOP if top is None else top or None, check)
    if drop is not None:
        return _drop(host, out, options, DropOptions(drop, yes, sync_timeout or DEFAULT_SYNC_TIMEOUT_S, in_container))
    if culprit is not None:
        return _name_culprits(host, out, options, culprit)
    if watch:
        taken: list[Look] = []
        code = run_watch(host, out, interval, count, _watched(host, options, taken), fit_height=top is None)
        return code or _checked(taken[-1].facts, check)
    look = _look(host)
    out.emit(_report(host, options, look))
    return _checked(look.facts, check)


def _check_together(
    *, drop: str | None, yes: bool, sync_timeout: float | None, in_container: bool, culprit: float | None, watch: bool
) -> None:
    """Raise UsageError for words that do not go together."""
    for name, given in (("--yes", yes), ("--sync-timeout", sync_timeout), ("--in-container", in_container)):
        if given and drop is None:
            raise UsageError(f"{name} goes with --drop: add --drop to give caches back")
    chosen = [name for name, given in (("--drop", drop), ("--culprit", culprit), ("--watch", watch)) if given]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} exclude each other: choose one (look, find the culprit, then drop)")


def _check_can_picture(host: Host) -> None:
    """Raise NotPermitted where the slabs, which are what a picture shows, cannot be read."""
    try:
        host.fs.read("slabinfo")
    except (*GONE, DENIED) as error:
        raise NotPermitted(
            f"a picture shows the slabs, and {host.fs.path('slabinfo')} cannot be read ({error.strerror}); "
            f"{how_to_be_allowed(host.fs, '', 'opskit', 'dentry', '-o', 'FILE')}"
        ) from None


def _checked(facts: analysis.Facts, max_percent: float | None) -> int:
    """The exit code of --check. Raises NotPermitted where it cannot be told."""
    if max_percent is None:
        return 0
    over = analysis.exceeds(facts, max_percent)
    if over is None:
        raise NotPermitted(
            f"whether dentries and inodes take more than {max_percent:g} % of RAM cannot be told without slabinfo; "
            f"{how_to_be_allowed(ProcFS(), '', 'opskit', 'dentry', '--check', f'{max_percent:g}')}"
        )
    return int(over)


def _look(host: Host) -> Look:
    """Everything that can be read. Raises BadInput for what is garbled, NotSupported where there is nothing at all."""
    fs = host.fs
    missing: list[str] = []

    def load(parse: Callable[[str], Any], *parts: str) -> Any:
        try:
            return fs.load(parse, *parts)
        except GONE:
            missing.append(f"{fs.path(*parts)} is not there")
        except Refused as error:
            missing.append(f"{fs.path(*parts)} was not read: {error.strerror}")
        except DENIED:
            missing.append(f"{fs.path(*parts)} is for root only; {how_to_be_allowed(fs, '', 'opskit', 'dentry')}")
        return None

    def quiet(parse: Callable[[str], Any], *parts: str) -> Any:
        try:
            return fs.load(parse, *parts)
        except (*GONE, DENIED):
            return None

    release = quiet(str.strip, "sys", "kernel", "osrelease")
    state = load(lambda text: parse_dentry_state(text, release), "sys", "fs", "dentry-state")
    meminfo = load(parse_meminfo, "meminfo") or {}
    slabs = load(parse_slabinfo, "slabinfo")
    if state is None and slabs is None and not meminfo:
        raise NotSupported(f"nothing to tell: {'; '.join(missing)}")
    vmstat = quiet(parse_vmstat, "vmstat") or {}
    if state is not None and state.negative is None:
        missing.append("this kernel does not count negative dentries (Linux 5.0 and later do)")
    page_bytes = host.page_bytes if host.is_own else analysis.page_bytes(meminfo, vmstat, host.page_bytes)
    # With --proc alone, /sys and the cgroups here belong to another machine than the tree.
    whole_tree = bool(fs.root) or host.is_own
    cgroups = tuple(read_cgroup_slabs(fs)) if whole_tree else ()
    caches = None
    if slabs is not None:
        aliases = read_aliases(fs) if whole_tree else {}
        caches = analysis.classify(slabs, merged_names(aliases, [slab.name for slab in slabs]), page_bytes)
        if not any(cache.kind == "dentry" for cache in caches):
            missing.append("slabinfo lists no dentry cache, and /sys/kernel/slab does not say which one holds it")
    if cgroups and all(group.slab_reclaimable_bytes is None and not group.caches for group in cgroups):
        missing.append(
            "memory cgroups are v1 here, and this kernel does not tell their slabs: "
            "kernel memory is an upper bound, with stacks and page tables in it"
        )
    facts = analysis.Facts(
        state,
        caches,
        meminfo,
        cgroups,
        host.sysctl("vm", "vfs_cache_pressure"),
        vmstat.get("drop_slab"),
        vmstat.get("drop_pagecache"),
    )
    groups = tuple(analysis.cgroup_shares(cgroups, page_bytes))
    return Look(facts, groups, host.sysctl("fs", "dentry-negative"), tuple(missing))


def _report(host: Host, options: Options, look: Look, samples: Sequence[analysis.Sample] = ()) -> Report:
    facts = look.facts
    found = analysis.findings(facts, look.groups, options.max_percent)
    growth = analysis.growth_per_min(samples) if samples else {}
    cache_growth = analysis.cache_growth_per_min(samples) if samples else None
    said = [finding.fix for finding in found if finding.fix]
    ways = [
        way
        for way in analysis.ways(facts, look.groups, deletes=look.deletes)
        if not any(way.endswith(fix) for fix in said)
    ]
    return Report(
        about(host),
        verdict=analysis.verdict(facts),
        blocks=_blocks(options, look, growth, cache_growth),
        summary=[view.settings_line(facts), *map(view.finding_line, found)],
        footer=[*ways, *look.missing],
        chart=lambda: view.chart(facts, samples, options.top),
        text=(lambda: view.watch_lines(samples, growth)) if samples else None,
        data=lambda: {
            **view.facts_object(facts, look.groups),
            "findings": [finding.to_object() for finding in found],
            "ways": ways,
            "growth_per_min": growth or None,
            "samples": [view.sample_object(one) for one in samples] or None,
        },
    )


def _blocks(
    options: Options, look: Look, growth: dict[str, float | None], cache_growth: dict[str, float | None] | None
) -> list[Block[Any]]:
    facts, top = look.facts, options.top
    rows = view.figures(facts, growth)
    blocks: list[Block[Any]] = [Block(view.figure_columns(growing=bool(growth)), rows, len(rows))]
    if facts.caches is not None:
        held = [cache for cache in facts.caches if cache.size_bytes]
        owned = analysis.inodes_by_owner(facts.caches)
        blocks.append(Block(view.cache_columns(cache_growth), held[:top], len(held), "largest slabs"))
        if not growth:  # a live table is to fit a screen
            blocks.append(Block(view.OWNER_COLUMNS, owned[:top], len(owned), "inode caches by file system"))
    if look.groups and not growth:
        blocks.append(view.cgroups_block(look.groups, top))
    return blocks


def _watched(host: Host, options: Options, taken: list[Look]) -> Callable[[], Report]:
    """The next look, told together with all looks before it; the last one stays in `taken`."""
    samples: list[analysis.Sample] = []
    begun = host.monotonic()

    def take() -> Report:
        look = _look(host)
        taken[:] = [look]
        samples.append(analysis.sample(host.monotonic() - begun, look.facts))
        return _report(host, options, look, samples)

    return take


class DropOptions(NamedTuple):
    """What to drop, and how."""

    level: str
    yes: bool
    sync_timeout_s: float
    in_container: bool


class Dropped(NamedTuple):
    """What was done. `synced`: False where sync did not end in time; what is dirty then stays cached."""

    synced: bool
    sync_s: float
    drop_s: float
    interrupted: bool


_DROPS = {
    "dentries": "dentries and inodes that nothing holds",
    "pagecache": "page cache that is not dirty",
    "all": "dentries and inodes that nothing holds, and page cache that is not dirty",
}


def _drop(host: Host, out: Output, options: Options, wanted: DropOptions) -> int:
    """Say what will happen, ask, do it, show before and after."""
    drop_caches.check_may_drop(host, wanted.level, in_container=wanted.in_container)
    before = _look(host)
    plan = _plan(host, before.facts, wanted)
    if not wanted.yes:
        for line in plan:
            click.echo(printable(line), err=True)
    if not agreed(wanted.yes, "Go ahead?"):
        do_it = shell.command("opskit", "dentry", "--drop", wanted.level, "--yes")
        raise UsageError(f"{NOTHING[:-1]}; add --yes to do it: {do_it}")
    progress("syncing and dropping …")
    begun = host.monotonic()
    try:
        synced = drop_caches.sync(host, wanted.sync_timeout_s)
    except KeyboardInterrupt:
        click.echo(f"opskit: interrupted while it waited for sync. {NOTHING}", err=True)
        return 130
    sync_done = host.monotonic()
    interrupted = False
    try:
        drop_caches.drop(host, wanted.level)
    except KeyboardInterrupt:
        interrupted = True
    done = Dropped(synced, sync_done - begun, host.monotonic() - sync_done, interrupted)
    after = _look(host)
    out.emit(_drop_report(host, wanted, before, after, done))
    return 130 if interrupted else _checked(after.facts, options.max_percent)


def _plan(host: Host, facts: analysis.Facts, wanted: DropOptions) -> list[str]:
    number = LEVELS[wanted.level]
    reclaimable = size(facts.reclaimable_bytes)
    lines = [
        f"This will sync (waiting {wanted.sync_timeout_s:g} s at most), then write {number} to {control_file(host)}: "
        f"frees {_DROPS[wanted.level]}, on the whole host. Reclaimable slab is {reclaimable} now.",
        "What is looked up or read next comes from disk again; nothing is lost.",
    ]
    return lines + _little_to_win(wanted, facts)


def _little_to_win(wanted: DropOptions, facts: analysis.Facts) -> list[str]:
    sentence = None if wanted.level == "pagecache" else analysis.little_to_win(facts)
    return [] if sentence is None else [sentence]


def _drop_report(host: Host, wanted: DropOptions, before: Look, after: Look, done: Dropped) -> Report:
    rows = analysis.changes(before.facts, after.facts)
    freed = analysis.freed_bytes(wanted.level, before.facts, after.facts)
    wrote = f"(wrote {LEVELS[wanted.level]} to {control_file(host)} after {done.sync_s:.2f} s of sync)"
    verdict = f"Freed {_freed(freed)} in {done.drop_s:.2f} s {wrote}."
    if done.interrupted:
        verdict = f"Interrupted: the kernel has dropped a part of it, {_freed(freed)} in {done.drop_s:.2f} s {wrote}."
    footer = [*after.missing] if any(row.by is None for row in rows) else []
    if not done.synced:
        footer.insert(
            0,
            f"sync did not end within {wanted.sync_timeout_s:g} s (a hung mount?): it was left behind, and what is dirty "
            "stayed cached; look for it with: grep -l 'D (disk sleep)' /proc/[0-9]*/status",
        )
    return Report(
        about(host),
        verdict=[verdict, *_little_to_win(wanted, before.facts)],
        blocks=[Block(view.CHANGE_COLUMNS, rows, len(rows))],
        footer=footer,
        chart=lambda: view.change_chart(rows),
        data=lambda: {
            **view.facts_object(after.facts, after.groups),
            "drop": {
                "level": wanted.level,
                "written": LEVELS[wanted.level],
                "synced": done.synced,
                "sync_s": round(done.sync_s, 3),
                "drop_s": round(done.drop_s, 3),
                "interrupted": done.interrupted,
                "freed_bytes": freed,
                "before": {row.name: row.before for row in rows},
                "after": {row.name: row.after for row in rows},
            },
        },
    )


def _freed(amount: int | None) -> str:
    if amount is None:
        return "an unknown amount"
    return size(amount) if amount >= 0 else f"nothing (the caches grew by {size(-amount)} meanwhile)"


def _name_culprits(host: Host, out: Output, options: Options, seconds: float) -> int:
    """Trace for some seconds; who looks for absent files, on top of the look."""
    from opskit.actions.trace_lookups import check_may_trace, trace_failed_lookups

    check_may_trace(host)
    before = _look(host)
    progress(f"tracing failed lookups for {seconds:g} s …")
    seen = trace_failed_lookups(host, seconds)
    look = _look(host)
    rows = [
        view.LookerRow(
            looker.pid,
            looker.command,
            None if looker.uid is None else host.user_name(looker.uid),
            looker.unit,
            looker.processes,
            looker.lookups,
            looker.lookups / max(seen.seconds, 0.001),
            looker.lookups / max(seen.total, 1),
            looker.calls,
            looker.paths,
            looker.ended,
        )
        for looker in seen.lookers
    ]
    negative_before, negative_after = before.facts.negative, look.facts.negative
    grown = None if negative_before is None or negative_after is None else negative_after - negative_before
    report = _report(host, options, look)
    footer = list(look.missing)
    if not seen.complete:
        footer.append(
            f"{seen.counted:,} of {seen.total:,} failed lookups were told apart, the others are shared out alike: "
            "counts are estimates, the total is the kernel's own"
        )
    verdict = view.culprit_lines(rows, seen.seconds, seen.total, grown)
    culprits: Block[Any] = Block(view.LOOKER_COLUMNS, rows[: options.top], len(rows), "who looks for absent files")
    out.emit(
        Report(
            report.about,
            verdict=[*verdict, *report.verdict],
            blocks=[culprits, *report.blocks[:1]],
            summary=report.summary,
            footer=footer,
            chart=lambda: view.looker_chart(rows[: options.top]),
            data=lambda: {
                **report.data(),
                "culprits": [view.looker_object(row) for row in rows],
                "culprit_s": round(seen.seconds, 3),
                "failed_lookups": seen.total,
                "failed_lookups_counted": seen.counted,
                "negative_growth": grown,
            },
        )
    )
    return 130 if seen.interrupted else _checked(look.facts, options.max_percent)
