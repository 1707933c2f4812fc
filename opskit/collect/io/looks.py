"""Looks at threads: in which system call each is, in which state, and in state D in which function of the kernel.

A thread that waits for a FUSE server counts as in state D: it is in state S until a signal comes.

A look costs some 20 us a thread. A thread that always runs shows no call: the kernel tells that of sleeping ones alone.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from opskit.collect.io.facts import Seen, Stalled
from opskit.collect.io.sleeps import is_fuse_wait, sees_fuse, switches, waits_for_fuse
from opskit.proc.files.stat import parse_block_ticks, parse_stat
from opskit.proc.files.syscall import parse_syscall
from opskit.proc.fs import DENIED, GONE, optional

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.collect.io.sleeps import Switches
    from opskit.host import Host
    from opskit.proc.files.stat import ProcStat

RUNNING, PAGE_FAULT = "running", "page fault"
_UNINTERRUPTIBLE, _RUNNABLE, _ENDED = "D", "R", ("Z", "X")
_FD, _NO_FD = 0xFFFFFFFF, 0x80000000
_LENGTH = frozenset({"read", "write", "pread64", "pwrite64", "recvfrom", "sendto"})
_ON_FD = _LENGTH | {
    "readv", "writev", "preadv", "pwritev", "preadv2", "pwritev2", "recvmsg", "sendmsg", "recvmmsg", "sendmmsg", "sendfile",
    "splice", "vmsplice", "fsync", "fdatasync", "syncfs", "sync_file_range", "fallocate", "ftruncate", "copy_file_range",
    "getdents64", "close", "flock", "fcntl", "fstat", "connect", "accept", "accept4",
}  # fmt: skip
_MOST_BYTES = 4096  # of a `stat` file
_LONGEST_NAME = 80  # of a function of the kernel
_LONGEST = 1 << 31  # bytes of one read(2) or write(2)


class Track:
    """What the looks at one thread saw."""

    __slots__ = ("asleep_since", "begun_s", "ended_s", "first", "in_d", "last", "lengths", "looks", "seen", "where")

    def __init__(self) -> None:
        self.looks = self.in_d = 0
        self.seen: Counter[tuple[str, int | None]] = Counter()
        self.lengths: dict[tuple[str, int | None], int] = {}
        self.where: Counter[str | None] = Counter()
        self.first: str | None = None
        self.last: str | None = None
        self.begun_s = self.ended_s = 0.0
        self.asleep_since: tuple[Switches, float] | None = None  # its context switches by then, and when that was

    def calls(self) -> tuple[Seen, ...]:
        """The calls, the most frequent first."""
        return tuple(
            Seen(call, fd, looks, self.lengths.get((call, fd))) for (call, fd), looks in self.seen.most_common()
        )

    def stalls(self) -> tuple[Stalled, ...]:
        """Where it was in state D, the most frequent place first, and at last those looks after which it ran again."""
        places = sorted(self.where.items(), key=lambda item: (item[0] is None, -item[1]))
        return tuple(Stalled(where, looks) for where, looks in places)

    def use(self, clock_ticks: int) -> tuple[float | None, float | None, float | None, float | None]:
        """Between the first look and the last: user and system time and waits for storage as shares, major faults a second; None: unknown."""
        elapsed_s = self.ended_s - self.begun_s
        first, last = (_parsed(text) for text in (self.first, self.last))
        if first is None or last is None or elapsed_s <= 0 or first.start_ticks != last.start_ticks:
            return None, None, None, None
        waits = [parse_block_ticks(text or "") for text in (self.first, self.last)]
        user, system = last.user_ticks - first.user_ticks, last.system_ticks - first.system_ticks
        waited = None if None in waits else (waits[1] or 0) - (waits[0] or 0)
        shares = [
            None if ticks is None else min(1.0, max(0, ticks) / clock_ticks / elapsed_s)
            for ticks in (user, system, waited)
        ]
        return shares[0], shares[1], shares[2], max(0, last.major_faults - first.major_faults) / elapsed_s


class Looks:
    """Looks at chosen threads of a process. `denied`: their system calls may not be read."""

    def __init__(self, host: Host, pid: int) -> None:
        self._host, self._pid = host, pid
        self.tracks: dict[int, Track] = {}
        self.denied = False
        self._has_fuse = False
        self._asleep: dict[int, tuple[Switches, float]] = {}  # since before this window

    def begin(self) -> None:
        """Forget all that was seen, but for the sleeps that go on."""
        self._asleep = {tid: track.asleep_since for tid, track in self.tracks.items() if track.asleep_since is not None}
        self.tracks = {}
        self._has_fuse = sees_fuse(self._host.fs, self._pid)

    def look(self, tids: Iterable[int]) -> None:
        """Look at each thread once. Those that have ended are passed over."""
        for tid in tids:
            text = self._host.fs.maybe(str, self._pid, "task", tid, "stat")
            if text is not None:
                self._add(tid, text)

    def asleep_s(self, tid: int) -> float | None:
        """For how long a thread has been seen in one and the same sleep; 0: it ran meanwhile; None: it never was in one, or unknown."""
        track = self.tracks.get(tid)
        if track is None or track.asleep_since is None:
            return None
        switched, since_s = track.asleep_since
        slept = track.in_d == track.looks and switches(self._host.fs, self._pid, tid) == switched
        return self._host.monotonic() - since_s if slept else 0.0

    def _sleep_begun(self, tid: int) -> tuple[Switches, float] | None:
        switched, known = switches(self._host.fs, self._pid, tid), self._asleep.get(tid)
        if switched is None:
            return None
        return known if known is not None and known[0] == switched else (switched, self._host.monotonic())

    def stalled(self, tids: Iterable[int]) -> list[int]:
        """Those of these threads that are in state D now, or wait for a FUSE server."""
        fs, base = self._host.fs, f"{self._host.fs.proc}/{self._pid}/task"
        found = []
        for tid in tids:
            text = optional(fs.read_at, f"{base}/{tid}/stat", 0, _MOST_BYTES, default=b"")
            if text[text.rfind(b")") + 2 :][:1] == b"D" or (self._has_fuse and waits_for_fuse(fs, self._pid, tid)):
                found.append(tid)
        return found

    def _add(self, tid: int, stat: str) -> None:
        track = self.tracks.setdefault(tid, Track())
        now_s = self._host.monotonic()
        if track.first is None:
            track.first, track.begun_s = stat, now_s
        track.last, track.ended_s = stat, now_s
        state = stat[stat.rfind(")") + 2 :][:1]
        if state in _ENDED or not state:
            return
        track.looks += 1
        if state == _RUNNABLE:
            track.seen[RUNNING, None] += 1
            return
        if not self.denied:
            self._add_call(track, tid, state)
        if state == _UNINTERRUPTIBLE or self._has_fuse:
            where = self._host.fs.maybe(str.strip, self._pid, "task", tid, "wchan")
            if state == _UNINTERRUPTIBLE or is_fuse_wait(where):
                self._add_stall(track, tid, where)

    def _add_stall(self, track: Track, tid: int, where: str | None) -> None:
        if not track.in_d:
            track.asleep_since = self._sleep_begun(tid)
        track.in_d += 1
        track.where[where[:_LONGEST_NAME] if where and where != "0" else None] += 1

    def _add_call(self, track: Track, tid: int, state: str) -> None:
        try:
            text = self._host.fs.load(str, self._pid, "task", tid, "syscall")
        except GONE:
            return
        except DENIED:
            self.denied = True
            return
        except OSError:
            return
        call = parse_syscall(text, self._host.fs.machine)
        if call is None:
            number = text.partition(" ")[0].strip()
            if number == RUNNING:  # it runs again: which call it was in is unknown
                return
            if number != "-1":
                track.seen[f"system call {number}"[:30], None] += 1
            elif state == _UNINTERRUPTIBLE:
                track.seen[PAGE_FAULT, None] += 1
            return
        fd = call.arguments[0] & _FD if call.name in _ON_FD else None
        key = call.name, None if fd is None or fd >= _NO_FD else fd
        track.seen[key] += 1
        if call.name in _LENGTH:
            track.lengths[key] = max(track.lengths.get(key, 0), min(call.arguments[2], _LONGEST))


def _parsed(text: str | None) -> ProcStat | None:
    return None if text is None else optional(parse_stat, text)
