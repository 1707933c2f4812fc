"""`opskit dentry`: who ate the memory: the dentry and inode caches, and giving them back safely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from opskit.analysis import dentry as analysis
from opskit.commands.options import check_watch, common, open_host, top, watching
from opskit.commands.output import Output, about
from opskit.commands.watch import run_watch
from opskit.errors import NotPermitted, NotSupported
from opskit.proc.cgroupslab import read_cgroup_slabs
from opskit.proc.dentry_state import parse_dentry_state
from opskit.proc.fs import DENIED, GONE
from opskit.proc.meminfo import parse_meminfo
from opskit.proc.slabalias import merged_names, read_aliases
from opskit.proc.slabinfo import parse_slabinfo
from opskit.proc.vmstat import parse_vmstat
from opskit.render import dentry as view
from opskit.render.report import Block, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.host import Host

DEFAULT_TOP = 10


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked. `top` is the number of rows of a table, None for all; `max_percent` is --check's."""

    top: int | None
    max_percent: float | None


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the machine, and what of it could not be had."""

    facts: analysis.Facts
    groups: tuple[analysis.CgroupShare, ...]
    deletes: int | None
    missing: tuple[str, ...]


class Percent(click.ParamType):  # type: ignore[type-arg]
    """`25` or `25%`; gives a float from 0 to 100."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        text = str(value).strip().removesuffix("%").strip()
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 <= number <= 100:
            self.fail(f"{value!r} is no percentage; write a number from 0 to 100", param, ctx)
        return number


@click.command(name="dentry", help=__doc__.partition(": ")[2] if __doc__ else None)
@click.option(
    "--check",
    type=Percent(),
    metavar="PERCENT",
    help="Exit with 1 when dentries and inodes take more than that of RAM.",
)
@top
@watching
@common("table", "text", "json", "markdown")
def command(
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
    out = Output.choose(format_, output, no_color)
    host = open_host(root, proc)
    options = Options(DEFAULT_TOP if top is None else top or None, check)
    if watch:
        taken: list[Look] = []
        code = run_watch(host, out, interval, count, _watched(host, options, taken), fit_height=top is None)
        return code or _checked(taken[-1].facts, check)
    look = _look(host)
    out.emit(_report(host, options, look))
    return _checked(look.facts, check)


def _checked(facts: analysis.Facts, max_percent: float | None) -> int:
    """The exit code of --check. Raises NotPermitted where it cannot be told."""
    if max_percent is None:
        return 0
    over = analysis.exceeds(facts, max_percent)
    if over is None:
        raise NotPermitted(
            f"whether dentries and inodes take more than {max_percent:g} % of RAM cannot be told without slabinfo; "
            f"run as root: sudo opskit dentry --check {max_percent:g}"
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
        except DENIED:
            missing.append(f"{fs.path(*parts)} is for root only: sudo opskit dentry shows what it says")
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
    ways = analysis.gentler_ways(facts, look.groups, deletes=look.deletes)
    return Report(
        about(host),
        verdict=analysis.verdict(facts),
        blocks=_blocks(options, look, growth, cache_growth),
        summary=[view.settings_line(facts), *map(view.finding_line, found)],
        footer=[*ways, *look.missing],
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
        blocks.append(Block(view.OWNER_COLUMNS, owned[:top], len(owned), "inode caches by file system"))
    if look.groups:
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
