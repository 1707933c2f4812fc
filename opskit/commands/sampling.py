"""Sampling a live JVM's threads: a fixed schedule, what it cost the JVM, and what the CPUs did meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from opskit.errors import NoSuchProcess, OpskitError
from opskit.jvm.perfdata.stop_clock import StopClock
from opskit.proc.cgroup.throttling import read_periods, throttled_percent
from opskit.proc.files.schedstat import ThreadCpu

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opskit.host import Host
    from opskit.jvm.attach.client import AttachClient
    from opskit.jvm.dumps.dialects import DumpReader
    from opskit.jvm.dumps.thread_dump import Thread, ThreadDump
    from opskit.proc.cgroup.throttling import Periods

DEFAULT_INTERVAL_S = 0.25
DEFAULT_MAX_STOP_PERCENT = 1.0
LONGEST_FIRST_STOP_MS = 500.0

End = Literal["interrupted", "exited", "long stop", "failed"]


class Plan(NamedTuple):
    """What is wanted. `interval_s` None: the default, which may be stretched. `max_stop_percent` None: the default."""

    samples: int
    interval_s: float | None
    max_stop_percent: float | None
    cpu: bool


class Run:
    """What came of it. `interval_s` was planned, `mean_interval_s` is what it was (None with one sample).

    `times_s`: when each was begun. Stops are in ms, one a dump: by hsperfdata, or (`stops_are_bounds`) no longer than the
    dump took.
    `ended` None: as planned; else why it ended before, with the `error` where there was one.
    """

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self.mean_interval_s: float | None = None
        self.dumps: list[ThreadDump] = []
        self.times_s: list[float] = []
        self.stops_ms: list[float] = []
        self.stops_are_bounds = False
        self.late = 0
        self.elapsed_s = 0.0
        self.stretched = False
        self.ended: End | None = None
        self.error: OpskitError | None = None
        self.cpu_before: Mapping[int, float] | None = None
        self.cpu_after: Mapping[int, float] | None = None
        self.natives: Mapping[int, str] | None = None

    throttled_percent: float | None = None

    @property
    def stopped_ms(self) -> float:
        """How long the JVM stood still for all of it."""
        return sum(self.stops_ms)

    @property
    def stopped_percent(self) -> float | None:
        """Its share of the run; None for a single sample, which has no run around it."""
        return self.stopped_ms / self.elapsed_s / 10 if len(self.dumps) > 1 and self.elapsed_s else None


class Sampler:
    """Takes the samples. What was gathered stays, whatever ends the run."""

    def __init__(
        self,
        host: Host,
        client: AttachClient,
        reader: DumpReader,
        plan: Plan,
        keep: Callable[[int, bytes], None],
        dump: Callable[[], bytes],
    ) -> None:
        """`keep` gets the number of each sample, from 1, and the raw dump; `dump` takes one."""
        self.host, self.client, self.reader, self.plan, self.keep = host, client, reader, plan, keep
        self.dump = dump
        self.run = Run(DEFAULT_INTERVAL_S if plan.interval_s is None else plan.interval_s)
        target = client.target
        self._clock = StopClock(host.fs, target.jvm.perf)
        self._cpu = ThreadCpu(host.fs, target.pid, host.clock_ticks) if plan.cpu else None
        self._known: dict[Thread, Thread] = {}
        self._periods: Periods | None = None
        self._begun = 0.0

    def sample(self) -> Run:
        """Run to the end, Ctrl-C, or the JVM's. Raises only where nothing was gathered."""
        run = self.run
        self._periods = read_periods(self.host.fs, self.client.pid)
        if self._cpu is not None:
            run.cpu_before = self._cpu.read()
        self._begun = self.host.monotonic()
        try:
            self._take_all()
        except KeyboardInterrupt:
            run.ended = "interrupted"
        except OpskitError as error:
            if not run.dumps:
                raise
            run.ended, run.error = "exited" if self._is_gone(error) else "failed", error
        self._finish()
        return run

    def _is_gone(self, error: OpskitError) -> bool:
        if isinstance(error, NoSuchProcess):
            return True
        pid, started = self.client.pid, self.client.target.jvm.start_ticks
        process = self.host.process(pid)
        gone = process.start_ticks != started or process.state in ("Z", "X")
        return gone or (getattr(error, "reason", None) == "reply-cut" and not self.host.fs.exists(pid))

    def _take_all(self) -> None:
        run, host = self.run, self.host
        due = self._begun
        for number in range(1, self.plan.samples + 1):
            late_s = host.monotonic() - due
            if late_s < 0:
                host.sleep(-late_s)
            run.late += late_s > 0.5 * run.interval_s > 0
            taken_at_s = host.monotonic() - self._begun
            run.times_s.append(taken_at_s)
            self._take(number)
            if number > 1:
                run.mean_interval_s = taken_at_s / (number - 1)
            if number == 1 and run.stops_ms[0] > LONGEST_FIRST_STOP_MS and self.plan.max_stop_percent is None:
                run.ended = "long stop" if self.plan.samples > 1 else None
                return
            # Slots that have passed altogether are skipped, not made up for.
            passed = int((host.monotonic() - due) // run.interval_s) if run.interval_s else 0
            due += run.interval_s * max(1, passed)
            earliest = self._earliest_next()
            if earliest > due and number < self.plan.samples:
                due, run.stretched = earliest, True

    def _earliest_next(self) -> float:
        """When another stop like those so far keeps all of them within their share of the time."""
        if self.plan.interval_s is not None:
            return self._begun
        stops = self.run.stops_ms
        likely_ms = max(stops[-1], sum(stops) / len(stops))
        share = self.plan.max_stop_percent or DEFAULT_MAX_STOP_PERCENT
        return self._begun + (sum(stops) + likely_ms) / 10 / share

    def _take(self, number: int) -> None:
        before, begun = self._clock.read_s(), self.host.monotonic()
        text = self.dump()
        wall_ms = (self.host.monotonic() - begun) * 1000
        after = self._clock.read_s()
        self.run.dumps += self.reader.read(text, f"the dump of {self.client.pid}")
        if self.plan.cpu:
            self._slim_down()
        if before is None or after is None:
            self.run.stops_are_bounds = True
            self.run.stops_ms.append(wall_ms)
        else:
            self.run.stops_ms.append((after - before) * 1000)
        self.keep(number, text)

    def _slim_down(self) -> None:
        """Make the last dump but one small: most of its threads are, but for their CPU, what they were in another one.

        What a thread has used by then matters only where it is gone by now.
        """
        dumps = self.run.dumps
        if len(dumps) < 2:
            return
        alive = {thread.native_id for thread in dumps[-1].threads}
        slim = (
            thread._replace(cpu_ms=None, elapsed_s=None) if thread.native_id in alive else thread
            for thread in dumps[-2].threads
        )
        dumps[-2] = dumps[-2]._replace(threads=[self._known.setdefault(thread, thread) for thread in slim])

    def _finish(self) -> None:
        run = self.run
        run.elapsed_s = self.host.monotonic() - self._begun
        if self._cpu is not None and run.ended != "exited":
            run.cpu_after = self._cpu.read()
            seen = {thread.native_id for dump in run.dumps for thread in dump.threads}
            run.natives = self._cpu.names(run.cpu_after.keys() - seen)
        periods = read_periods(self.host.fs, self.client.pid)
        if periods is not None and self._periods is not None:
            run.throttled_percent = throttled_percent(self._periods, periods)
