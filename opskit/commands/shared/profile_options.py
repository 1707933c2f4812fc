"""The options of `opskit jpmp` and `opskit profile`, and which of them exclude each other."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from opskit.commands.shared.options import SAMPLING, SHOW, Duration, Number, Regex, option
from opskit.errors import UsageError
from opskit.jvm.dumps.thread_dump import STATES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

sampling, show = partial(option, group=SAMPLING), partial(option, group=SHOW)
locks, picture, cpu = (
    partial(option, group="Locks"),
    partial(option, group="Pictures"),
    partial(option, group="CPU profile"),
)

SAMPLERS = ("auto", "unwind", "dumps", "asprof", "perf-map")
EVENTS = ("ctimer", "cpu", "wall", "alloc", "lock")
EXCLUSIVE = [
    ("by_thread", "by_pool"), ("synchronizers", "virtual"), ("virtual", "on_cpu"), ("virtual", "wall"), ("virtual", "offcpu"),
    ("on_cpu", "wall"), ("on_cpu", "offcpu"), ("wall", "offcpu"),
    ("locks", "wall"), ("locks", "offcpu"), ("locks", "watch"),
]  # fmt: skip
NEEDS = {"synchronizers": "locks", "yes": "synchronizers"}
LIVE_ONLY = (
    "samples", "interval_s", "duration", "max_stop", "timeout", "save", "synchronizers", "virtual", "wall", "offcpu", "watch",
    "hz", "sampler", "asprof", "event",
)  # fmt: skip
# Options that ask for thread dumps, and what they say about them.
_OF_DUMPS = {
    "save": "--save keeps thread dumps", "state": "--state selects threads by their state in a thread dump",
    "locks": "--locks reads thread dumps", "virtual": "--virtual reads thread dumps",
    "synchronizers": "--synchronizers reads thread dumps",
    "wall": "--wall weighs thread dumps (async-profiler: --event wall)", "offcpu": "--offcpu weighs thread dumps",
}  # fmt: skip

OPTIONS: Sequence[Callable[[Any], Any]] = (
    sampling("-c", "--count", "samples", type=click.IntRange(min=1), metavar="COUNT",
             help="Take COUNT samples (20); with -w: stop after COUNT windows."),
    sampling("-i", "--interval", "interval_s", type=Duration(zero=True),
             help="Time between samples (0.25 s); with -w: the length of a window."),
    sampling("--duration", type=Duration(), help="Sample for so long, instead of COUNT times INTERVAL."),
    sampling("-w", "--watch", is_flag=True, help="With --on-cpu: show one window after the other until Ctrl-C."),
    sampling("--max-stop", type=Number(min=0, min_open=True, max=100), metavar="PERCENT",
             help="Stretch the default interval so that sampling pauses the JVM for at most this share of the time (1 %)."),
    sampling("--timeout", type=Duration(), help="Wait at most this long for a dump (10 s; with --virtual 60 s)."),
    sampling("--virtual", is_flag=True, help="Include every virtual thread (JDK 21 and later; a busy JDK 25 can crash)."),
    sampling("--save", metavar="DIR", help="Keep the raw dumps in DIR, one file per sample."),
    cpu("--on-cpu", is_flag=True, help="Profile what runs on the CPUs: weigh stacks by CPU time (ms)."),
    cpu("--sampler", type=click.Choice(SAMPLERS), help="How to sample; auto: unwind, or dumps where that is impossible."),
    cpu("-F", "--frequency", "hz", type=Number(min=1, max=10_000), metavar="HZ", help="Samples per second of CPU time (99)."),
    cpu("--asprof", metavar="PATH", help="The library of async-profiler, or its directory (also: OPSKIT_ASPROF)."),
    cpu("--event", type=click.Choice(EVENTS), help="What async-profiler samples (ctimer)."),
    cpu("--wall", is_flag=True, help="Weigh stacks by elapsed time: thread dumps by samples."),
    cpu("--offcpu", is_flag=True, help="Weigh stacks by the time in which threads do not run (ms)."),
    show("--state", multiple=True, type=click.Choice(STATES, case_sensitive=False), help="Show this state; repeatable."),
    show("--by-thread", is_flag=True, help="Show the thread name as the root frame."),
    show("--by-pool", is_flag=True, help="The same, with pool-1-thread-17 shown as pool-1-thread-*."),
    show("--include", multiple=True, type=Regex(), metavar="RE", help="Show only stacks with a matching frame."),
    show("--exclude", multiple=True, type=Regex(), metavar="RE", help="Leave out stacks with a matching frame."),
    show("--idle/--no-idle", default=None, help="Show or hide threads that wait for work (hidden in tables)."),
    show("--depth", type=click.IntRange(min=1), metavar="N", help="Keep the N frames next to the leaf."),
    show("--full-names", is_flag=True, help="Keep full class, lambda and module names."),
    show("--lines", is_flag=True, help="Show the file and line of each frame."),
    show("-v", "--verbose", is_flag=True, help="Show how the pauses were measured, late samples, the interval; which perf events were opened."),
    locks("--locks", is_flag=True, help="Show deadlocks, contended locks, their owners and waiters."),
    locks("--synchronizers", is_flag=True, help="With --locks: find owners of java.util.concurrent locks (heap walk)."),
    locks("--yes", is_flag=True, help="With --synchronizers: do not ask for confirmation."),
    picture("--inverted", is_flag=True, help="Draw an icicle: the root on top (svg)."),
    picture("--reverse", is_flag=True, help="Merge stacks from the leaves: the callers of hot methods."),
    picture("--diff", metavar="BEFORE", help="Show what changed since the profile or dumps in this file."),
    picture("--title", metavar="TEXT", help="Set the title of the picture."),
    picture("--width", type=click.IntRange(200, 20_000), metavar="PX", help="Fix the width; default: the window's width."),
)  # fmt: skip


def check(given: Mapping[str, Any], *, is_watch: bool) -> None:
    """Raise UsageError for options of samplers that exclude each other. `given`: of a live process."""
    sampler = given["sampler"]
    for name, shown in (("samples", "-c/--count"), ("interval_s", "-i/--interval")):
        if given["duration"] is not None and given[name] is not None and not (is_watch and name == "samples"):
            raise UsageError(f"--duration and {shown} exclude each other: choose one")
    if sampler not in (None, "dumps") and not (given["on_cpu"] or sampler == "asprof"):
        raise UsageError(f"--sampler {sampler} goes with --on-cpu: add --on-cpu")
    for name in ("asprof", "event"):
        if given[name] is not None and sampler != "asprof":
            raise UsageError(f"--{name} goes with --sampler asprof: add --sampler asprof")
    if is_watch and not given["on_cpu"]:
        raise UsageError("-w/--watch goes with --on-cpu: add --on-cpu")
    asks = asks_for_dumps(given)
    if asks and sampler not in (None, "auto", "dumps"):
        raise UsageError(f"{asks}: --sampler {sampler} takes none; leave one of them out")
    if given["hz"] is not None:
        if not (given["on_cpu"] or sampler == "asprof"):
            raise UsageError("-F/--frequency goes with --on-cpu: add --on-cpu")
        if sampler == "dumps":
            raise UsageError("-F/--frequency and --sampler dumps exclude each other: -i sets the time between dumps")
        if asks:
            raise UsageError(f"{asks}: -F/--frequency has no effect on them; leave one of them out")


def asks_for_dumps(given: Mapping[str, Any]) -> str | None:
    """Why the options need thread dumps; None where they don't."""
    return next((why for name, why in _OF_DUMPS.items() if given[name] not in (None, False, ())), None)
