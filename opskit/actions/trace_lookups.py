"""Who fails to find files: a few seconds of the kernel's own tracer, in an instance of our own that is always removed.

A child does it: it takes mounts of its own (tracefs need not be mounted, and nobody sees that it is), and makes
instances/opskit-PID, in which only failed path lookups are recorded. It stops and removes the instance when the time is
up, when the parent tells it to, and when the parent is gone, however it went. Should the child be killed, the parent
sends another one to clean up; and what a machine's crash or two kills left behind, the next run removes.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import select
import signal
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from opskit.actions.peek_paths import peek, write_control
from opskit.errors import NotPermitted, NotSupported, TargetTimeout
from opskit.proc import syscalls
from opskit.proc.cgroup import parse_cgroup
from opskit.proc.container import in_first_pid_namespace
from opskit.proc.fs import DENIED, GONE, ProcFS
from opskit.proc.ftrace import CALL_NUMBERS, PATH_CALLS, named, parse_buffer_stats, parse_failures
from opskit.proc.place import unit_of
from opskit.proc.process import read_process
from opskit.proc.rights import how_to_be_allowed
from opskit.proc.status import parse_status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opskit.host import Host
    from opskit.proc.ftrace import Failure
    from opskit.proc.process import Process

_TRACEFS, _DEBUGFS = "/sys/kernel/tracing", "/sys/kernel/debug"
_PREFIX = "opskit-"
_BUFFER_KB = 256  # a CPU
_PAUSE_S = 0.05
_READ_BYTES, _READ_BYTES_OF_A_CPU = 1 << 17, 1 << 13  # at most of text between two pauses: it bounds our own load
_PEEKED, _PEEK_S, _PATHS = 3, 0.15, 3  # the busiest processes, the time for each, the paths of each
_OWN_ROW = 0.05  # of all lookups: a process that did less, and has ended, is shown with the others of its command
_GRACE_S = 20.0  # for setting up and removing


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

    `interrupted`: Ctrl-C came before the time was up.
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


def trace_failed_lookups(host: Host, seconds: float, events: tuple[str, ...] = ("syscalls", "raw_syscalls")) -> Lookups:
    """Watch the whole machine for some seconds; Ctrl-C ends it early, with what was seen until then.

    Raises NotPermitted and NotSupported with the reason; TargetTimeout where the tracer itself went missing.
    """
    check_may_trace(host)
    results, result_end = os.pipe()
    stop_end, stop = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(results)
        os.close(stop)
        _run_child(lambda: _Tracer(host, seconds, events, stop_end).run(), result_end)
    os.close(result_end)
    os.close(stop_end)
    try:
        answer = _answer_of(host, child, results, stop, seconds)
    finally:
        os.close(results)
        os.close(stop)
    return _lookups(answer)


def _answer_of(host: Host, child: int, results: int, stop: int, seconds: float) -> dict[str, Any]:
    """The child's answer. A signal that would end us first lets the child remove its instance."""
    pending: list[int] = []

    def asked_to_end(number: int, _frame: object) -> None:
        pending.append(number)
        os.write(stop, b"!")  # the child stops, removes and answers

    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    before = {int(number): signal.signal(number, asked_to_end) for number in ending}
    try:
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
        for number in pending:
            if number != signal.SIGINT:
                os.kill(os.getpid(), number)
    answer: dict[str, Any] = json.loads(data)
    answer["interrupted"] = signal.SIGINT in pending
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
        raise {"permission": NotPermitted, "support": NotSupported}[answer["error"]](answer["message"])
    lookers = tuple(Looker(**{**row, "paths": tuple(row["paths"])}) for row in answer["lookers"])
    return Lookups(
        answer["seconds"], answer["total"], answer["counted"], answer["events"], answer["interrupted"], lookers
    )


def _run_child(work: Callable[[], dict[str, Any]], result_end: int) -> NoReturn:
    """In the child: deaf to the terminal's signals, since it is the parent who says when; what is a bug is shown as one."""
    try:
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        os.setsid()
        try:
            answer = work()
        except _Refused as refused:
            answer = {"error": refused.kind, "message": str(refused)}
        except OSError as error:
            answer = {"error": "support", "message": f"the kernel's tracer refused: {error}"}
        with open(result_end, "w", encoding="utf-8") as pipe:
            json.dump(answer, pipe)
    except BrokenPipeError:  # the parent is gone, and nobody wants to know
        pass
    finally:
        if sys.exc_info()[0] is not None:
            sys.excepthook(*sys.exc_info())
        os._exit(0)


def _clean_up_after(pid: int) -> None:
    """Remove the instance of a child that was killed."""
    cleaner = os.fork()
    if cleaner == 0:
        try:
            _remove(f"{_mount_tracing()}/instances/{_PREFIX}{pid}")
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


def _remove(instance: str) -> None:
    """Stop an instance and remove it; the kernel refuses while a reader is still on its way out."""
    try:
        write_control(f"{instance}/tracing_on", "0")
    except OSError:
        pass
    for _ in range(100):
        try:
            os.rmdir(instance)
            return
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            time.sleep(_PAUSE_S)


class _Tracer:
    """The child's work: set up, read now and then, tell the processes apart while they live, remove."""

    def __init__(self, host: Host, seconds: float, events: tuple[str, ...], stop: int) -> None:
        self.host, self.seconds, self.stop = host, seconds, stop
        self.wanted = events
        self.events = ""
        self.counts: list[Counter[tuple[bytes, bytes, bytes, bytes]]] = []
        # By thread and comm: a shell that becomes another program by exec is asked again.
        self.threads: dict[tuple[bytes, bytes], Process | None] = {}
        self.last: dict[int, Process] = {}
        self.units: dict[int, str | None] = {}

    def run(self) -> dict[str, Any]:
        """Trace; the answer for the parent."""
        tracing = _mount_tracing()
        self._remove_stale(f"{tracing}/instances")
        instance = f"{tracing}/instances/{_PREFIX}{os.getpid()}"
        try:
            os.mkdir(instance)
        except OSError as error:
            raise _Refused("permission", f"cannot make a tracing instance: {error.strerror}") from None
        try:
            return self._trace(instance)
        finally:
            _remove(instance)

    @staticmethod
    def _remove_stale(instances: str) -> None:
        for name in os.listdir(instances):
            pid = name.removeprefix(_PREFIX)
            if name.startswith(_PREFIX) and pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
                _remove(f"{instances}/{name}")

    def _trace(self, instance: str) -> dict[str, Any]:
        cpus = sorted((name for name in os.listdir(f"{instance}/per_cpu")), key=lambda name: int(name[3:]))
        write_control(f"{instance}/buffer_size_kb", str(_BUFFER_KB))
        self.events = self._enable(instance)
        begun = self.host.monotonic()
        pipes = [
            os.open(f"{instance}/per_cpu/{cpu}/trace_pipe", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC) for cpu in cpus
        ]
        rests = [b""] * len(pipes)
        self.counts = [Counter() for _ in pipes]
        try:
            while (left := begun + self.seconds - self.host.monotonic()) > 0 and not self._told_to_stop(
                min(left, _PAUSE_S)
            ):
                self._read(pipes, rests)
            write_control(f"{instance}/tracing_on", "0")
            took = self.host.monotonic() - begun
            self._read(pipes, rests)
        finally:
            for pipe in pipes:
                os.close(pipe)
        totals = []
        for cpu in cpus:
            with open(f"{instance}/per_cpu/{cpu}/stats", encoding="ascii") as stats:
                totals.append(parse_buffer_stats(stats.read()))
        answer = self._answer(took, totals)
        if self.events == "syscalls":
            self._add_paths(instance, answer["lookers"])
        return answer

    def _add_paths(self, instance: str, lookers: list[dict[str, Any]]) -> None:
        """Examples of what the busiest processes look for."""
        events = f"{instance}/events/syscalls"
        for call in PATH_CALLS:
            if os.path.isdir(f"{events}/sys_exit_{call}"):
                write_control(f"{events}/sys_exit_{call}/enable", "0")
        write_control(f"{instance}/tracing_on", "1")
        for row in [row for row in lookers if not row["ended"]][:_PEEKED]:
            tid, call = self._busiest_thread(row["pid"])
            row["paths"] = peek(instance, call, tid, self.host.monotonic, _PEEK_S, _PATHS)

    def _busiest_thread(self, pid: int) -> tuple[int, str]:
        """The thread of a process with the most failed lookups, and the system call that it makes most of them with."""
        events: Counter[tuple[int, str]] = Counter()
        for counts in self.counts:
            for event, count in counts.items():
                process = self.threads.get((event[0], event[1]))
                if process is not None and process.pid == pid:
                    failure = named(event)
                    events[failure.tid, self._call(failure)] += count
        return events.most_common(1)[0][0]

    def _told_to_stop(self, pause_s: float) -> bool:
        """Wait; whether the parent closed its end, on purpose or because it is gone."""
        return bool(select.select([self.stop], [], [], pause_s)[0])

    def _enable(self, instance: str) -> str:
        """Switch on the events of this kernel that fit best; which ones."""
        numbers = " || ".join(f"id == {number}" for number in CALL_NUMBERS.get(platform.machine(), ()))
        ours = f"common_pid != {os.getpid()} && common_pid != {os.getppid()}"
        failed = f"ret == -{errno.ENOENT} && {ours}"
        for events in self.wanted:
            rule = f"{failed} && ({numbers})" if events == "raw_syscalls" and numbers else failed
            names = ["sys_exit"] if events == "raw_syscalls" else [f"sys_exit_{call}" for call in PATH_CALLS]
            found = [name for name in names if os.path.isdir(f"{instance}/events/{events}/{name}")]
            for name in found:
                write_control(f"{instance}/events/{events}/{name}/filter", rule)
                write_control(f"{instance}/events/{events}/{name}/enable", "1")
            if found:
                return events
        raise _Refused(
            "support",
            "this kernel cannot trace system calls (CONFIG_FTRACE_SYSCALLS): the processes that look for absent files "
            "cannot be named here",
        )

    def _read(self, pipes: list[int], rests: list[bytes]) -> None:
        budget = max(_READ_BYTES // len(pipes), _READ_BYTES_OF_A_CPU)
        fresh: set[tuple[bytes, bytes]] = set()
        for index, pipe in enumerate(pipes):
            text = rests[index] + b"".join(_available(pipe, budget))
            whole, newline, rest = text.rpartition(b"\n")
            rests[index] = rest
            if newline:
                found = parse_failures(whole)
                self.counts[index].update(found)
                fresh.update((comm, tid) for comm, tid, _, _ in set(found))
        for comm, tid in fresh - self.threads.keys():
            self.threads[comm, tid] = self._process_of(int(tid))

    def _process_of(self, tid: int) -> Process | None:
        """The process of a thread; None where it has ended already."""
        fs = self.host.fs
        try:
            tgid = int(fs.load(parse_status, tid, "status").fields["Tgid"])
            process = read_process(fs, tgid, str)
            self.units[tgid] = unit_of(fs.load(parse_cgroup, tgid, "cgroup"))
        except (*GONE, DENIED):
            return None
        return None if process.start_ticks is None else process

    def _answer(self, took: float, totals: list[int]) -> dict[str, Any]:
        """Add up what belongs to one living process, or to one command where the processes have ended."""
        rows: dict[tuple[int | None, int | None, str], _Tally] = {}
        for failure, count in self._scaled(totals):
            process = self._now(self.threads.get((failure.comm, b"%d" % failure.tid)))
            command = failure.comm.decode("utf-8", "surrogateescape") if process is None else process.command
            pid, start = (None, None) if process is None else (process.pid, process.start_ticks)
            key = (pid, start, command)
            tally = rows.setdefault(key, _Tally(process, set(), Counter()))
            tally.pids.add(failure.tid if process is None else process.pid)
            tally.calls[self._call(failure)] += count
        little = _OWN_ROW * sum(tally.calls.total() for tally in rows.values())
        for key, tally in list(rows.items()):
            if tally.ended and key[0] is not None and tally.calls.total() < little:
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
                tally.calls.total(),
                dict(tally.calls.most_common()),
                ended=tally.ended,
            )
            for (pid, _, command), tally in rows.items()
        ]
        lookers.sort(key=lambda row: (-row.lookups, row.pid or 0, row.command))
        counted = sum(counts.total() for counts in self.counts)
        return {
            "seconds": took,
            "total": max(sum(totals), counted),
            "counted": counted,
            "events": self.events,
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

    def _scaled(self, totals: list[int]) -> Iterator[tuple[Failure, int]]:
        """Each kind of event and how often it happened: what was read of a CPU, scaled up to all that the CPU had."""
        for counts, total in zip(self.counts, totals, strict=True):
            read = counts.total()
            for event, count in counts.items():
                yield named(event), round(count * max(total, read) / read)

    def _call(self, failure: Failure) -> str:
        if failure.name is not None:
            return failure.name
        return CALL_NUMBERS.get(platform.machine(), {}).get(failure.number or 0, f"system call {failure.number}")


def _available(pipe: int, budget: int) -> Iterator[bytes]:
    """What waits in a pipe of the tracer, as far as the budget of bytes goes."""
    while budget > 0:
        try:
            chunk = os.read(pipe, min(budget, 1 << 16))
        except BlockingIOError:
            return
        if not chunk:
            return
        budget -= len(chunk)
        yield chunk
