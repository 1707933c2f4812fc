"""Look at threads that switch often, to see which two of them wake each other in turn."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING

from opskit.collect.cswitch.facts import Handoff
from opskit.proc.files.stat import parse_placement
from opskit.proc.files.syscall import parse_syscall
from opskit.proc.fs import DENIED, GONE, optional
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.collect.cswitch.sweep import Moved
    from opskit.host import Host

_OFTEN = 500  # time slices a second
_MOST_THREADS, _UNEQUAL = 8, 0.35  # of the larger rate; what is measured over the whole window decides
_FUTEX, _AWAKE = "futex", "running"


class _Look(NamedTuple):
    """`call`: the name of the one that it slept in; `futex`: the address that it waited for."""

    is_asleep: bool
    call: str | None = None
    futex: int | None = None


class Handoffs:
    """Samples the threads of a process that switch often."""

    def __init__(self, host: Host, moved: Iterable[Moved]) -> None:
        """`moved`: what its threads did shortly before."""
        self._host = host
        often = sorted((one for one in moved if (one.slices or 0) >= _OFTEN), key=lambda one: -(one.slices or 0))
        self._pairs = [
            (one.tid, other.tid)
            for one, other in combinations(often[:_MOST_THREADS], 2)
            if (other.slices or 0) >= (1 - _UNEQUAL) * (one.slices or 0)
        ]
        tids = {tid for pair in self._pairs for tid in pair}
        self._pids = {one.tid: one.pid for one in often if one.tid in tids}
        self._seen: list[dict[int, _Look]] = []

    def look(self) -> None:
        """See which of them sleep, one right after the other."""
        if self._pids:
            found = {tid: self._look(pid, tid) for tid, pid in self._pids.items()}
            self._seen.append({tid: look for tid, look in found.items() if look is not None})

    def end(self) -> tuple[Handoff, ...]:
        """What was seen of each pair."""
        return tuple(self._handoff(*pair) for pair in self._pairs)

    def _look(self, pid: int, tid: int) -> _Look | None:
        fs = self._host.fs
        try:
            text = fs.load(str, pid, "task", tid, "syscall")
        except DENIED:
            place = fs.maybe(parse_placement, pid, "task", tid, "stat")
            return None if place is None else _Look(place.state in "SD")
        except (*GONE, OSError):
            return None
        if text.startswith(_AWAKE):
            return self._asleep_for_a_moment(pid, tid) or _Look(is_asleep=False)
        call = parse_syscall(text, fs.machine)
        if call is None:
            return _Look(is_asleep=True)
        return _Look(True, call.name, call.arguments[0] if call.name == _FUTEX else None)

    def _asleep_for_a_moment(self, pid: int, tid: int) -> _Look | None:
        """`syscall` calls a thread running that wakes up while it is read; `wchan` takes less time."""
        function = optional(self._host.fs.read, pid, "task", tid, "wchan", default=b"0")
        return _Look(True, _FUTEX) if function.startswith(_FUTEX.encode()) else None

    def _handoff(self, first: int, second: int) -> Handoff:
        looks = [(seen[first], seen[second]) for seen in self._seen if first in seen and second in seen]
        calls = [_calls(look[at] for look in looks) for at in (0, 1)]
        names = {each.most_common(1)[0][0] for each in calls if each}
        addresses = [{look[at].futex for look in looks} - {None} for at in (0, 1)]
        return Handoff(
            first, second, len(looks),
            sum(one.is_asleep and other.is_asleep for one, other in looks),
            sum(not one.is_asleep and not other.is_asleep for one, other in looks),
            names.pop() if len(names) == 1 else None,
            not addresses[0].isdisjoint(addresses[1]),
        )  # fmt: skip


def _calls(looks: Iterable[_Look]) -> Counter[str]:
    """How often a thread slept in each call."""
    return Counter(look.call for look in looks if look.call is not None)
