"""What `opskit jpmp` is asked to read, and what it has read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.errors import OpskitError
    from opskit.jvm.dumps.thread_dump import Detail, ThreadDump
    from opskit.jvm.profiles import WeightedStack

DEFAULT_SAMPLES, DEFAULT_INTERVAL_S, DEFAULT_MAX_STOP_PERCENT = 20, 0.25, 1.0

# Plain, with owners of java.util.concurrent locks, with all virtual threads.
DumpKind = Literal["threads", "synchronizers", "virtual"]
End = Literal["interrupted", "exited", "long stop", "failed"]


class Schedule(NamedTuple):
    """How often to sample. `interval_s` None: the default, stretched so that stops stay within `max_stop_percent`."""

    samples: int = DEFAULT_SAMPLES
    interval_s: float | None = None
    max_stop_percent: float | None = None


class Request(NamedTuple):
    """What to read: `files`, or the JVM `pid`, with its threads' CPU time if `cpu`. `before`: a file to compare with."""

    files: Sequence[str] = ()
    pid: int | None = None
    schedule: Schedule = Schedule()
    kind: DumpKind = "threads"
    timeout_s: float | None = None
    before: str | None = None
    detail: Detail = "stacks"
    cpu: bool = False


class Sampled:
    """A sampled JVM. `times_s`: when each sample began. CPU readings are in ms by native id.

    `stops_ms`: one per dump, by hsperfdata, or (`stops_are_bounds`) the dump's own time, which is longer.
    """

    def __init__(
        self, pid: int, start_ticks: int | None, main: str, schedule: Schedule, kind: DumpKind = "threads"
    ) -> None:
        self.pid, self.start_ticks, self.main, self.schedule, self.kind = pid, start_ticks, main, schedule, kind
        self.unit: str | None = None
        self.dumps: list[ThreadDump] = []
        self.times_s: list[float] = []
        self.stops_ms: list[float] = []
        self.stops_are_bounds = self.stretched = False
        self.late, self.elapsed_s = 0, 0.0
        self.ended: End | None = None
        self.error: OpskitError | None = None
        self.cpu_before: Mapping[int, float] | None = None
        self.cpu_after: Mapping[int, float] | None = None
        self.natives: Mapping[int, str] | None = None
        self.throttled_percent: float | None = None

    @property
    def interval_s(self) -> float:
        """The planned interval."""
        return DEFAULT_INTERVAL_S if self.schedule.interval_s is None else self.schedule.interval_s

    @property
    def mean_interval_s(self) -> float | None:
        """The actual interval; None with a single sample."""
        gaps = len(self.stops_ms) - 1
        return self.times_s[gaps] / gaps if gaps > 0 else None

    @property
    def stopped_ms(self) -> float:
        """How long sampling stopped the JVM."""
        return sum(self.stops_ms)

    @property
    def stopped_percent(self) -> float | None:
        """Its share of the run; None with a single sample."""
        return self.stopped_ms / self.elapsed_s / 10 if len(self.dumps) > 1 and self.elapsed_s else None


class CutOff(NamedTuple):
    """A dump without its end: the `number`-th of `dumps` in a file, with so many whole stacks."""

    source: str
    number: int
    dumps: int
    whole_stacks: int


class Facts(NamedTuple):
    """Dumps, and stacks of saved profiles, from `files` or from the JVM `live`."""

    dumps: Sequence[ThreadDump] = ()
    stacks: Sequence[WeightedStack] = ()
    files: Sequence[str] = ()
    cut_off: Sequence[CutOff] = ()
    live: Sampled | None = None
    before: Facts | None = None
