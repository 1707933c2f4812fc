"""Threads that take turns: one runs, until it sleeps, ends, or reads while one with precedence waits.

Checks in threads that run side by side would fight for the interpreter's lock with each read of a file. In turns, the first
readings of all counters come first, the scans run while the windows pass, and a reading that is due is late by one read.
A thread that hangs in a read keeps its turn; `lend` then lets one more run beside it.
"""

from __future__ import annotations

import heapq
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_HUNG_S = 0.15  # without a sign
_BREATH_S = 0.005  # a thread runs so long before it lets one that is due go first
_DUE, _NEW = 0, 1


class Turns:
    """Hands turns to threads. All methods are called by these threads, but `start`, `lend` and `wait`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free = 1  # turns that nobody has
        self._waiting: list[tuple[int, int, threading.Lock]] = []  # precedence, in order of arrival
        self._arrived = self._running = 0
        self._signs: dict[int, float] = {}  # thread -> when it last gave a sign; of those that have a turn
        self._lent_to: set[int] = set()  # threads that hang: the turn of each was given to another
        self._ended = threading.Condition(self._lock)

    def start(self, work: Callable[[], None]) -> None:
        """Run it in a thread, as soon as a turn is free."""

        def run() -> None:
            self._take(_NEW)
            try:
                work()
            finally:
                self._give()
                with self._lock:
                    self._running -= 1
                    self._ended.notify_all()

        with self._lock:
            self._running += 1
        threading.Thread(target=run, daemon=True).start()

    def sleep(self, seconds: float) -> None:
        """Sleep without a turn."""
        self._give()
        time.sleep(max(0.0, seconds))
        self._take(_DUE)

    def breathe(self) -> None:
        """Give a sign; let a thread go first whose sleep is over."""
        me = threading.get_ident()
        since_s = self._signs.get(me)
        if since_s is None:
            return
        now_s = time.monotonic()
        if now_s - since_s < _BREATH_S:
            return
        if self._waiting and self._waiting[0][0] == _DUE:
            self._give()
            self._take(_DUE)
        else:
            self._signs[me] = now_s

    def lend(self) -> None:
        """Let others run instead of threads that gave no sign for long."""
        with self._lock:
            now_s = time.monotonic()
            for thread, since_s in list(self._signs.items()):  # others change it
                if thread not in self._lent_to and now_s - since_s > _HUNG_S:
                    self._lent_to.add(thread)
                    self._hand_over()

    def wait(self, until_s: float) -> bool:
        """Wait until all threads have ended, lending turns, but no longer than to this moment. Whether they have."""
        while True:
            with self._lock:
                left_s = until_s - time.monotonic()
                if not self._running or left_s <= 0:
                    return not self._running
                self._ended.wait(min(_HUNG_S / 3, left_s))
            self.lend()

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
        self._signs[threading.get_ident()] = time.monotonic()

    def _give(self) -> None:
        me = threading.get_ident()
        with self._lock:
            self._signs.pop(me, None)
            if me in self._lent_to:  # its turn is another's already
                self._lent_to.discard(me)
            else:
                self._hand_over()

    def _hand_over(self) -> None:
        if self._waiting:
            heapq.heappop(self._waiting)[2].release()
        else:
            self._free += 1
