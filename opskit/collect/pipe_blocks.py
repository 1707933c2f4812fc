"""Read which threads are blocked on pipes and FIFOs for a second: in a write, a read or an open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.fifo_opens import Opening, blocked_opens
from opskit.proc.lineage import Past, read_past
from opskit.proc.pipe_scan import only
from opskit.proc.pipe_waits import Sides, Wait, blocked_readers, blocked_writers, sides_of, waits_around
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opskit.host import Host
    from opskit.proc.pipe_fill import Fill
    from opskit.proc.pipe_scan import Holder

# A thread sleeps for a moment on any busy pipe. It counts as blocked when it still does after the first wait; its other side
# counts as not moving when nothing was written or taken out until the end of the second.
_SETTLE_S = (0.1, 0.9)


class Blocks(NamedTuple):
    """The threads that were blocked all the time: `writing` to pipes, `reading` from empty ones, `opening` FIFOs.

    `drained`: pipes from which something was read meanwhile. `waits`: what each thread did all the time, of the blocked, their
    other sides and those that they wait for; None: it was active. `pasts` of the writers of empty pipes.
    """

    writing: Sequence[Wait] = ()
    reading: Sequence[Wait] = ()
    opening: Sequence[Opening] = ()
    drained: frozenset[bytes] = frozenset()
    waits: Mapping[int, Sequence[Wait] | None] = {}
    pasts: Mapping[int, Past] = {}


class Watcher:
    """One look at the holders of some pipes; `pids`: processes whose open() calls are looked at."""

    def __init__(
        self, host: Host, holders: Sequence[Holder], fills: Mapping[bytes, Fill], fifos: Mapping[bytes, bytes],
        pids: Sequence[int], settle_s: Sequence[float] = _SETTLE_S,
    ) -> None:  # fmt: skip
        """`settle_s`: the two waits."""
        self.host, self.holders, self.fills, self.fifos, self.pids = host, holders, fills, fifos, pids
        self.settle_s = settle_s

    def look(self, empty: set[bytes]) -> Blocks:
        """Wait, by default for a second, where some thread may be stuck. `empty`: pipes whose readers are looked at, too."""
        fs = self.host.fs
        writing = blocked_writers(fs, self.holders, self.fills, self.fifos)
        sides = sides_of(self.holders if empty or writing else ())
        reading, pasts = self._suspects(empty, sides) if empty else ([], {})
        opening = blocked_opens(fs, self.pids)
        drained: set[bytes] = set()
        before: Mapping[int, Sequence[Wait]] = {}
        waits: Mapping[int, Sequence[Wait]] = {}
        settle_s = self.settle_s
        if not self.host.can_look_after(settle_s[0]):  # the samples of a capture are too far apart for two waits
            settle_s = (sum(settle_s),)
            waits = waits_around(fs, sides, [*writing, *reading], self.fifos)
        for number, wait_s in enumerate(settle_s):
            keys = {wait.on for wait in writing}
            if not (keys - drained or reading or opening):
                break
            if number and not self.host.can_look_after(wait_s):
                break
            self.host.sleep(wait_s)
            now = blocked_writers(fs, _only(self.holders, keys), self.fills, self.fifos)
            # A writer sleeps anew when a reader has taken something out of its full pipe.
            drained |= {wait.on for wait in writing if wait not in now}
            known = {wait[:4] for wait in writing}
            writing = [wait for wait in now if wait[:4] in known]
            # A reader that slept anew got data.
            known_reads = blocked_readers(fs, _only(self.holders, {wait.on for wait in reading}), self.fifos)
            reading = [wait for wait in reading if wait in known_reads]
            still = blocked_opens(fs, {each.pid for each in opening})
            opening = [each for each in opening if each in still]
            before, waits = waits, waits_around(fs, sides, [*writing, *reading], self.fifos)
        asleep = {pid: each if each == before.get(pid) else None for pid, each in waits.items()}
        return Blocks(writing, reading, opening, frozenset(drained), asleep, pasts)

    def _suspects(self, keys: set[bytes], sides: Sides) -> tuple[list[Wait], dict[int, Past]]:
        """The blocked readers whose pipes nobody seems to write to: their writers sleep, or outlived who started them."""
        fs = self.host.fs
        reading = blocked_readers(fs, _only(self.holders, keys), self.fifos)
        waits = waits_around(fs, sides, reading, self.fifos)
        writers = {key: sides.writers.get(key, set()) for wait in reading for key in (wait.on, *wait.also)}
        pasts = {pid: read_past(fs, pid) for pid in {wait.pid for wait in reading}.union(*writers.values())}

        def may_be_stuck(wait: Wait) -> bool:
            pipes = [writers[key] for key in (wait.on, *wait.also)]
            others = set().union(*pipes) - {wait.pid}
            return all(pipes) and all(pasts[pid].is_adopted or _is_asleep(waits[pid]) for pid in others)

        return [wait for wait in reading if may_be_stuck(wait)], pasts


def _is_asleep(waits: Sequence[Wait]) -> bool:
    """Whether nothing outside wakes any of these threads: they sleep for a timer, a lock or a signal, or need each other."""
    return all(wait.call == "sleep" or wait.needs for wait in waits)


def _only(holders: Iterable[Holder], keys: set[bytes]) -> list[Holder]:
    return [only(holder, keys) for holder in holders if not keys.isdisjoint(holder.counts)]
