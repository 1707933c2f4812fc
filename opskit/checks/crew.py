"""The checks of one run, in one process: threads that take turns, and what becomes of those that hang, crash or cannot start."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from opskit.analysis.doctor.seen import Gap, Outcome, Place
from opskit.catalog import CHECKS
from opskit.checks.look import Look
from opskit.checks.turns import Turns
from opskit.errors import OpskitError, where_raised
from opskit.proc.blocked import is_blocked
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.files.stat import parse_stat
from opskit.proc.kept_reads import KeptReads
from opskit.proc.process import command_name
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from opskit.analysis.finding import Entity, Finding
    from opskit.host import Host
    from opskit.proc.kernel.children import Send

_SUSPECT = ("stuck", "slow")
_WINDOW, _SHORTEST_S, _LONGEST_S = 0.6, 0.2, 1.0  # of the deadline; the windows of rates
_OF_WHAT_IS_LEFT = 0.75
_LAST = 0.3  # of the deadline: for the checks that come last
_PART = 100  # findings in a message
_STACK_BYTES = 1 << 20
_MOST_URGENT = "limits"  # where no thread can be started


class Request(NamedTuple):
    """What to check: `words` as they were given (a PID, a name), none for the machine; the names of the checks.

    `used_s`: of the deadline, by the start of opskit.
    """

    words: tuple[str, ...] = ()
    checks: tuple[str, ...] = tuple(CHECKS)
    ask: bool = False
    deadline_s: float = 2.0
    used_s: float = 0.0


class _Work(NamedTuple):
    """What a thread does: its check, what it calls, and its TID."""

    name: str
    work: Callable[[], None]
    tid: int


class Crew:
    """Runs the checks on a host, which is its alone from now on, until a moment of time.monotonic(); `send` takes what they say.

    Messages: `pids` (none: it hangs to find out which are meant); `part`, `findings` and `places`, then `check` with the rest, or `failed`
    and `why`; `end` (whether all have answered) with `gaps`, `hung` (checks and paths) and `modules` (that were imported).
    """

    def __init__(
        self, host: Host, ask: Request, until_s: float, send: Send, hung: Iterable[tuple[str, str]] = ()
    ) -> None:
        """`hung`: checks and the paths in which they hang since an earlier run."""
        self._host, self._ask, self._until_s, self._send = host, ask, until_s, send
        self._turns, self._kept = _turns_of(host, self._on_hang)
        self._look = Look(host, (), window_s(ask.deadline_s) if host.fs.has_rates else 0.0, ask.ask)
        self._work: dict[int, _Work] = {}  # by the thread's ident
        self._before = list(hung)
        self._hung: dict[int, tuple[str, str]] = {}  # TID -> check, path
        self._unstarted: dict[str, Callable[[], None]] = {}
        self._begun: set[str] = set()
        self._answered: set[str] = set()
        self._told: set[str] = set()  # whose answers were sent
        self._suspects: list[int] = []
        self._lock = threading.Lock()
        host.fs.kept = self._kept
        if not host.is_recorded:
            host.sleep = self._turns.sleep
        for _, path in self._before:
            self._kept.refuse(path)
        threading.stack_size(_STACK_BYTES)  # of each thread: a machine may have no more memory to promise

    def run(self) -> None:
        """Find out which processes are meant; run the checks, those with a window first, and those last that need the others.

        Raises OpskitError where no process is meant by the words, or /proc is not mounted.
        """
        before = set(sys.modules)
        is_done = self._resolve() and self._run_checks()
        paths = {path: name for name, path in (*self._hung.values(), *self._before)}
        checks = self._ask.checks
        gaps = [self._gap(name or checks[0], path) for path, name in paths.items() if name in checks or not name]
        hung = [(name, path) for path, name in paths.items()]
        self._send({"end": is_done, "gaps": gaps, "hung": hung, "modules": sorted(set(sys.modules) - before)})

    def _run_checks(self) -> bool:
        chosen = [name for name in self._ask.checks if self._ask.ask or not CHECKS[name].ask]
        reserve_s = _LAST * self._ask.deadline_s if any(CHECKS[name].last for name in chosen) else 0.0
        is_done = True
        for is_last, until_s in ((False, self._until_s - reserve_s), (True, self._until_s)):
            # Cheap ones first.
            for name in sorted(chosen, key=lambda each: (-CHECKS[each].window_s, CHECKS[each].cpu_ms)):
                if CHECKS[name].last is is_last:
                    self._begin(name)
            is_done = self._wait(until_s)
        return is_done

    def _resolve(self) -> bool:
        self._host.fs.pids()  # raises NotSupported: nothing could be checked
        found: list[tuple[int, ...] | OpskitError] = []
        if self._ask.words:
            self._start("", self._resolving(found))
            self._wait(self._until_s)
        else:
            found.append(())
        for result in found:
            if isinstance(result, OpskitError):
                raise result
            self._look = self._look._replace(pids=result)
            self._send({"pids": result, "places": _places(self._host, result)})
        return bool(found)

    def _resolving(self, found: list[tuple[int, ...] | OpskitError]) -> Callable[[], None]:
        def resolve() -> None:
            found.append(_resolve(self._host, self._ask.words))
            self._told.add("")

        return resolve

    def _begin(self, name: str) -> None:
        window = min(self._look.window_s, CHECKS[name].window_s)
        if CHECKS[name].window_s and not window and self._host.fs.has_rates:
            self._fail(name, f"{self._ask.deadline_s:g} s are too short for it; raise --deadline")
            return
        suspects = tuple(dict.fromkeys(self._suspects))
        until_s = None if self._host.is_recorded else self._until_s
        look = self._look._replace(window_s=window, suspects=suspects, until_s=until_s)
        self._start(name, partial(self._check, name, look))

    def _start(self, name: str, work: Callable[[], None]) -> None:
        def run() -> None:
            thread, tid = threading.get_ident(), threading.get_native_id()
            self._work[thread] = _Work(name, work, tid)
            try:
                work()
            finally:
                self._work.pop(thread, None)
                if not name:  # a check's first answer does so
                    self._hung.pop(tid, None)

        self._begun.add(name)
        try:
            self._turns.start(run)
        except (RuntimeError, MemoryError):
            self._unstarted[name] = work

    def _wait(self, until_s: float) -> bool:
        """Wait for the threads; then do in this one what had none."""
        is_done = self._turns.wait(until_s, lambda: self._begun <= self._told | self._unstarted.keys())
        rest, self._unstarted = self._unstarted, {}
        for name in sorted(rest, key=lambda each: (each != _MOST_URGENT, each and CHECKS[each].window_s)):
            window = min(self._look.window_s, CHECKS[name].window_s) if name else 0.0
            if window and time.monotonic() + window > until_s:
                self._fail(name, "no thread can be started for it; opskit limits shows which limit is reached")
            else:
                rest[name]()
        return is_done

    def _on_hang(self, thread: int) -> None:
        """Start a check again that hangs in a read, this time without that file. The first answer counts."""
        work, path = self._work.get(thread), self._kept.asked_by(thread)
        if work is None or path is None or not is_blocked(work.tid):
            return
        with self._lock:
            if work.name in self._answered or self._work.pop(thread, None) is None:  # it has ended meanwhile
                return
            self._hung[work.tid] = work.name, path
        self._kept.refuse(path)
        self._start(work.name, work.work)

    def _gap(self, name: str, path: str) -> Gap:
        fs = self._host.fs
        pid = path[len(fs.proc) + 1 :].partition("/")[0] if path.startswith(f"{fs.proc}/") else ""
        if not pid.isdecimal():
            return Gap(name, path, "reading it hangs")
        return Gap(name, f"{pid} ({(fs.maybe(str, pid, 'comm') or '?').strip()})", f"reading {path} hangs")

    def _check(self, name: str, look: Look) -> None:
        now, begun_cpu_s, is_first = self._host.monotonic, time.thread_time(), False
        begun_s = now()
        look = look._replace(window_s=fitting_s(look.window_s, self._until_s - begun_s))
        try:
            outcome: Outcome = importlib.import_module(f"opskit.checks.{name.replace('-', '_')}").check(look)
            is_first = self._is_first(name)
            if is_first:
                cpu_s = None if self._host.is_recorded else time.thread_time() - begun_cpu_s
                self._tell(name, outcome, now() - begun_s, cpu_s)
                self._told.add(name)
        except BaseException as error:  # noqa: BLE001  (a bug in one check never stops the others)
            if is_first or self._is_first(name):
                self._fail(name, _why(error))

    def _is_first(self, name: str) -> bool:
        with self._lock:
            is_first = name not in self._answered
            self._answered.add(name)
            if is_first:  # it did not hang for good
                self._hung.pop(threading.get_native_id(), None)
        return is_first

    def _tell(self, name: str, outcome: Outcome, took_s: float, cpu_s: float | None) -> None:
        findings = outcome.findings
        for begin in range(0, len(findings), _PART):
            part = findings[begin : begin + _PART]
            self._send({"part": name, "findings": part, "places": _places(self._host, _all_pids(part))})
        self._suspects += [pid for each in findings if _is_suspicious(each) for pid in _pids_of(each.entity)]
        rest = outcome.looked_at, outcome.gaps, outcome.asked
        self._send({"check": name, "rest": rest, "took_s": took_s, "cpu_s": cpu_s})

    def _fail(self, name: str, why: str) -> None:
        self._answered.add(name)
        self._send({"failed": name, "why": why})
        self._told.add(name)


def _turns_of(host: Host, on_hang: Callable[[int], None]) -> tuple[Turns, KeptReads]:
    if not host.is_recorded:
        turns = Turns(on_hang)
        return turns, KeptReads(turns.breathe)
    from opskit.checks.one_by_one import OneByOne
    from opskit.proc.recorded.kept import KeptByMark
    from opskit.recorded_host import RecordedHost

    assert isinstance(host, RecordedHost)  # noqa: S101  (is_recorded says so)
    return OneByOne(host.clock), host.fs.kept or KeptByMark(host.clock)


def _is_suspicious(finding: Finding) -> bool:
    return finding.class_ in _SUSPECT and finding.severity != "note"


def fitting_s(window: float, left_s: float) -> float:
    """The window of a check that begins late, since the CPUs are crowded: it leaves time for the last readings."""
    return min(window, max(_SHORTEST_S, _OF_WHAT_IS_LEFT * left_s)) if window else 0.0


def window_s(deadline_s: float) -> float:
    """The longest window of a rate within a deadline; 0 where that would be too short for one."""
    window = min(_LONGEST_S, _WINDOW * deadline_s)
    return window if window >= _SHORTEST_S else 0.0


def _why(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, (OpskitError, OSError)):
        return str(error)
    return "out of memory" if isinstance(error, MemoryError) else f"a bug in opskit: {where_raised(error)}"


def _resolve(host: Host, words: tuple[str, ...]) -> tuple[int, ...] | OpskitError:
    from opskit.collect.given_pids import GivenPids
    from opskit.collect.targets import resolve_process

    try:
        pids = tuple(dict.fromkeys(resolve_process(host, word, "doctor") for word in words))
        GivenPids(host, pids, "doctor")  # they exist
    except OpskitError as error:
        return error
    except BaseException as error:  # noqa: BLE001  (of a thread, which nobody would see)
        return OpskitError(_why(error))
    return pids


def _pids_of(entity: Entity | None) -> Iterable[int]:
    while entity is not None:
        if entity.kind == "process" and isinstance(entity.id, int):
            yield entity.id
        entity = entity.inside


def _all_pids(findings: Sequence[Finding]) -> Iterable[int]:
    return dict.fromkeys(pid for finding in findings for pid in _pids_of(finding.entity))


def _places(host: Host, pids: Iterable[int]) -> list[Any]:
    fs = host.fs
    places = []
    for pid in pids:
        paths = {each.path for each in fs.maybe(parse_cgroup, pid, "cgroup", default=())} - {"/"}
        stat = fs.maybe(parse_stat, pid, "stat")
        places.append(Place(pid, command_name(fs, pid), tuple(sorted(paths)), stat and stat.ppid))
    return places
