"""Name the processes that look up absent files, from a few seconds of the kernel's tracepoints.

A child process traces. It mounts tracefs where no path leads to it, and counts failed path lookups by perf events, which
end with the child: when the time is up, the parent asks it to, or the parent has ended. Where perf_event_open is refused,
it makes a tracing instance and removes it at the end; if it is killed, another child of the parent or the next run does.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import sys
from collections import Counter, defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, Optional

from opskit import interrupts
from opskit.actions.child import run_in_child
from opskit.actions.lookups_by_instance import InstanceSource, remove_stale
from opskit.actions.lookups_by_perf import PerfSource
from opskit.analysis.dentry.lookups import Looker, Lookups
from opskit.errors import BugInChild, NotPermitted, NotSupported, TargetTimeout, where_raised
from opskit.proc.cgroup.owner import unit_of
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.files.status import parse_status
from opskit.proc.fs import DENIED, GONE, ProcFS
from opskit.proc.kernel import syscalls
from opskit.proc.kernel.children import fork
from opskit.proc.namespaces import in_initial
from opskit.proc.process import read_process
from opskit.proc.rights import how_to_be_allowed
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.host import Host
    from opskit.proc.kernel.ftrace import Seen
    from opskit.proc.process import Process

_TO_TRACE = ("CAP_SYS_ADMIN", "opskit", "dentry", "--culprit")
_EVENTS = ("perf", "syscalls", "raw_syscalls")
_GRACE_S = 20.0  # for setting up and removing
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_ERRORS = {error.__name__: error for error in (NotPermitted, NotSupported, BugInChild)}
_TRACEFS, _DEBUGFS = "/sys/kernel/tracing", "/sys/kernel/debug"
_PAUSE_S = 0.05
_PEEKED = 3  # the busiest processes
_OWN_ROW = 0.05  # of all lookups: an ended process that did less shares the row of its command


def check_may_trace(host: Host) -> None:
    """Raise NotPermitted unless we may trace this machine and its PIDs are the kernel's own."""
    host.prove_here("--culprit")
    if not host.is_own:
        raise NotPermitted(f"{host.fs.proc} is another machine or pid namespace: --culprit can only trace this one")
    if in_initial(host.fs, "pid") is False:
        raise NotPermitted(
            "this is a pid namespace (a container): the kernel traces by the host's PIDs, which differ from those here; "
            "run opskit dentry --culprit on the host"
        )
    if not host.is_root:
        raise NotPermitted(f"tracing needs root; {how_to_be_allowed(host.fs, *_TO_TRACE)}")


def trace_failed_lookups(host: Host, seconds: float, events: tuple[str, ...] = _EVENTS) -> Lookups:
    """Trace the whole machine. Ctrl-C, SIGTERM and SIGHUP end the trace early; the result holds what was seen so far.

    `events`: the sources to try, best first. Raises NotPermitted, NotSupported, TargetTimeout.
    """
    check_may_trace(host)
    results, result_end = os.pipe()
    stop_end, stop = os.pipe()
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        child = fork()
        if child == 0:
            os.close(results)
            os.close(stop)
            _run_child(lambda: Tracer(host, seconds, events, stop_end).run(), result_end)
        os.close(result_end)
        os.close(stop_end)
        answer = _answer_of(host, child, results, stop, seconds)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        os.close(results)
        os.close(stop)
    if "error" in answer:
        raise _ERRORS[answer["error"]](answer["message"])
    lookers = []
    for row in answer.pop("lookers"):
        uid, count = row.pop("uid"), row["lookups"]
        rates = {"per_s": count / max(answer["seconds"], 0.001), "share": count / max(answer["total"], 1)}
        lookers.append(Looker(user=None if uid is None else host.user_name(uid), **rates, **row))
    return Lookups(lookers=tuple(lookers), **answer)


def _answer_of(host: Host, child: int, results: int, stop: int, seconds: float) -> dict[str, Any]:
    """The child's answer. A signal that would end us first lets the child end and answer. Called with these blocked."""
    pending: list[int] = []

    def asked_to_end(number: int, _frame: object) -> None:
        pending.append(number)
        interrupts.note(number)
        os.write(stop, b"!")

    heard = [number for number in _ENDING if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, asked_to_end) for number in heard}
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        data = _read_until(host, results, host.monotonic() + seconds + _GRACE_S)
        if not data:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            with suppress(BugInChild):
                run_in_child(host, lambda: remove_stale(_mount_tracing(), killed=child), _GRACE_S)
            raise TargetTimeout("the tracer did not answer in time, or was killed; what it had set up was removed")
        os.waitpid(child, 0)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if signal.SIGQUIT in pending:
            os.kill(os.getpid(), signal.SIGQUIT)
    answer: dict[str, Any] = json.loads(data)
    return answer if "error" in answer else {**answer, "interrupted": bool(pending)}


def _read_until(host: Host, fd: int, deadline: float) -> bytes:
    data = b""
    while (left := deadline - host.monotonic()) > 0:
        if not select.select([fd], [], [], left)[0]:
            return b""
        chunk = os.read(fd, 65536)
        if not chunk:
            break
        data += chunk
    return data


def _run_child(work: Callable[[], dict[str, Any]], result_end: int) -> NoReturn:
    """Write the result of the work, or its error, to the pipe. Signals of the terminal are the parent's to handle."""
    try:
        for number in (*_ENDING, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        os.setsid()
        try:
            answer = work()
        except (NotPermitted, NotSupported) as refused:
            answer = {"error": type(refused).__name__, "message": str(refused)}
        except OSError as error:
            answer = {"error": "NotSupported", "message": f"the kernel's tracer refused: {error}"}
        except BaseException as error:  # noqa: BLE001  (the parent ends with it as with its own)
            answer = {"error": "BugInChild", "message": where_raised(error)}
            if os.environ.get("OPSKIT_DEBUG"):
                sys.excepthook(*sys.exc_info())
        with open(result_end, "w", encoding="utf-8") as pipe:
            json.dump(answer, pipe)
    except BrokenPipeError:  # the parent has ended
        pass
    finally:
        os._exit(0)


def _mount_tracing() -> str:
    """Mount tracefs where only this process sees it, as long as it lasts. Raises NotPermitted, NotSupported."""
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
                "cannot make its mounts private: the root directory here is not a mount point (a chroot), and this kernel "
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


def _forbidden(what: str, error: OSError) -> NotPermitted:
    return NotPermitted(f"cannot {what} ({error.strerror}); {how_to_be_allowed(ProcFS(), *_TO_TRACE)}")


class _Tally(NamedTuple):
    """The lookups of one process, or of the ended processes of one command; `process` None where it ended before it was read."""

    process: Process | None
    pids: set[int]
    calls: Counter[str]

    @property
    def ended(self) -> bool:
        return self.process is None or self.process.state is None

    @property
    def lookups(self) -> int:
        return sum(self.calls.values())


_Row = dict[str, Any]
_Key = tuple[Optional[int], Optional[int], str]  # PID, start time, command


class Tracer:
    """Trace for some seconds, or until `stop` (an fd) is readable or closed. `events`: the sources to try, best first."""

    def __init__(self, host: Host, seconds: float, events: tuple[str, ...], stop: int) -> None:
        self.host, self.seconds, self.events, self.stop = host, seconds, events, stop
        # By thread and comm: a shell that executes another program is looked at again.
        self.threads: dict[tuple[bytes, int], Process | None] = {}
        self.last: dict[int, Process] = {}
        self.units: dict[int, str | None] = {}

    def run(self) -> _Row:
        """Trace; the parts of `Lookups` as JSON values."""
        tracing = _mount_tracing()
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

    def _trace(self, source: PerfSource | InstanceSource) -> _Row:
        begun = self.host.monotonic()
        while (left := begun + self.seconds - self.host.monotonic()) > 0:
            if select.select([self.stop], [], [], min(left, _PAUSE_S))[0]:
                break
            self._identify(source.read())
        took = self.host.monotonic() - begun
        self._identify(source.finish())
        rows = [self._row(key, tally) for key, tally in self._tallies(source).items()]
        rows.sort(key=lambda row: (-row["lookups"], row["pid"] or 0, row["command"]))
        for row in [row for row in rows if not row["ended"]][:_PEEKED]:
            row["paths"] = source.paths(*self._busiest_thread(source, row["pid"]), self.host.monotonic)
        total, counted = source.counted()
        return {"seconds": took, "total": total, "counted": counted, "events": source.events, "lookers": rows}

    def _identify(self, seen: Seen) -> None:
        for comm, tid, pid in seen:
            if (comm, tid) not in self.threads:
                self.threads[comm, tid] = self._process_of(tid, pid)

    def _process_of(self, tid: int, pid: int | None) -> Process | None:
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
        events: dict[tuple[str, int], float] = defaultdict(float)
        for failure, count in source.failures():
            process = self.threads.get((failure.comm, failure.tid))
            if process is not None and process.pid == pid:
                events[failure.call, failure.tid] += count
        return max(events, key=events.__getitem__)

    def _tallies(self, source: PerfSource | InstanceSource) -> dict[_Key, _Tally]:
        """Lookups by process, those of ended processes with few lookups by command."""
        found: dict[_Key, _Tally] = {}
        for failure, count in source.failures():
            process = self._now(self.threads.get((failure.comm, failure.tid)))
            if process is None:
                pid = failure.pid or failure.tid
                key: _Key = (None, None, failure.comm.decode("utf-8", "surrogateescape"))
            else:
                pid, key = process.pid, (process.pid, process.start_ticks, process.command)
            tally = found.setdefault(key, _Tally(process, set(), Counter()))
            tally.pids.add(pid)
            tally.calls[failure.call] += round(count)
        little = _OWN_ROW * sum(tally.lookups for tally in found.values())
        for key, tally in list(found.items()):
            if tally.ended and key[0] is not None and tally.lookups < little:
                del found[key]
                together = found.setdefault((None, None, key[2]), _Tally(tally.process, set(), Counter()))
                together.pids.update(tally.pids)
                together.calls.update(tally.calls)
        return found

    def _now(self, process: Process | None) -> Process | None:
        """A process as it is now (it may have executed another program); `state` None where it has ended."""
        if process is None:
            return None
        now = self.last.get(process.pid) or read_process(self.host.fs, process.pid, str)
        self.last[process.pid] = now
        alive = now.start_ticks == process.start_ticks and not now.has_ended
        return now if alive else process._replace(state=None)

    def _row(self, key: _Key, tally: _Tally) -> _Row:
        pid, _, command = key
        uid, unit = tally.process and tally.process.uid, None if pid is None else self.units.get(pid)
        who: _Row = {
            "pid": pid,
            "command": command,
            "uid": uid,
            "unit": unit,
            "processes": len(tally.pids),
            "paths": [],
        }
        return {**who, "lookups": tally.lookups, "calls": dict(tally.calls.most_common()), "ended": tally.ended}
