"""The threads of the machine in state D (uninterruptible sleep), or waiting for a FUSE server, in several looks of a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.io.facts import StalledThread
from opskit.collect.io.sleeps import may_wait_for_fuse, switches, waits_for_fuse
from opskit.proc.files.syscall import parse_syscall
from opskit.proc.fs import DENIED, GONE, optional
from opskit.proc.thread_names import thread_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from opskit.collect.io.sleeps import Switches
    from opskit.host import Host
    from opskit.proc.files.stat import ProcStat
    from opskit.proc.fs import ProcFS

_MOST = 256  # threads whose sleep is followed: a hung server can stop thousands
_LONGEST_NAME = 80  # of a function of the kernel

Place = tuple[int, int]  # PID, TID


class Stalls:
    """Looks again and again; a thread that has not been on a CPU between two looks is in the same sleep."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._since: dict[Place, tuple[Switches, float]] = {}  # its context switches, and when they were first read
        self._now: tuple[Place, ...] = ()
        self._has_fuse = False
        self._looks = 0
        self._seen: dict[int, int] = {}  # PID: looks with a thread in state D

    def begin(self) -> None:
        """Count the looks of a new window, of which the last one of the window before is the first."""
        self._looks, self._seen = min(self._looks, 1), dict.fromkeys({pid for pid, _ in self._now}, 1)

    def look(self, stats: Mapping[int, ProcStat]) -> None:
        """Look at the threads of all processes."""
        self._has_fuse = may_wait_for_fuse(self._host.fs)
        self._note(self._stalled(stats))

    def look_again(self) -> None:
        """Look only at the threads that were in state D in the last look, and leave out those that are not any more."""
        fs = self._host.fs
        self._note(place for place in self._now if self._is_stalled(*place, _state(fs, *place)))

    def _note(self, places: Iterable[Place]) -> None:
        now_s = self._host.monotonic()
        self._now = tuple(places)
        self._looks += 1
        for pid in {pid for pid, _ in self._now}:
            self._seen[pid] = self._seen.get(pid, 0) + 1
        known, self._since = self._since, {}
        for place in self._now[:_MOST]:
            switched = switches(self._host.fs, *place)
            if switched is not None:
                last = known.get(place)
                self._since[place] = last if last is not None and last[0] == switched else (switched, now_s)

    def share(self, pid: int) -> float:
        """Of the looks of the window, those that found a thread of this process in state D."""
        return self._seen.get(pid, 0) / self._looks if self._looks else 0.0

    def threads(self) -> dict[int, tuple[StalledThread, ...]]:
        """The threads in state D in the last look, by PID; the longest sleep first."""
        fs, now_s = self._host.fs, self._host.monotonic()
        found: dict[int, list[StalledThread]] = {}
        for pid, tid in self._now[:_MOST]:
            where = fs.maybe(str.strip, pid, "task", tid, "wchan", default="")[:_LONGEST_NAME]
            call = parse_syscall(fs.maybe(str, pid, "task", tid, "syscall", default=""), fs.machine)
            since = self._since.get((pid, tid))
            name = thread_name(fs, pid, tid)
            if name is not None:
                slept_s = 0.0 if since is None else now_s - since[1]
                known = where if where not in ("", "0") else None
                found.setdefault(pid, []).append(StalledThread(tid, name, known, slept_s, call and call.name))
        return {pid: tuple(sorted(each, key=lambda thread: -thread.for_s)) for pid, each in found.items()}

    @property
    def left_out(self) -> int:
        """Threads in state D beyond those that are followed."""
        return max(0, len(self._now) - _MOST)

    def _stalled(self, stats: Mapping[int, ProcStat]) -> Iterator[Place]:
        fs = self._host.fs
        for pid, stat in stats.items():
            if stat.threads <= 1:
                if self._is_stalled(pid, pid, stat.state):
                    yield pid, pid
                continue
            try:
                tids = fs.tids(pid)
            except (*GONE, DENIED):
                continue
            yield from ((pid, tid) for tid in tids if self._is_stalled(pid, tid, _state(fs, pid, tid)))

    def _is_stalled(self, pid: int, tid: int, state: str | None) -> bool:
        return state == "D" or (state == "S" and self._has_fuse and waits_for_fuse(self._host.fs, pid, tid))


def _state(fs: ProcFS, pid: int, tid: int) -> str | None:
    """The letter behind the name, which may hold parentheses; None: the thread has ended."""
    text = optional(fs.read, pid, "task", tid, "stat")
    if text is None:
        return None
    at = text.rfind(b")")
    return chr(text[at + 2]) if len(text) > at + 2 else None
