"""Who fails to find files: a few seconds of the kernel's own tracepoints, of which nothing stays.

A child does it: it takes mounts of its own (tracefs need not be mounted, and nobody sees that it is), and counts failed path
lookups by perf events, which end with the child however that ends. It stops when the time is up, when the parent tells it
to, and when the parent is gone.

Where perf_event_open is refused (a security module, a seccomp filter, an unknown machine) the child makes a tracing
instance instead and removes it at the end. Should the child be killed, the parent sends another one to clean up; and what
two kills left behind, the next run removes.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import select
import signal
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from opskit import interrupts
from opskit.actions.lookups_by_instance import InstanceSource, remove_stale
from opskit.actions.lookups_by_perf import PerfSource
from opskit.errors import BugInChild, NotPermitted, NotSupported, TargetTimeout, where_raised
from opskit.proc.cgroup.owner import unit_of
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.files.status import parse_status
from opskit.proc.fs import DENIED, GONE, ProcFS
from opskit.proc.kernel import syscalls
from opskit.proc.kernel.ftrace import CALL_NUMBERS
from opskit.proc.namespaces import in_first_pid_namespace
from opskit.proc.process import read_process
from opskit.proc.rights import how_to_be_allowed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opskit.host import Host
    from opskit.proc.kernel.ftrace import Failure
    from opskit.proc.process import Process

_TRACEFS, _DEBUGFS = "/sys/kernel/tracing", "/sys/kernel/debug"
_EVENTS = ("perf", "syscalls", "raw_syscalls")
_PAUSE_S = 0.05
_PEEKED, _PEEK_S, _PATHS = 3, 0.15, 3  # the busiest processes, the time for each, the paths of each
_OWN_ROW = 0.05  # of all lookups: a process that did less, and has ended, is shown with the others of its command
_GRACE_S = 20.0  # for setting up and removing
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Looker(NamedTuple):
    """A process that looks for absent files, or all those of one command that have ended meanwhile (`pid` None).

    `ended`: it is gone by now; one that did much of it has its own row and pid all the same.
    `lookups` is an estimate where not every event was read (`Lookups.complete`). `calls`: system call -> lookups.
    `paths`: examples of what it looks for, read from its memory; empty where that could not be.
    """

    pid: int | None
    command: str
    uid: int | None
    unit: str | None
    processes: int
    lookups: int
    calls: dict[str, int]
    paths: tuple[str, ...] = ()
    ended: bool = False


class Lookups(NamedTuple):
    """What was seen. `total` is the kernel's own count of failed lookups; `counted` those that were read and told apart.

    `events`: what told of them: "perf", or the group of a tracing instance's events.
    `interrupted`: Ctrl-C, SIGTERM or SIGHUP came before the time was up.
    """

    seconds: float
    total: int
    counted: int
    events: str
    interrupted: bool
    lookers: tuple[Looker, ...]

    @property
    def complete(self) -> bool:
        """Whether every failed lookup was read."""
        return self.counted >= self.total


def check_may_trace(host: Host) -> None:
    """Raise NotPermitted unless this very machine can be traced, by us, with pids that mean the same here."""
    if not host.is_own:
        raise NotPermitted(f"{host.fs.proc} is another machine or pid namespace: --culprit can only trace this one")
    if not in_first_pid_namespace(host.fs):
        raise NotPermitted(
            "this is a pid namespace (a container): the kernel's tracer gives the host's pids, which mean others here; "
            "run opskit dentry --culprit on the host"
        )
    if not host.is_root:
        advice = how_to_be_allowed(host.fs, "CAP_SYS_ADMIN", "opskit", "dentry", "--culprit")
        raise NotPermitted(f"tracing needs root; {advice}")


def trace_failed_lookups(host: Host, seconds: float, events: tuple[str, ...] = _EVENTS) -> Lookups:
    """Watch the whole machine for some seconds; Ctrl-C and its like end it early, with what was seen until then.

    `events`: what may be used, the best one first. Raises NotPermitted and NotSupported with the reason; TargetTimeout
    where the tracer itself went missing.
    """
    check_may_trace(host)
    results, result_end = os.pipe()
    stop_end, stop = os.pipe()
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        child = os.fork()
        if child == 0:
            os.close(results)
            os.close(stop)
            _run_child(lambda: _Tracer(host, seconds, events, stop_end).run(), result_end)
        os.close(result_end)
        os.close(stop_end)
        answer = _answer_of(host, child, results, stop, seconds)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        os.close(results)
        os.close(stop)
    return _lookups(answer)


def _answer_of(host: Host, child: int, results: int, stop: int, seconds: float) -> dict[str, Any]:
    """The child's answer. A signal that would end us first lets the child end and answer. Called with these blocked."""
    pending: list[int] = []

    def asked_to_end(number: int, _frame: object) -> None:
        pending.append(number)
        interrupts.note(number)
        os.write(stop, b"!")  # the child stops and answers

    heard = [number for number in _ENDING if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, asked_to_end) for number in heard}
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        data = _read_until(host, results, host.monotonic() + seconds + _GRACE_S)
        if not data:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            _clean_up_after(child)
            raise TargetTimeout("the tracer did not answer in time, or was killed; what it had set up was removed")
        os.waitpid(child, 0)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if signal.SIGQUIT in pending:
            os.kill(os.getpid(), signal.SIGQUIT)
    answer: dict[str, Any] = json.loads(data)
    answer["interrupted"] = bool(pending)
    return answer


def _read_until(host: Host, fd: int, deadline: float) -> bytes:
    chunks = []
    while (left := deadline - host.monotonic()) > 0:
        ready, _, _ = select.select([fd], [], [], left)
        if not ready:
            return b""
        chunk = os.read(fd, 65536)
        if not chunk:
            break
        chunks.append(chunk)
    return b"".join(chunks)


def _lookups(answer: dict[str, Any]) -> Lookups:
    if "error" in answer:
        kinds = {"permission": NotPermitted, "support": NotSupported, "bug": BugInChild}
        raise kinds[answer["error"]](answer["message"])
    lookers = tuple(Looker(**{**row, "paths": tuple(row["paths"])}) for row in answer["lookers"])
    return Lookups(
        answer["seconds"], answer["total"], answer["counted"], answer["events"], answer["interrupted"], lookers
    )


def _run_child(work: Callable[[], dict[str, Any]], result_end: int) -> NoReturn:
    """In the child: deaf to the terminal's signals, since it is the parent who says when. Whatever happens is its answer."""
    try:
        for number in (*_ENDING, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        os.setsid()
        try:
            answer = work()
        except _Refused as refused:
            answer = {"error": refused.kind, "message": str(refused)}
        except NotPermitted as refused:
            answer = {"error": "permission", "message": str(refused)}
        except NotSupported as refused:
            answer = {"error": "support", "message": str(refused)}
        except OSError as error:
            answer = {"error": "support", "message": f"the kernel's tracer refused: {error}"}
        except BaseException as error:  # noqa: BLE001  (the parent ends with it as with its own)
            answer = {"error": "bug", "message": where_raised(error)}
            if os.environ.get("OPSKIT_DEBUG"):
                sys.excepthook(*sys.exc_info())
        with open(result_end, "w", encoding="utf-8") as pipe:
            json.dump(answer, pipe)
    except BrokenPipeError:  # the parent is gone, and nobody wants to know
        pass
    finally:
        os._exit(0)


def _clean_up_after(pid: int) -> None:
    """Remove the instance of a child that was killed, if it had one."""
    cleaner = os.fork()
    if cleaner == 0:
        try:
            for number in _ENDING:
                signal.signal(number, signal.SIG_IGN)
            remove_stale(_mount_tracing(), killed=pid)
        finally:
            os._exit(0)
    os.waitpid(cleaner, 0)


class _Tally(NamedTuple):
    """What one process did, or those of one command that have ended; `process` None where none of these was seen alive."""

    process: Process | None
    pids: set[int]
    calls: Counter[str]

    @property
    def ended(self) -> bool:
        return self.process is None or self.process.state is None


class _Refused(Exception):  # noqa: N818  (goes through the pipe as an answer)
    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        super().__init__(message)


def _mount_tracing() -> str:
    """The tracer's directory, in a mount that nobody else sees; it lasts as long as this process."""
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
            raise _Refused(
                "support",
                "cannot keep its mounts to itself: the root directory here is no mount point (a chroot), and this kernel "
                "is older than Linux 5.2; run opskit dentry --culprit outside of the chroot",
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
    raise _Refused(
        "support",
        f"this kernel has no tracefs to mount on {_TRACEFS} ({last.strerror}; CONFIG_FTRACE): the processes that look "
        "for absent files cannot be named here",
    )


def _forbidden(what: str, error: OSError) -> _Refused:
    """The refusal of a step that needs CAP_SYS_ADMIN over the whole machine."""
    advice = how_to_be_allowed(ProcFS(), "CAP_SYS_ADMIN", "opskit", "dentry", "--culprit")
    return _Refused("permission", f"cannot {what} ({error.strerror}); {advice}")


class _Tracer:
    """The child's work: set up, read now and then, tell the processes apart while they live, remove."""

    def __init__(self, host: Host, seconds: float, events: tuple[str, ...], stop: int) -> None:
        self.host, self.seconds, self.stop = host, seconds, stop
        self.wanted = events
        # By thread and comm: a shell that becomes another program by exec is asked again.
        self.threads: dict[tuple[bytes, int], Process | None] = {}
        self.last: dict[int, Process] = {}
        self.units: dict[int, str | None] = {}

    def run(self) -> dict[str, Any]:
        """Trace; the answer for the parent."""
        tracing = _mount_tracing()
        remove_stale(tracing)
        source = self._source(tracing)
        try:
            return self._trace(source)
        finally:
            source.close()

    def _source(self, tracing: str) -> PerfSource | InstanceSource:
        ours = (os.getpid(), os.getppid())
        groups = tuple(events for events in self.wanted if events != "perf")
        if "perf" in self.wanted:
            try:
                return PerfSource(tracing, self.host.fs, ours)
            except (OSError, NotSupported):
                if not groups:
                    raise
        return InstanceSource(tracing, groups, ours)

    def _trace(self, source: PerfSource | InstanceSource) -> dict[str, Any]:
        begun = self.host.monotonic()
        while (left := begun + self.seconds - self.host.monotonic()) > 0 and not self._told_to_stop(
            min(left, _PAUSE_S)
        ):
            self._know(source.read())
        took = self.host.monotonic() - begun
        self._know(source.finish())
        answer = self._answer(took, source)
        for row in [row for row in answer["lookers"] if not row["ended"]][:_PEEKED]:
            tid, call = self._busiest_thread(source, row["pid"])
            row["paths"] = source.paths(tid, call, self.host.monotonic, _PEEK_S, _PATHS)
        return answer

    def _busiest_thread(self, source: PerfSource | InstanceSource, pid: int) -> tuple[int, str]:
        """The thread of a process with the most failed lookups, and the system call that it makes most of them with."""
        events: dict[tuple[int, str], float] = {}
        for failure, count in source.failures():
            process = self.threads.get((failure.comm, failure.tid))
            if process is not None and process.pid == pid:
                event = failure.tid, self._call(failure)
                events[event] = events.get(event, 0.0) + count
        return max(events, key=lambda event: events[event])

    def _told_to_stop(self, pause_s: float) -> bool:
        """Wait; whether the parent closed its end, on purpose or because it is gone."""
        return bool(select.select([self.stop], [], [], pause_s)[0])

    def _know(self, seen: Iterable[tuple[bytes, int, int | None]]) -> None:
        """Find out who these are (comm, tid, pid where it is known), while they live."""
        for comm, tid, pid in seen:
            if (comm, tid) not in self.threads:
                self.threads[comm, tid] = self._process_of(tid, pid)

    def _process_of(self, tid: int, pid: int | None) -> Process | None:
        """The process of a thread; None where it has ended already."""
        fs = self.host.fs
        try:
            if pid is None:
                pid = int(fs.load(parse_status, tid, "status").fields["Tgid"])
            process = read_process(fs, pid, str)
            self.units[pid] = unit_of(fs.load(parse_cgroup, pid, "cgroup"))
        except (*GONE, DENIED):
            return None
        return None if process.start_ticks is None else process

    def _answer(self, took: float, source: PerfSource | InstanceSource) -> dict[str, Any]:
        """Add up what belongs to one living process, or to one command where the processes have ended."""
        rows: dict[tuple[int | None, int | None, str], _Tally] = {}
        for failure, count in source.failures():
            process = self._now(self.threads.get((failure.comm, failure.tid)))
            command = failure.comm.decode("utf-8", "surrogateescape") if process is None else process.command
            pid, start = (None, None) if process is None else (process.pid, process.start_ticks)
            key = (pid, start, command)
            tally = rows.setdefault(key, _Tally(process, set(), Counter()))
            tally.pids.add((failure.pid or failure.tid) if process is None else process.pid)
            tally.calls[self._call(failure)] += round(count)
        little = _OWN_ROW * sum(sum(tally.calls.values()) for tally in rows.values())
        for key, tally in list(rows.items()):
            if tally.ended and key[0] is not None and sum(tally.calls.values()) < little:
                del rows[key]
                together = rows.setdefault((None, None, key[2]), _Tally(tally.process, set(), Counter()))
                together.pids.update(tally.pids)
                together.calls.update(tally.calls)
        lookers = [
            Looker(
                pid,
                command,
                None if tally.process is None else tally.process.uid,
                None if pid is None else self.units.get(pid),
                len(tally.pids),
                sum(tally.calls.values()),
                dict(tally.calls.most_common()),
                ended=tally.ended,
            )
            for (pid, _, command), tally in rows.items()
        ]
        lookers.sort(key=lambda row: (-row.lookups, row.pid or 0, row.command))
        total, counted = source.counted()
        return {
            "seconds": took,
            "total": total,
            "counted": counted,
            "events": source.events,
            "lookers": [row._asdict() for row in lookers],
        }

    def _now(self, process: Process | None) -> Process | None:
        """A process as it is now (what it executes may have changed); with no state where it has ended."""
        if process is None:
            return None
        if process.pid not in self.last:
            self.last[process.pid] = read_process(self.host.fs, process.pid, str)
        now = self.last[process.pid]
        alive = now.start_ticks == process.start_ticks and not now.has_ended
        return now if alive else process._replace(state=None)

    def _call(self, failure: Failure) -> str:
        if failure.name is not None:
            return failure.name
        return CALL_NUMBERS.get(platform.machine(), {}).get(failure.number or 0, f"system call {failure.number}")
