"""Sample the threads of a live JVM on a fixed schedule; measure what that costs the JVM and what its threads use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.jpmp.collect import DEFAULT_MAX_STOP_PERCENT, Sampled
from opskit.collect.jpmp.load import LoadMeter
from opskit.collect.replayed import go_to_reply, taken_s
from opskit.errors import NoSuchProcess, OpskitError
from opskit.jvm.perfdata.stop_clock import SamplingClock
from opskit.proc.recorded.replies import THREADS
from opskit.proc.socket_waits import calls, peers

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.collect.jpmp.collect import Keep, Request
    from opskit.host import Host
    from opskit.jvm.attach.client import AttachClient
    from opskit.jvm.dumps.dialects import DumpReader
    from opskit.jvm.dumps.thread_dump import Thread, ThreadDump

    Dump = Callable[[], bytes]

LONGEST_FIRST_STOP_MS = 500.0


class Sampler:
    """A sampling run: `dump` takes a sample, `keep` gets its number (from 1) and raw text."""

    def __init__(
        self, host: Host, client: AttachClient, reader: DumpReader, ask: Request, dump: Dump, keep: Keep | None = None
    ) -> None:
        self.host, self.client, self.reader, self.schedule = host, client, reader, ask.schedule
        self.dump, self.keep = dump, keep
        target = client.target
        self.run = Sampled(target.pid, target.jvm.start_ticks, target.jvm.main, ask.schedule, ask.kind)
        self.run.replayed = host.is_recorded
        self._clock = SamplingClock(host.fs, target.jvm.perf)
        self._by_thread, self._to_the_end = ask.cpu, ask.to_the_end
        self._known: dict[Thread, Thread] = {}
        self._begun = 0.0

    def sample(self) -> Sampled:
        """Run until the last sample, Ctrl-C, or the end of the JVM. Raises only if there is no sample at all."""
        run = self.run
        meter = LoadMeter(self.host, self.client.pid, self.client.target.jvm.perf)
        self._begun = self.host.monotonic()
        try:
            self._replay() if run.replayed else self._take_all()
        except KeyboardInterrupt:
            run.ended = "interrupted"
        except OpskitError as error:
            if not run.dumps:
                raise
            run.ended, run.error = "exited" if self._has_exited(error) else "failed", error
        self._finish(meter)
        return run

    def _has_exited(self, error: OpskitError) -> bool:
        if isinstance(error, NoSuchProcess):
            return True
        pid, process = self.client.pid, self.host.process(self.client.pid)
        gone = process.has_ended or process.start_ticks != self.client.target.jvm.start_ticks
        return gone or (getattr(error, "reason", None) == "reply-cut" and not self.host.fs.exists(pid))

    def _replay(self) -> None:
        taken: list[float] = []
        for number in range(1, self.schedule.samples + 1):
            go_to_reply(self.host, self.client.pid, THREADS, next_one=number > 1)
            taken.append(taken_s(self.host, self.client.pid, THREADS))
            self.run.times_s.append(max(0.0, taken[-1] - taken[0]))
            self._take(number)

    def _take_all(self) -> None:
        run, host, samples = self.run, self.host, self.schedule.samples
        due = self._begun
        for number in range(1, samples + 1):
            late_s = host.monotonic() - due
            if late_s < 0:
                host.sleep(-late_s)
            run.late += late_s > 0.5 * run.interval_s > 0
            run.times_s.append(host.monotonic() - self._begun)
            self._take(number)
            if number == 1 < samples and self._is_enough(run.dumps[0]):
                return
            # Slots that have passed are skipped.
            passed = int((host.monotonic() - due) // run.interval_s) if run.interval_s else 0
            due += run.interval_s * max(1, passed)
            earliest = self._earliest_next()
            if earliest > due and number < samples:
                due, run.stretched = earliest, True

    def _is_enough(self, first: ThreadDump) -> bool:
        """Whether no more dumps are needed (a deadlock that no timeout ends), or wanted (a long stop)."""
        run = self.run
        if not self._to_the_end and any(not any(link.timed for link in links) for links in first.deadlocks):
            run.ended = "deadlock"
        elif run.stops_ms[0] > LONGEST_FIRST_STOP_MS and self.schedule.max_stop_percent is None:
            run.ended = "long stop"
        return run.ended is not None

    def _earliest_next(self) -> float:
        """When one more stop like those so far keeps all of them within their share of the time."""
        if self.schedule.interval_s is not None:
            return self._begun
        stops, share = self.run.stops_ms, self.schedule.max_stop_percent or DEFAULT_MAX_STOP_PERCENT
        likely_ms = max(stops[-1], sum(stops) / len(stops))
        return self._begun + (sum(stops) + likely_ms) / 10 / share

    def _take(self, number: int) -> None:
        is_last = self._by_thread and number == self.schedule.samples
        sleeping = calls(self.host.fs, self.client.pid) if is_last else {}
        before, begun = self._clock.read_s(), self.host.monotonic()
        text = self.dump()
        wall_ms = (self.host.monotonic() - begun) * 1000
        after = self._clock.read_s()
        if sleeping:  # a thread that is in the same call before and after the dump was there in the dump
            self.run.peers = peers(
                self.host.fs, self.client.pid, dict(sleeping.items() & calls(self.host.fs, self.client.pid).items())
            )
        # A thread's name may look like the head of another dump, but a sample is one dump.
        found = self.reader.read(text, f"the dump of {self.client.pid}")
        self.run.dumps.append(max(found, key=lambda dump: len(dump.threads)))
        if self._by_thread:
            self._slim_down()
        stop_ms = None if before is None or after is None else max(after - before, 0.0) * 1000
        self.run.stops_are_bounds |= stop_ms is None
        self.run.stops_ms.append(wall_ms if stop_ms is None else stop_ms)
        if self.keep is not None:
            self.keep(number, text)

    def _slim_down(self) -> None:
        """Share equal threads between dumps. The CPU time in an earlier dump matters only for a thread that has ended."""
        dumps = self.run.dumps
        if len(dumps) < 2:
            return
        alive = {thread.native_id for thread in dumps[-1].threads}
        slim = (
            thread._replace(cpu_ms=None, elapsed_s=None) if thread.native_id in alive else thread
            for thread in dumps[-2].threads
        )
        dumps[-2] = dumps[-2]._replace(threads=[self._known.setdefault(thread, thread) for thread in slim])

    def _finish(self, meter: LoadMeter) -> None:
        run = self.run
        run.elapsed_s = self.host.monotonic() - self._begun
        if self._by_thread:
            run.cpu_before = meter.before
        if run.ended == "exited":
            return
        run.load = meter.measure()
        if self._by_thread:
            run.cpu_after = meter.after
            seen = {thread.native_id for dump in run.dumps for thread in dump.threads}
            run.natives = meter.threads.names(run.cpu_after.keys() - seen)
