"""Processes that keep gaining pipes under a watch. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding
from opskit.analysis.slope import is_steady, slope
from opskit.proc.files.boot_time import started_s
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.collect.pipes import Sample


class Gain(NamedTuple):
    """A process that has more pipes than when it was first seen; `started_s` from the epoch, None: unknown."""

    pid: int
    start_ticks: int
    started_s: float | None
    command: str
    pipes_first: int
    pipes_last: int
    pipes_per_min: float
    is_steady: bool


def gains(samples: Sequence[Sample], boot_s: int | None, clock_ticks: int) -> list[Gain]:
    """The processes that gained pipes over the samples, fastest first. `boot_s` from the epoch; `clock_ticks` in a second."""
    tracks: dict[tuple[int, int], list[tuple[float, int]]] = {}
    commands: dict[tuple[int, int], str] = {}
    for sample in samples:
        commands.update(sample.commands)
        for who, count in sample.pipes.items():
            tracks.setdefault(who, []).append((sample.at_s, count))
    found = []
    for (pid, start), track in tracks.items():
        per_s = slope(track)
        if per_s is not None and per_s > 0 and track[-1][1] > track[0][1]:
            since_s = started_s(boot_s, start, clock_ticks)
            first, last = track[0][1], track[-1][1]
            found.append(Gain(pid, start, since_s, commands[pid, start], first, last, per_s * 60, is_steady(track)))
    return sorted(found, key=lambda gain: (-gain.pipes_per_min, gain.pid))


def keeps_growing(gain: Gain, samples: Sequence[Sample]) -> Finding:
    """The finding about a process with a steady gain."""
    return Finding(
        "pipes-keep-growing",
        "warning",
        Entity("process", gain.pid, gain.start_ticks),
        f"{gain.command} keeps gaining pipes: {gain.pipes_first} to {gain.pipes_last}, {gain.pipes_per_min:+.1f} a minute",
        f"{len(samples)} samples of /proc/{gain.pid}/fd",
        next=shell.command("opskit", "pipes", gain.pid, "--ends"),
        window_s=round(samples[-1].at_s - samples[0].at_s, 3),
    )
