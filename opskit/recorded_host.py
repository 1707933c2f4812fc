"""The host of a capture: its files, calls and clocks are those of the machine where it was made."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, cast

from opskit.errors import NotPermitted, NotSupported
from opskit.host import Host
from opskit.proc.recorded.clock import TapeClock
from opskit.proc.recorded.fs import TapeFS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.proc.fs import ProcFS
    from opskit.proc.recorded.clock import Place
    from opskit.proc.recorded.tape import Tape

_ABOUT = 4  # times


class RecordedHost(Host):
    """A captured machine. With a `source` what the tape lacks is asked there, and kept: so a capture is made."""

    fs: TapeFS
    is_recorded = True

    def __init__(self, tape: Tape, source: ProcFS | None = None, path: str = "the file") -> None:
        self.tape, self.clock, self.capture = tape, TapeClock(tape.marks, path), path
        super().__init__(TapeFS(tape, self.clock, source))
        self.now, self.monotonic, self.sleep = self.clock.now, self.clock.monotonic, self.clock.sleep
        self.samples, self.sample_gap_s = len(tape.marks), self.clock.gap_s
        self.own_cpu_s = float  # what a look costs decides how often there is one: here it costs nothing
        origin = tape.origin
        self.page_bytes, self.clock_ticks, self.machine = origin.page_bytes, origin.clock_ticks, origin.machine

    def step(self, seconds: float) -> None:
        """Sleep before one of many looks in a window."""
        self.clock.step(seconds)

    def pause(self, seconds: float) -> None:
        """Wait between two looks that must show the same."""
        self.clock.pause(seconds)

    @property
    def moment(self) -> Place:
        """Where the clock stands."""
        return self.clock.place

    @contextmanager
    def looking_back(self, moment: object) -> Iterator[None]:
        """All is as it was at that moment."""
        now = self.clock.place
        self.clock.go_to(cast("Place", moment))
        try:
            yield
        finally:
            self.clock.go_to(now)

    def rewind(self) -> None:
        """Go back to the first mark, and forget what one command leaves to the next; what the files keep stays."""
        self.clock.rewind()
        self._users.clear()
        self.fs.refused.clear()
        self.fs.uses_nss = self.tape.origin.uses_nss

    @property
    def is_root(self) -> bool:
        """Whether uid 0 made the capture."""
        return self.tape.origin.euid == 0

    @property
    def our_ids(self) -> tuple[int, int]:
        """The effective uid and gid of who made the capture."""
        return self.tape.origin.euid, self.tape.origin.egid

    @property
    def can_ask(self) -> bool:
        """Whether JVMs could be asked when the capture was made: the replies, or what is missing, is on the tape."""
        return self.tape.origin.is_own

    def prove_here(self, asked_for: str) -> NoReturn:
        """Raise NotSupported: nothing is measured, traced or changed here in its stead."""
        raise NotSupported(f"{asked_for}: this is a capture; it needs the machine itself")

    def prove_own(self, pid: int | None = None) -> NoReturn:  # noqa: ARG002
        """Raise NotPermitted: nothing can be sent to a captured process."""
        raise NotPermitted(f"{self.capture} is a capture, and its processes are not here. Nothing was sent.")

    def prove_moving(self, asked_for: str) -> None:
        """Raise NotSupported for a capture without rates: of one sample, or of a copy. `asked_for` names what needs them."""
        if not self.tape.origin.is_live:
            raise NotSupported(f"{asked_for}: {self.capture} is a capture of a copy, which has no rates")
        if not self.fs.has_rates:
            raise NotSupported(f"{asked_for}: {self.clock.without}")

    def end_at(self, until_s: float) -> float:
        """The time of the sample that is nearest to then, of those that are to come. Raises NoMoreSamples."""
        return self.clock.end_at(until_s)

    def can_look_after(self, pause_s: float) -> bool:
        """Whether the next sample follows after about so much time. A look over a longer one shows something else."""
        return self.clock.next_gap_s <= _ABOUT * pause_s

    @property
    def is_own(self) -> bool:
        """Whether the capture was made in the PID namespace of its tree: the commands read the same files then."""
        return self.fs.is_own()
