"""Threads that take turns: one runs, until it sleeps, ends, or reads while one goes first whose sleep is over.

Checks in threads that run side by side would fight for the interpreter's lock with each read of a file. In turns, the first
readings of all counters come first, the scans run while the windows pass, and a reading that is due is late by one read.
A thread that hangs in a read keeps its turn; `lend` then lets one more run beside it.
"""

from __future__ import annotations

import heapq
import threading
import time
from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_QUIET_S = 0.1  # without a sign: another thread runs beside it
_HANGS_S = 0.3  # without a sign: it is taken for hanging
_BREATH_S = 0.005  # a thread runs so long before it lets one that is due go first
_DUE_S = 0.1  # so long a thread that was due itself goes on
_DUE, _BACK, _NEW = 0, 1, 2  # its sleep is over; it let another one go first; it has not run yet


class _Turn(NamedTuple):
    """A turn that a thread has: why it got it, when, and when the thread last gave a sign."""

    precedence: int
    since_s: float
    sign_s: float


class Turns:
    """Hands turns to threads. All methods are called by these threads, but `start`, `lend` and `wait`.

    `on_hang` is called by `wait`, with the ident of a thread that gave no sign for long, again and again until it does.
    """

    def __init__(self, on_hang: Callable[[int], None] = lambda _: None) -> None:
        self._on_hang = on_hang
        self._lock = threading.Lock()
        self._free = 1  # turns that nobody has
        self._waiting: list[tuple[int, int, threading.Lock]] = []  # precedence, in order of arrival
        self._arrived = self._running = 0
        self._turns: dict[int, _Turn] = {}  # by the thread's ident
        self._lent: set[int] = set()  # threads that hang: the turn of each was given to another
        self._ended = threading.Condition(self._lock)

    def start(self, work: Callable[[], None]) -> None:
        """Run it in a thread, as soon as a turn is free. Raises RuntimeError where no thread can be started."""

        def run() -> None:
            try:
                self._take(_NEW)
                try:
                    work()
                finally:
                    self._give()
            finally:
                self._count(-1)

        self._count(1)
        try:
            threading.Thread(target=run, daemon=True).start()
        except BaseException:
            self._count(-1)
            raise

    def sleep(self, seconds: float) -> None:
        """Sleep without a turn."""
        if threading.get_ident() not in self._turns:
            time.sleep(max(0.0, seconds))
            return
        self._give()
        try:
            time.sleep(max(0.0, seconds))
        finally:
            self._take(_DUE)

    def breathe(self) -> None:
        """Give a sign; let a thread go first whose sleep is over."""
        me = threading.get_ident()
        turn = self._turns.get(me)
        now_s = time.monotonic()
        if turn is None or now_s - turn.sign_s < _BREATH_S:
            return
        is_due = turn.precedence == _DUE and now_s - turn.since_s < _DUE_S
        with self._lock:
            self._turns[me] = turn._replace(sign_s=now_s)
            gives_way = me in self._lent or (not is_due and bool(self._waiting) and self._waiting[0][0] == _DUE)
        if gives_way:
            self._give()
            self._take(_DUE if is_due else _BACK)

    def lend(self) -> None:
        """Let others run beside threads that gave no sign for a while."""
        with self._lock:
            for thread in self._silent(_QUIET_S):
                if thread not in self._lent:
                    self._lent.add(thread)
                    self._hand_over()

    def wait(self, until_s: float, is_done: Callable[[], bool] = lambda: False) -> bool:
        """Wait until all threads have ended or it is done, lending turns, but no longer than to this moment. Whether that came."""
        while True:
            with self._lock:
                left_s = until_s - time.monotonic()
                if not self._running or is_done():
                    return True
                if left_s <= 0:
                    return False
                self._ended.wait(min(_QUIET_S / 3, left_s))
            self.lend()
            for thread in self._silent(_HANGS_S):
                self._on_hang(thread)

    def _silent(self, seconds: float) -> list[int]:
        now_s = time.monotonic()
        return [thread for thread, turn in self._turns.copy().items() if now_s - turn.sign_s > seconds]

    def _count(self, change: int) -> None:
        with self._lock:
            self._running += change
            self._ended.notify_all()

    def _take(self, precedence: int) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                mine = None
            else:
                mine = threading.Lock()
                mine.acquire()
                self._arrived += 1
                heapq.heappush(self._waiting, (precedence, self._arrived, mine))
        if mine is not None:
            mine.acquire()
        now_s = time.monotonic()
        self._turns[threading.get_ident()] = _Turn(precedence, now_s, now_s)

    def _give(self) -> None:
        me = threading.get_ident()
        with self._lock:
            self._turns.pop(me, None)
            if me in self._lent:  # its turn is another's already
                self._lent.discard(me)
            else:
                self._hand_over()

    def _hand_over(self) -> None:
        if self._waiting:
            heapq.heappop(self._waiting)[2].release()
        else:
            self._free += 1
