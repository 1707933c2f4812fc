"""What JVMs replied when a capture was made, by process and question. Where a recording asks them itself, it keeps the reply."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.proc.recorded.tape import REPLY, Failure
from opskit.quantities import decimal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.proc.fs import ProcFS
    from opskit.proc.recorded.clock import TapeClock
    from opskit.proc.recorded.tape import Origin, Tape

THREADS, HISTOGRAM = "threads", "histogram"
TIMES = "times"  # when each was asked for, which is not the moment of the mark that it stands for
_LONGEST_NAME = 100
_LAST_S = 253_402_300_800.0  # the year 10,000
_NAMES = {"threaddump": THREADS, "inspectheap": HISTOGRAM}


class Replies:
    """The replies on a tape, at the mark of its clock. `source`: the live tree of a recording, None in a replay."""

    def __init__(self, tape: Tape, clock: TapeClock, source: ProcFS | None = None) -> None:
        self._tape, self._clock, self.source = tape, clock, source

    @property
    def origin(self) -> Origin:
        """Who made the capture."""
        return self._tape.origin

    def find(self, pid: int, name: str) -> bytes | Failure | None:
        """The reply that holds now; None: it was not asked for."""
        held = self._tape.answers[REPLY][0]
        for mark in range(self._clock.mark, -1, -1):
            found: bytes | Failure | None = held.get(key_of(pid, name, mark))
            if found is not None:
                return found
        return None

    def keep(self, pid: int, name: str, reply: bytes | Failure) -> None:
        """Keep a reply from the first mark on."""
        self._tape.keep(REPLY, key_of(pid, name), reply)

    def all_of(self, pid: int, name: str) -> list[bytes]:
        """Each reply of this name, the oldest first."""
        held = self._tape.answers[REPLY][0]
        found = (held.get(key_of(pid, name, mark)) for mark in range(len(self._tape.marks)))
        return [each for each in found if isinstance(each, bytes)]

    def is_new(self, pid: int, name: str) -> bool:
        """Whether the reply of now is of this moment, and not of an earlier one."""
        return isinstance(self._tape.answers[REPLY][0].get(key_of(pid, name, self._clock.mark)), bytes)

    def taken_s(self, pid: int, name: str) -> float:
        """When the reply of now was asked for, since the epoch; the time of the mark where that is unknown."""
        times = self._tape.answers[REPLY][0].get(key_of(pid, TIMES))
        found = parse_times(times).get(named(name, self._clock.mark)) if isinstance(times, bytes) else None
        return self._clock.now().timestamp() if found is None else found


def key_of(pid: int, name: str, mark: int = 0) -> str:
    """The key on the tape, at its first mark, and the path below `attach` in an archive: `4242/threads`, `4242/threads-2`."""
    return f"{pid}/{named(name, mark)}"


def named(name: str, mark: int) -> str:
    """The name of a reply of a mark."""
    return f"{name}-{mark + 1}" if mark else name


def times_of(times: Mapping[str, float]) -> bytes:
    """`threads 1763948000.123` in lines: when each reply was asked for, in seconds since the epoch."""
    return "".join(f"{name} {at_s:.3f}\n" for name, at_s in times.items()).encode("ascii")


def parse_times(text: bytes) -> dict[str, float]:
    """The lines of times_of; others are left out."""
    words = (line.split() for line in text.decode("ascii", "replace").splitlines())
    found = {line[0]: decimal(line[1]) for line in words if len(line) == 2}
    return {name: at_s for name, at_s in found.items() if at_s is not None and at_s < _LAST_S}


def name_of(command: str, *arguments: str) -> str:
    """The name of the reply to an attach command: `threads`, `histogram`, `histogram-live`, `properties`, `VM.flags_-all`."""
    if command == "inspectheap" and arguments[:1] != ("-all",):
        return f"{HISTOGRAM}-live"
    if command in _NAMES:
        return _NAMES[command]
    words = arguments if command == "jcmd" else (command, *arguments)
    return re.sub(r"[^A-Za-z0-9.-]+", "_", " ".join(words)).strip("._")[:_LONGEST_NAME]
