"""Profile a JVM from inside, by an async-profiler that the user has: the JVM loads its library through the attach listener.

    load LIBRARY true start,event=ctimer,interval=10101010,timeout=20,…,log=FILE      "return code: 0"
    load LIBRARY true stop,collapsed,…,file=FILE,log=FILE

The copy of the library has a profiler's state of its own, so that `stop` never ends the session of someone else. `timeout` ends
a session whose opskit was killed. The JVM writes the stacks also when it ends by itself. A library stays mapped: the next run
names the same path, for which glibc finds the mapped one without opening a file.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, Optional

from opskit.actions import leftovers
from opskit.actions.private_directory import PLACES, PrivateDirectory
from opskit.collect.asprof import UNITS, AsprofProfile, Stacks, read_stacks
from opskit.collect.asprof_library import Library, Mapped, check_fits, is_same, mapped_libraries, read_library
from opskit.collect.cpu_profile import CpuProfile, ThreadOnCpu
from opskit.errors import AttachError, NoSuchProcess, NotSupported, OpskitError
from opskit.interrupts import Guard, Interruptible
from opskit.jvm.attach.client import AttachClient
from opskit.jvm.attach.listener import as_user
from opskit.jvm.attach.target import has_listener, names_threads
from opskit.jvm.attach.wire import decode
from opskit.proc.files.maps import parse_maps
from opskit.proc.files.stat import parse_stat
from opskit.proc.fs import READ_ONLY, optional
from opskit.proc.thread_cpu import ThreadCpu
from opskit.quantities import signed, size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.collect.asprof import AsprofRequest, Event
    from opskit.host import Host
    from opskit.jvm.attach.target import AttachTarget
    from opskit.proc.thread_cpu import ThreadTimes

_LOAD_S = 60.0  # it reads the symbols of all libraries first
_GRACE_S = 10
_LOOK_S = 0.2
_LARGEST_OUTPUT_BYTES, _LARGEST_LOG_BYTES = 256 << 20, 1 << 20
_STYLE = "collapsed,threads,ann,dot,norm"
_LIBRARY, _STACKS, _LOG, _ANSWER = "libasyncProfiler.so", "stacks", "log", "answer"
# Their samples may be of the kernel, whose frames are then missing.
_NO_KERNEL: dict[Event, str] = {
    "ctimer": "the event ctimer samples no kernel frames: their time is in the frames that called the kernel; --event cpu samples them "
    "where the JVM may use perf events",
    "cpu": "no kernel frames: kernel.perf_event_paranoid or a container hides them from the JVM, or it did not enter the kernel",
}
_CODE = re.compile(rb"(?:return code: |^)(-?[0-9]{1,10})$", re.MULTILINE)  # before JDK 9 the number alone
_SAID = re.compile(r"\[(WARN|ERROR)\] (.{1,500})")
Ended = Optional[Literal["interrupted", "exited"]]
_ALREADY = "already started"


def profile_by_asprof(host: Host, ask: AsprofRequest) -> AsprofProfile:
    """Load the library into the JVM, profile for `duration_s` or until Ctrl-C, read the stacks, remove the files.

    Raises NotPermitted, NotSupported, NotAJvm, NoSuchProcess, AttachError, BadInput.
    """
    host.prove_own(ask.pid)
    client = AttachClient(host.fs, ask.pid, _LOAD_S)
    target = client.target
    library = read_library(ask.library)
    check_fits(host.fs, target, library)
    with Guard():
        place, in_place = _place(host, target, library)
        try:
            session = _Session(host, client, library, place, ask, in_place=in_place)
            try:
                with Interruptible():
                    session.prepare()
                return session.run()
            finally:
                session.close_log()
        finally:
            place.remove()


def _place(host: Host, target: AttachTarget, library: Library) -> tuple[PrivateDirectory, bool]:
    """A directory for our files, and whether the library is loaded from where it is: every place for a copy is mounted noexec."""
    try:
        return PrivateDirectory(host, target, executable=True), False
    except AttachError:
        if not _sees(host, target, library.path):
            raise
        return PrivateDirectory(host, target, executable=False), True


def _sees(host: Host, target: AttachTarget, path: str) -> bool:
    """Whether a path is the same file for the JVM, which may read it and map its code."""
    try:
        inside = host.fs.inside(target.pid, path)
        fd = as_user(target, lambda: os.open(inside, READ_ONLY | os.O_NOFOLLOW))
        try:
            is_same_file = os.path.samestat(os.fstat(fd), os.stat(path))
            return is_same_file and not os.fstatvfs(fd).f_flag & os.ST_NOEXEC
        finally:
            os.close(fd)
    except OSError:
        return False


class _Session:
    """One session in one JVM. Called in a Guard. `in_place`: the library is loaded from where it is."""

    def __init__(
        self, host: Host, client: AttachClient, library: Library, place: PrivateDirectory, ask: AsprofRequest,
        *, in_place: bool,
    ) -> None:  # fmt: skip
        self.host, self.client, self.library, self.place, self.ask = host, client, library, place, ask
        self._in_place = in_place
        self.target: AttachTarget = client.target
        self.event: Event = "cpu" if ask.event == "ctimer" and not library.has_ctimer else ask.event
        self.notes: dict[str, None] = {}
        self.version: str | None = None
        self.log = self.stacks = self.answer = self.path = ""
        self._asked = self._started = False
        self._listened = _listens(host, client.target)
        self._threads = ThreadCpu(host.fs, ask.pid, host.clock_ticks)

    def prepare(self) -> None:
        """Put the library where the JVM can load it, and load it. Raises NotSupported where a session is running."""
        self.log, self.stacks, self.answer = map(self.place.receive, (_LOG, _STACKS, _ANSWER))
        mapped = mapped_libraries(self.host.fs, self.target.pid)
        for each in mapped:
            self._check_free(each)
        again = next((each.path for each in mapped if self._can_be_used_again(each)), None)
        try:
            self._load_as(again or self._put())
        except NotSupported:
            if again is None:
                raise
            self._load_as(self._put())
        said = decode(self.place.read(_ANSWER, _LARGEST_LOG_BYTES)).strip()
        self.version = said if re.fullmatch(r"[0-9][\w.+-]{0,30}", said) else None

    def _put(self) -> str:
        return self.library.path if self._in_place else self.place.put(_LIBRARY, self.library.data)

    def _load_as(self, path: str) -> None:
        self.path = path
        self._load(f"version,file={self.answer},log={self.log}", "load")

    def _check_free(self, mapped: Mapped) -> None:
        """Raise NotSupported where an opskit is profiling the JVM, or another one's session is running."""
        who = self.target.who
        if _is_copy(mapped):
            if not mapped.deleted:
                raise NotSupported(
                    f"another opskit is profiling {who} by async-profiler ({mapped.path}): wait for its end"
                )
        elif not mapped.deleted:
            with suppress(AttachError):  # it refuses to say
                self.client.execute("load", mapped.path, "true", f"status,file={self.answer}")
            said = decode(self.place.read(_ANSWER, _LARGEST_LOG_BYTES)).strip()
            if "running" in said:
                raise NotSupported(
                    f"async-profiler is already profiling {who}, by {mapped.path} ({said[:100]}): wait for its end, or stop it "
                    "with its own asprof"
                )

    def _can_be_used_again(self, mapped: Mapped) -> bool:
        """Whether glibc finds this mapped copy by its path. Where a link leads there it would open the file, which anyone may have made."""
        fs, pid = self.host.fs, self.target.pid
        place = mapped.path.rpartition("/")[0].rpartition("/")[0]
        if not (mapped.deleted and _is_copy(mapped) and place in PLACES):
            return False
        space = fs.maybe(parse_maps, pid, "maps")
        is_glibc = space is not None and space.glibc is not None
        direct = optional(fs.inside, pid, place) == fs.path(pid, "root") + place
        return is_glibc and direct and is_same(fs, pid, mapped, self.library)

    def run(self) -> AsprofProfile:
        """Start, wait, stop, read. No signal interrupts the stop."""
        before = self._look()
        ended: Ended = None
        try:
            with Interruptible():
                self._start()
                ended = self._wait(before.at_s)
        except KeyboardInterrupt:
            ended = "interrupted"
            if not self._started:
                raise
        finally:
            after = self._look()
            if self._asked and ended != "exited":
                ended = "exited" if self._stop() else ended
        text = decode(self.place.read(_STACKS, _LARGEST_OUTPUT_BYTES))
        per_sample = self._interval_ns if self.event == "ctimer" else 1
        stacks = read_stacks(text, f"{self.place.path}/{_STACKS}", per_sample)
        if ended == "exited" and not stacks.stacks:
            raise NoSuchProcess(self.target.pid, "the JVM was killed, and async-profiler wrote nothing")
        return self._profile(stacks, ended, before, after)

    @property
    def _interval_ns(self) -> int:
        return round(1e9 / self.ask.hz)

    def _start(self) -> None:
        self._asked = True
        timeout = int(self.ask.duration_s) + 1 + _GRACE_S
        try:
            self._load(f"start,{self._options},timeout={timeout}", "start")
        except NotSupported:
            self._asked = False  # it refused: whatever runs is not ours
            raise
        self._started = True

    @property
    def _options(self) -> str:
        event = f"event={self.event}"  # by default a sample of 512 KiB allocated, of 10 us waited
        if UNITS[self.event] == "samples":
            event += f",interval={self._interval_ns}"
        # The timers of ctimer are as coarse as the kernel's ticks: only the sum counts the intervals that passed in between.
        counted = ",total" if self.event == "ctimer" or UNITS[self.event] != "samples" else ""
        return f"{event}{counted},{_STYLE},file={self.stacks},log={self.log}"

    def _wait(self, begun: float) -> Ended:
        while (left := begun + self.ask.duration_s - self.host.monotonic()) > 0:
            self.host.sleep(min(left, _LOOK_S))
            if self._has_ended():
                return "exited"
        return None

    def _stop(self) -> bool:
        """Stop the session and have the stacks written. True: the JVM has ended, and did so itself."""
        try:
            self._load(f"stop,{self._options}", "stop")
        except NoSuchProcess:
            return True
        except OpskitError:
            if self._has_ended():
                return True
            if self._started:
                raise
        return False

    def close_log(self) -> None:
        """Have the library close the log, which it otherwise keeps open in the JVM."""
        if self.path and not self._has_ended():
            with suppress(OpskitError):
                self.client.execute("load", self.path, "true", f"status,file={self.answer},loglevel=none")

    def _has_ended(self) -> bool:
        process = self.host.process(self.target.pid)
        return process.has_ended or process.start_ticks != self.target.jvm.start_ticks

    def _load(self, options: str, what: str) -> None:
        """Have the JVM load the library and pass it the options. Raises NotSupported with what the profiler or the JVM said."""
        code: int | None
        try:
            reply = self.client.execute("load", self.path, "true", options)
            found = _CODE.search(reply)
            code, said = (0 if not reply.strip() else None) if found is None else signed(found[1]), decode(reply)
        except AttachError as error:
            if error.reason != "command-failed":
                raise
            code, said = None, str(error.facts.get("said", ""))
        logged = _SAID.findall(decode(self.place.read(_LOG, _LARGEST_LOG_BYTES)))
        self.notes.update(
            dict.fromkeys(text for level, text in logged if level == "WARN" and "Unknown argument" not in text)
        )
        if code != 0:
            errors = [text for level, text in logged if level == "ERROR"] or [said.strip()[:500] or "no message"]
            raise NotSupported(self._why(what, "; ".join(errors)))

    def _why(self, what: str, said: str) -> str:
        who = self.target.who
        if _ALREADY in said:
            return (
                f"async-profiler is already profiling {who} for another opskit, or one that was killed: try again later"
            )
        return f"async-profiler ({self.library.path}) failed to {what} in {who}: {said}"

    def _look(self) -> _Moment:
        stat = self.host.fs.maybe(parse_stat, self.target.pid, "stat")
        ticks = None if stat is None else stat.user_ticks + stat.system_ticks
        return _Moment(self.host.monotonic(), self._threads.read(), ticks)

    def _profile(self, stacks: Stacks, ended: Ended, before: _Moment, after: _Moment) -> AsprofProfile:
        ticks = None if before.ticks is None or after.ticks is None else after.ticks - before.ticks
        jvm = self.target.jvm
        kernel = any(frame.kind == "kernel" for key in stacks.stacks for frame in key.frames)
        without_kernel = self.event in _NO_KERNEL and not kernel
        profile = CpuProfile(
            pid=jvm.pid,
            start_ticks=jvm.start_ticks,
            name=jvm.main,
            hz=self.ask.hz,
            elapsed_s=after.at_s - before.at_s,
            threads=_threads(stacks, before.threads, after.threads),
            stacks=stacks.stacks,
            lost=0,
            ends=stacks.ends,
            cpu_ms=None if ticks is None else ticks * 1000 / self.host.clock_ticks,
            scope="threads",
            kernel_seen=not without_kernel,
            missing=(_NO_KERNEL[self.event],) if without_kernel else (),
            ended=ended,
        )
        unit = UNITS[self.event]
        return AsprofProfile(
            profile, self.event, unit, self.library.path, self.version, self._stays(), tuple(self.notes)
        )

    def _stays(self) -> tuple[str, ...]:
        if self._has_ended():
            return ()
        mapped = mapped_libraries(self.host.fs, self.target.pid)  # empty where we may not see them
        sizes = [f" ({size(each.size_bytes)} mapped)" for each in mapped if each.path == self.path]
        name = " ".join(filter(None, ("async-profiler", self.version)))
        stays = f"{name} stays loaded in the JVM until it ends{''.join(sizes[:1])}"
        return (
            (stays,) if self._listened else (stays, "the attach listener of the JVM, which this run started, stays too")
        )


def _listens(host: Host, target: AttachTarget) -> bool:
    """Whether its attach listener runs: by the thread's name, before JDK 9 by its socket."""
    if names_threads(target.java_major):
        return has_listener(host.fs, target.pid)
    tmp = optional(host.fs.inside, target.pid, PLACES[0])
    return tmp is not None and optional(host.fs.file_id_at, f"{tmp}/{target.socket_name}") is not None


class _Moment(NamedTuple):
    at_s: float
    threads: ThreadTimes
    ticks: int | None


def _threads(stacks: Stacks, before: ThreadTimes, after: ThreadTimes) -> dict[int, ThreadOnCpu]:
    """The threads of the run, by TID: those that it sampled, with what the kernel counted for them."""
    samples: Counter[int] = Counter()
    for key, count in stacks.stacks.items():
        samples[key.tid] += count

    def delta(first: Mapping[int, float], last: Mapping[int, float], tid: int) -> float | None:
        return last[tid] - first.get(tid, 0.0) if tid in last else None

    return {
        tid: ThreadOnCpu(
            stacks.names.get(tid, ""), delta(before.used_ms, after.used_ms, tid),
            delta(before.waited_ms, after.waited_ms, tid), count,
        )
        for tid, count in samples.items()
    }  # fmt: skip


def _is_copy(mapped: Mapped) -> bool:
    """Whether an opskit made it."""
    return mapped.path.rpartition("/")[0].rpartition("/")[2].startswith(leftovers.PREFIX)
