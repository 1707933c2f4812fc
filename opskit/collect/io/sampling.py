"""Looks at the most active threads of a process, and at the positions of its files, until a window ends."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from opskit.collect.io.counters import changes, read_counters
from opskit.collect.io.facts import Step
from opskit.collect.windows import uneven_step
from opskit.proc.files.io import parse_io

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from opskit.collect.io.counters import Change, Reading
    from opskit.collect.io.facts import Rates
    from opskit.collect.io.looks import Looks
    from opskit.collect.io.positions import Positions
    from opskit.host import Host
    from opskit.proc.files.io import ProcIo

_MOST_HOT, _MOST_STALLED = 16, 100  # threads
_STALLED_HZ = 1.5
_MOST_STEPS = 128  # the last ones
_LEAST_CALLS, _LEAST_BYTES, _PAGE = 50.0, 1e6, 4096.0  # a second, of a thread that is looked at
_FIRST_S, _FIRST_SHARE, _AGAIN_S = 0.2, 0.25, 1.0  # when the most active threads are chosen
_HZ, _STEPS_HZ = 100.0, 16.0
_LOOK_COST, _CHOOSE_COST = 0.025, 0.012  # shares of a CPU
_MOST_IDLE, _MOST_IDLE_WATCHED = 4096, 128  # threads whose state is read at the begin of a window


def activity(rates: Rates) -> float:
    """How much a thread does: 1 is enough to look at it."""
    moved = rates.read_bytes + rates.written_bytes
    stored = rates.disk_read_bytes + rates.disk_written_bytes + rates.cancelled_bytes
    return (rates.reads + rates.writes) / _LEAST_CALLS + moved / _LEAST_BYTES + stored / _PAGE


class Sampler:
    """Samples a process in one window after the other. The threads that were chosen last are looked at first in the next one."""

    def __init__(self, host: Host, pid: int, looks: Looks, positions: Positions, *, watch: bool) -> None:
        self._host, self._pid, self._looks, self._positions = host, pid, looks, positions
        self._most_idle = _MOST_IDLE_WATCHED if watch else _MOST_IDLE
        self._hot: list[int] = []
        self._others: list[int] = []  # in state D beside those
        self.stalled_total = 0  # threads that waited for storage at the begin of the window
        self._last: dict[int, ProcIo] = {}
        self._next_idle = 0
        self._was_chosen = False  # in the window before

    def run(self, first: Reading, window_s: float, end_s: float) -> tuple[Step, ...]:
        """Look until then. `first`: the counters at the begin."""
        host = self._host
        steps: deque[Step] = deque(maxlen=_MOST_STEPS)
        self._begin(first)
        now_s = host.monotonic()
        choose_s, step_s, others_s = now_s + min(_FIRST_S, _FIRST_SHARE * window_s), end_s, now_s
        if self._was_chosen:
            self._begin_step()
            choose_s, step_s = now_s + _AGAIN_S, now_s + 1 / _STEPS_HZ
        chosen, dice = first, 1
        while now_s < end_s:
            begun_s = host.own_cpu_s()
            if now_s >= choose_s:
                if step_s < end_s:
                    steps.append(self._end_step())
                now = read_counters(host, self._pid)
                self._positions.choose()
                self.choose(changes(chosen, now))
                chosen = now
                self._begin_step()
                choose_s = now_s + max(_AGAIN_S, (host.own_cpu_s() - begun_s) / _CHOOSE_COST)
                step_s, begun_s = now_s + 1 / _STEPS_HZ, host.own_cpu_s()
            elif now_s >= step_s:
                steps.append(self._end_step())
                step_s = now_s + 1 / _STEPS_HZ
            self._looks.look(self._hot)
            gap_s, dice = uneven_step(max(1 / _HZ, (host.own_cpu_s() - begun_s) / _LOOK_COST), dice)
            due_s = now_s + gap_s
            if now_s >= others_s:
                self._looks.look(self._others)
                others_s = now_s + 1 / _STALLED_HZ
            host.step(max(0.0, min(due_s, choose_s, end_s) - host.monotonic()))
            now_s = host.monotonic()
        if step_s < end_s:
            steps.append(self._end_step())
        return tuple(steps)

    def _begin(self, first: Reading) -> None:
        """Choose those that were chosen in the last window, and those that are in state D now."""
        self._looks.begin()
        stalled = self._looks.stalled(self._idle(first))
        self.stalled_total = len(stalled)
        every = [tid for tid in dict.fromkeys([*self._hot, *stalled, *self._others]) if tid in first.threads]
        self._hot, self._others = every[:_MOST_HOT], every[_MOST_HOT : _MOST_HOT + _MOST_STALLED]

    def _idle(self, first: Reading) -> list[int]:
        """The threads whose state is read: all; of thousands, or in a watch, some in each window."""
        tids = [*first.threads]
        if len(tids) > self._most_idle:
            begin = self._next_idle % len(tids)
            self._next_idle = begin + self._most_idle
            tids = [*tids[begin:], *tids[:begin]][: self._most_idle]
        return tids

    def choose(self, moved: Mapping[int, Change]) -> None:
        """Choose the threads that did the most, and those that were in state D: for the rest of this window, or for the next one."""
        active = {tid: activity(change.rates) for tid, change in moved.items()}
        busy = sorted((tid for tid, does in active.items() if does >= 1), key=lambda tid: -active[tid])
        tracks = self._looks.tracks
        stalled = [tid for tid in (*self._hot, *self._others) if tid in tracks and tracks[tid].in_d]
        first = stalled[: max(_MOST_HOT // 2, _MOST_HOT - len(busy))]
        self._hot = list(dict.fromkeys([*first, *busy]))[:_MOST_HOT]
        hot = set(self._hot)
        self._others = [tid for tid in stalled if tid not in hot][:_MOST_STALLED]
        self._was_chosen = True

    def _begin_step(self) -> None:
        self._last = self._read(self._hot)
        self._positions.look()

    def _end_step(self) -> Step:
        now = self._read(self._last)
        moved = self._positions.look()
        added = {tid: io.since(self._last[tid]) for tid, io in now.items()}
        self._last = now
        read = {tid: io.read_bytes for tid, io in added.items()}
        return Step(read, {tid: io.written_bytes for tid, io in added.items()}, moved)

    def _read(self, tids: Iterable[int]) -> dict[int, ProcIo]:
        found = {tid: self._host.fs.maybe(parse_io, self._pid, "task", tid, "io") for tid in tids}
        return {tid: io for tid, io in found.items() if io is not None}
