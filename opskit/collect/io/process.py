"""Read how one process reads and writes over a window: counters of all threads at its ends, looks at the most active ones in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.given_pids import GivenPids
from opskit.collect.io.cgroup import cgroup_io, host_shares, read_moment
from opskit.collect.io.counters import changes, ended_rates, rates_of, read_counters, total_rates
from opskit.collect.io.devices import added
from opskit.collect.io.facts import Facts, Thread
from opskit.collect.io.looks import Looks
from opskit.collect.io.positions import Positions
from opskit.collect.io.sampling import Sampler, activity
from opskit.collect.windows import Windows
from opskit.errors import NotPermitted, NotSupported
from opskit.proc.fd_waits import inner_id
from opskit.proc.files.io import ProcIo
from opskit.proc.files.meminfo import parse_meminfo
from opskit.proc.fs import DENIED, GONE
from opskit.proc.rights import how_to_be_allowed
from opskit.proc.thread_names import thread_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.collect.io.cgroup import Moment
    from opskit.collect.io.counters import Change, Reading
    from opskit.collect.io.facts import Request, Step
    from opskit.host import Host
    from opskit.jvm.dumps.thread_dump import Thread as JavaThread

_MOST_ROWS, _MOST_FILES = 1000, 100
_MOST_FDS, _MOST_FDS_WATCHED = 2000, 500
_SLACK, _PAGE = 1.1, 4096


class ProcessReader:
    """Looks at one process: once, or again and again for a watch, where each window begins where the last one ended."""

    def __init__(self, host: Host, ask: Request, *, watch: bool) -> None:
        """Check the request. Raises NoSuchProcess, NotSupported for a copy."""
        self._host, self._ask, self._watch, self._pid = host, ask, watch, ask.pid or 0
        host.prove_moving("opskit io")
        self._given = GivenPids(host, (self._pid,), "io")
        self._looks = Looks(host, self._pid)
        self._positions = Positions(host, self._pid, _MOST_FDS_WATCHED if watch else _MOST_FDS)
        self._sampler = Sampler(host, self._pid, self._looks, self._positions, watch=watch)
        self._last: Reading | None = None
        self._moment: Moment | None = None
        self._windows = Windows(host, ask.window_s, watch=watch)
        self._dump: Mapping[int, JavaThread] | None = None
        self._is_jvm: bool | None = None

    def look(self) -> Facts:
        """Read one window. Raises NoSuchProcess, NotPermitted where its counters may not be read, NotSupported."""
        self._given.living()
        try:
            facts = self._look()
            if facts.process is not None and facts.process.has_ended:
                self._given.living()
            return facts
        except GONE as error:
            self._given.living()
            raise NotSupported(
                f"{error.filename}: {error.strerror}; this kernel does not count the I/O of processes (CONFIG_TASK_IO_ACCOUNTING)"
            ) from None
        except DENIED:
            who = self._host.process(self._pid)
            remedy = how_to_be_allowed(self._host.fs, "CAP_SYS_PTRACE", "opskit", "io", self._pid, pid=self._pid)
            what = f"the I/O counters of {self._pid} ({who.command}, user {who.user or 'unknown'})"
            raise NotPermitted(f"cannot read {what}: permission denied; {remedy}") from None

    def _look(self) -> Facts:
        host, pid = self._host, self._pid
        begun_s = host.monotonic()
        before, first = self._moment or read_moment(host, pid), self._last or read_counters(host, pid)
        steps = self._sampler.run(first, self._ask.window_s, self._windows.end_s(begun_s))
        sampled_s = host.monotonic()
        last = read_counters(host, pid)
        self._positions.choose(ends=True)
        after = read_moment(host, pid)
        moved = changes(first, last)
        facts = self._facts(first, last, moved, steps)
        shares = host_shares(before, after)
        self._last, self._moment = (last, after) if self._watch else (None, None)
        self._positions.begin()
        self._sampler.choose(moved)
        self._windows.look_done(sampled_s)
        return facts._replace(
            cgroup=cgroup_io(host.fs, before, after),
            host_some=shares.some,
            host_full=shares.full,
            stored_pages=added(before.stored_pages, after.stored_pages),
        )

    def _facts(self, first: Reading, last: Reading, moved: Mapping[int, Change], steps: tuple[Step, ...]) -> Facts:
        window_s = last.at_s - first.at_s
        total, ended = total_rates(moved), ended_rates(first, last, moved)
        tracks = self._looks.tracks
        chosen = sorted(moved, key=lambda tid: -activity(moved[tid].rates))[:_MOST_ROWS]
        chosen += [tid for tid, track in tracks.items() if tid not in moved and track.in_d]
        missing: list[str] = []
        java = self._java(missing) if self._ask.ask else {}
        threads = [self._thread(tid, moved.get(tid), java) for tid in chosen]
        seen: dict[int, set[int]] = {}
        for tid in chosen:
            for (_, fd), _ in tracks[tid].seen.items() if tid in tracks else ():
                if fd is not None:
                    seen.setdefault(fd, set()).add(tid)
        both = [total] if ended is None else [total, ended]
        read, written = (
            sum(getattr(each, name) for each in both) * window_s * _SLACK + _PAGE
            for name in ("read_bytes", "written_bytes")
        )
        files = self._positions.files(window_s, (read, written), seen, _MOST_FILES)
        missing += self._missing()
        memory = self._host.fs.maybe(parse_meminfo, "meminfo", default={})
        return Facts(
            self._host.process(self._pid), window_s, tuple(each for each in threads if each is not None), files,
            total=total, is_jvm=self._jvm(), asked=self._ask.ask, missing=tuple(missing),
            dirty_bytes=memory.get("Dirty"), available_bytes=memory.get("MemAvailable"), writeback_bytes=memory.get("Writeback"),
            steps=steps, looks=max((track.looks for track in tracks.values()), default=0),
            thread_total=len(last.threads), ended=ended, stalled_total=self._sampler.stalled_total, unmoved=self._positions.unmoved({file.fd for file in files}),
        )  # fmt: skip

    def _thread(self, tid: int, change: Change | None, java: Mapping[int, JavaThread]) -> Thread | None:
        fs, pid = self._host.fs, self._pid
        name = thread_name(fs, pid, tid)
        thread = java.get(inner_id(fs, pid, tid)) if java else None
        if thread is not None and thread.name:
            name = thread.name
        track = self._looks.tracks.get(tid)
        rates = rates_of(ProcIo(0, 0), 1.0) if change is None else change.rates
        if track is None:
            return Thread(tid, name or "?", rates, 0, started=change is not None and change.started)
        user, system, waited, faults = track.use(self._host.clock_ticks)
        return Thread(
            tid, name or "?", rates, track.looks, track.calls(), track.stalls(),
            tuple(thread.stack.frames) if thread is not None else (), waited if self._counts_waits else None, user, system, faults,
            self._looks.asleep_s(tid),
            change is not None and change.started,
        )  # fmt: skip

    @property
    def _counts_waits(self) -> bool:
        """Whether the kernel counts waits for storage: kernel.task_delayacct; before Linux 5.14 it always does."""
        return self._host.sysctl("kernel", "task_delayacct") != 0

    def _missing(self) -> list[str]:
        missing = []
        if self._looks.denied:
            remedy = how_to_be_allowed(self._host.fs, "CAP_SYS_PTRACE", "opskit", "io", self._pid, pid=self._pid)
            missing.append(f"the system calls of its threads are unknown: permission denied; {remedy}")
        if self._positions.left_out:
            missing.append(
                f"{self._positions.left_out:,} of its file descriptors were not looked at: those with the highest numbers"
            )
        return missing

    def _jvm(self) -> bool:
        """Whether it is a JVM."""
        if self._is_jvm is None:
            from opskit.jvm.mapped_files import parse_jvm_maps

            maps = self._host.fs.maybe(parse_jvm_maps, self._pid, "maps")
            self._is_jvm = maps is not None and maps.is_jvm
        return self._is_jvm

    def _java(self, missing: list[str]) -> Mapping[int, JavaThread]:
        """The threads of one dump; in a watch of the first one, since it pauses the JVM."""
        if self._dump is None:
            from opskit.collect.java_threads import java_threads

            self._dump = java_threads(self._host, self._pid, missing)
        return self._dump
