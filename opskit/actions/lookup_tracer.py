"""Trace failed lookups in a child process: set up, read at short intervals, identify processes while they live, remove."""

from __future__ import annotations

import errno
import os
import platform
import select
from collections import Counter
from typing import TYPE_CHECKING, Any, Optional

from opskit.actions.lookups_by_instance import InstanceSource, remove_stale
from opskit.actions.lookups_by_perf import PerfSource
from opskit.errors import NotPermitted, NotSupported
from opskit.proc.cgroup.owner import unit_of
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.files.status import parse_status
from opskit.proc.fs import DENIED, GONE, ProcFS
from opskit.proc.kernel import syscalls
from opskit.proc.kernel.ftrace import CALL_NUMBERS
from opskit.proc.process import read_process
from opskit.proc.rights import how_to_be_allowed
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.host import Host
    from opskit.proc.kernel.ftrace import Failure
    from opskit.proc.process import Process

_TRACEFS, _DEBUGFS = "/sys/kernel/tracing", "/sys/kernel/debug"
_PAUSE_S = 0.05
_PEEKED, _PEEK_S, _PATHS = 3, 0.15, 3  # the busiest processes, the time for each, the paths of each
_OWN_ROW = 0.05  # of all lookups: an ended process that did less shares the row of its command


def mount_tracing() -> str:
    """Mount tracefs where no other process sees it; the directory lasts as long as this process.

    Raises NotPermitted, NotSupported.
    """
    try:
        return f"/proc/self/fd/{syscalls.mount_detached('tracefs')}"
    except OSError as error:
        # Linux before 5.2 has no mounts without a path, before 4.1 no tracefs; a sandbox may answer ENOSYS or EPERM.
        if error.errno not in (errno.ENOSYS, errno.ENODEV):
            raise _forbidden("mount tracefs", error) from None
    try:
        syscalls.enter_private_mounts()
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise NotSupported(
                "cannot keep its mounts to itself: the root directory here is no mount point (a chroot), and this kernel "
                "is older than Linux 5.2; run opskit dentry --culprit outside of the chroot"
            ) from None
        raise _forbidden("take a private mount namespace", error) from None
    last = OSError(errno.ENOENT, "no such directory")
    for fs_type, directory, below in (("tracefs", _TRACEFS, ""), ("debugfs", _DEBUGFS, "/tracing")):
        try:
            syscalls.mount(fs_type, directory)
        except OSError as error:
            if error.errno != errno.EBUSY:  # it is mounted there already
                last = error
                continue
        if os.path.isdir(f"{directory}{below}/instances"):
            return directory + below
    if last.errno in (errno.EPERM, errno.EACCES):
        raise _forbidden("mount tracefs", last)
    raise NotSupported(
        f"this kernel has no tracefs to mount on {_TRACEFS} ({last.strerror}; CONFIG_FTRACE): the processes that look "
        "up absent files cannot be named here"
    )


def clean_up(killed: int) -> None:
    """Remove the tracing instance of a child that was killed, and those of earlier runs."""
    remove_stale(mount_tracing(), killed=killed)


def _forbidden(what: str, error: OSError) -> NotPermitted:
    """The refusal of a step that needs CAP_SYS_ADMIN over the whole machine."""
    advice = how_to_be_allowed(ProcFS(), "CAP_SYS_ADMIN", "opskit", "dentry", "--culprit")
    return NotPermitted(f"cannot {what} ({error.strerror}); {advice}")


class _Tally(NamedTuple):
    """The lookups of one process, or of the ended processes of one command; `process` None where none was seen alive."""

    process: Process | None
    pids: set[int]
    calls: Counter[str]

    @property
    def ended(self) -> bool:
        return self.process is None or self.process.state is None

    @property
    def lookups(self) -> int:
        return sum(self.calls.values())

    def add(self, pids: Iterable[int], calls: dict[str, int]) -> None:
        self.pids.update(pids)
        self.calls.update(calls)


_Key = tuple[Optional[int], Optional[int], str]  # PID, start time, command


class Tracer:
    """Trace for some seconds, or until `stop` (an fd) is readable or closed. `events`: the sources to try, best first."""

    def __init__(self, host: Host, seconds: float, events: tuple[str, ...], stop: int) -> None:
        self.host, self.seconds, self.events, self.stop = host, seconds, events, stop
        # By thread and comm: a shell that executes another program is looked at again.
        self.threads: dict[tuple[bytes, int], Process | None] = {}
        self.last: dict[int, Process] = {}
        self.units: dict[int, str | None] = {}

    def run(self) -> dict[str, Any]:
        """Trace; what the parent makes `Lookups` of, fit for JSON."""
        tracing = mount_tracing()
        remove_stale(tracing)
        source = self._source(tracing)
        try:
            return self._trace(source)
        finally:
            source.close()

    def _source(self, tracing: str) -> PerfSource | InstanceSource:
        ours = (os.getpid(), os.getppid())
        groups = tuple(events for events in self.events if events != "perf")
        if "perf" in self.events:
            try:
                return PerfSource(tracing, self.host.fs, ours)
            except (OSError, NotSupported):
                if not groups:
                    raise
        return InstanceSource(tracing, groups, ours)

    def _trace(self, source: PerfSource | InstanceSource) -> dict[str, Any]:
        begun = self.host.monotonic()
        end = begun + self.seconds
        while (left := end - self.host.monotonic()) > 0 and not self._told_to_stop(min(left, _PAUSE_S)):
            self._identify(source.read())
        took = self.host.monotonic() - begun
        self._identify(source.finish())
        rows = [self._row(key, tally) for key, tally in self._tallies(source).items()]
        rows.sort(key=lambda row: (-row["lookups"], row["pid"] or 0, row["command"]))
        for row in [row for row in rows if not row["ended"]][:_PEEKED]:
            call, tid = self._busiest_thread(source, row["pid"])
            row["paths"] = source.paths(call, tid, self.host.monotonic, _PEEK_S, _PATHS)
        total, counted = source.counted()
        return {"seconds": took, "total": total, "counted": counted, "events": source.events, "lookers": rows}

    def _told_to_stop(self, pause_s: float) -> bool:
        return bool(select.select([self.stop], [], [], pause_s)[0])

    def _identify(self, seen: Iterable[tuple[bytes, int, int | None]]) -> None:
        """Look up the processes of threads (comm, TID, PID where known) that are new."""
        for comm, tid, pid in seen:
            if (comm, tid) not in self.threads:
                self.threads[comm, tid] = self._process_of(tid, pid)

    def _process_of(self, tid: int, pid: int | None) -> Process | None:
        """The process of a thread; None where it has ended."""
        fs = self.host.fs
        try:
            if pid is None:
                pid = int(fs.load(parse_status, tid, "status").fields["Tgid"])
            process = read_process(fs, pid, str)
            self.units[pid] = unit_of(fs.load(parse_cgroup, pid, "cgroup"))
        except (*GONE, DENIED):
            return None
        return None if process.start_ticks is None else process

    def _busiest_thread(self, source: PerfSource | InstanceSource, pid: int) -> tuple[str, int]:
        """The system call of a process with the most failed lookups, and the TID of the thread that makes it."""
        events: dict[tuple[str, int], float] = {}
        for failure, count in source.failures():
            process = self.threads.get((failure.comm, failure.tid))
            if process is not None and process.pid == pid:
                event = _call(failure), failure.tid
                events[event] = events.get(event, 0.0) + count
        return max(events, key=lambda event: events[event])

    def _tallies(self, source: PerfSource | InstanceSource) -> dict[_Key, _Tally]:
        """Lookups by process, those of ended processes with few lookups by command."""
        found: dict[_Key, _Tally] = {}
        for failure, count in source.failures():
            process = self._now(self.threads.get((failure.comm, failure.tid)))
            if process is None:
                key: _Key = (None, None, failure.comm.decode("utf-8", "surrogateescape"))
            else:
                key = (process.pid, process.start_ticks, process.command)
            pid = (failure.pid or failure.tid) if process is None else process.pid
            found.setdefault(key, _Tally(process, set(), Counter())).add([pid], {_call(failure): round(count)})
        little = _OWN_ROW * sum(tally.lookups for tally in found.values())
        for key, tally in list(found.items()):
            if tally.ended and key[0] is not None and tally.lookups < little:
                del found[key]
                together = found.setdefault((None, None, key[2]), _Tally(tally.process, set(), Counter()))
                together.add(tally.pids, tally.calls)
        return found

    def _now(self, process: Process | None) -> Process | None:
        """A process as it is now (it may have executed another program); `state` None where it has ended."""
        if process is None:
            return None
        if process.pid not in self.last:
            self.last[process.pid] = read_process(self.host.fs, process.pid, str)
        now = self.last[process.pid]
        alive = now.start_ticks == process.start_ticks and not now.has_ended
        return now if alive else process._replace(state=None)

    def _row(self, key: _Key, tally: _Tally) -> dict[str, Any]:
        pid, _, command = key
        return {
            "pid": pid,
            "command": command,
            "uid": None if tally.process is None else tally.process.uid,
            "unit": None if pid is None else self.units.get(pid),
            "processes": len(tally.pids),
            "lookups": tally.lookups,
            "calls": dict(tally.calls.most_common()),
            "paths": [],
            "ended": tally.ended,
        }


def _call(failure: Failure) -> str:
    if failure.name is not None:
        return failure.name
    return CALL_NUMBERS.get(platform.machine(), {}).get(failure.number or 0, f"system call {failure.number}")
