"""A test that is run again runs alone: the workers beside it wait until it has ended.

What else runs on the machine can stretch a delay or shift a measurement. What fails alone too is no such chance.
"""

from __future__ import annotations

import fcntl
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# A test beside it may be long, or wait for something that this worker's fixtures hold.
_LONGEST_WAIT_S, _PAUSE_S = 90, 0.05


class Room:
    """The machine that all workers share. A worker is in it during each test: beside others, or alone."""

    def __init__(self, place: Path) -> None:
        """`place`: a directory that all workers know."""
        # Who waits to be alone holds the door, so that nobody else comes in.
        self._door, self._room = ((place / name).open("w") for name in ("door", "room"))
        self._is_alone = False

    def enter(self) -> None:
        """Come in beside the others."""
        fcntl.flock(self._door, fcntl.LOCK_EX)
        fcntl.flock(self._room, fcntl.LOCK_SH)
        fcntl.flock(self._door, fcntl.LOCK_UN)

    def be_alone(self) -> None:
        """Wait until the others have left, but not for ever; nobody comes in before this one leaves."""
        if self._is_alone:
            return
        self._is_alone = True
        fcntl.flock(self._room, fcntl.LOCK_UN)
        fcntl.flock(self._door, fcntl.LOCK_EX)
        until_s = time.monotonic() + _LONGEST_WAIT_S
        while time.monotonic() < until_s:
            try:
                fcntl.flock(self._room, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_PAUSE_S)
            else:
                return

    def leave(self) -> None:
        """Let the others in."""
        fcntl.flock(self._room, fcntl.LOCK_UN)
        fcntl.flock(self._door, fcntl.LOCK_UN)
        self._is_alone = False
