"""Which process to sample, and for how long: by words, options and the command's default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from opskit.collect.jpmp.collect import DEFAULT_INTERVAL_S, DumpKind, Schedule, heap_to_walk, heap_walk_s, read_words
from opskit.collect.replayed import refuse_watch
from opskit.errors import UsageError
from opskit.escape import printable
from opskit.render.views.jpmp.sentences import heap_walk_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.collect.jpmp.collect import Request
    from opskit.commands.shared.run import Run
    from opskit.host import Host

_LONG_PAUSE_S = 1.0


def what_to_sample(
    run: Run, words: tuple[str, ...], given: Mapping[str, Any], ask: Request, default_s: float | None
) -> tuple[Request, float]:
    """What to sample, and for how many seconds. Raises UsageError, and asks for confirmation of a walk of the heap."""
    kind: DumpKind = "virtual" if given["virtual"] else "synchronizers" if given["synchronizers"] else "threads"
    samples, interval_s, duration_s = given["samples"], given["interval_s"], given["duration"]
    if run.watching:  # as in other commands: -c counts windows, -i is their length
        run.count, duration_s, samples, interval_s = samples, duration_s or interval_s, None, None
    is_planned = len(words) > 1 or samples is not None or interval_s is not None
    if duration_s is None and default_s is not None and kind == "threads" and not is_planned:
        duration_s = default_s
    elif duration_s is not None and len(words) > 1:
        option = "-i/--interval" if given["duration"] is None else "--duration"
        raise UsageError(f"{option} excludes SAMPLES and INTERVAL: choose one")
    pid, schedule = read_words(
        run.host, words, kind, samples, interval_s, given["max_stop"], any_process=default_s is not None
    )
    if duration_s is not None:
        schedule = Schedule(max(1, round(duration_s / DEFAULT_INTERVAL_S)), None, given["max_stop"])
    seconds = schedule.samples * schedule.planned_s if duration_s is None else duration_s
    if run.watching:
        refuse_watch(run.host, pid, "threads")
    if kind == "synchronizers" and not run.host.is_recorded:
        _confirm_heap_walk(run.host, pid, schedule.samples, yes=given["yes"])
    return ask._replace(pid=pid, schedule=schedule, kind=kind, timeout_s=given["timeout"]), seconds


def _confirm_heap_walk(host: Host, pid: int, samples: int, *, yes: bool) -> None:
    """Raise UsageError unless the pause is short or the user agrees to it."""
    from opskit.commands.shared.confirm import agreed

    heap = heap_to_walk(host, pid)
    pause_s = None if heap.bytes is None else heap_walk_s(heap.bytes, samples)
    click.echo(f"opskit: {printable(heap_walk_line(pid, heap, pause_s))}", err=True)
    is_short = pause_s is not None and pause_s <= _LONG_PAUSE_S
    if not (is_short or agreed(yes, f"Pause the JVM {pid} for that long?")):
        raise UsageError("nothing was sent to the JVM; add --yes to go on, or leave --synchronizers out")
