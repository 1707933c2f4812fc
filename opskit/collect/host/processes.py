"""Processes that have ended and are not reaped (zombies), and those that are stopped, by two looks at their state.

Only stat, status and wchan are read: cmdline and maps of a blocked process may hang.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.stat import parse_stat, parse_terminal
from opskit.proc.files.status import parse_status
from opskit.proc.fs import optional
from opskit.proc.process import command_name
from opskit.proc.thread_names import thread_name
from opskit.proc.visibility import hides_processes
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.host import Host
    from opskit.proc.files.stat import ProcStat
    from opskit.proc.fs import ProcFS

_ZOMBIE, _STOPPED, _TRACED = "Z", "T", "t"
_STEADY = ("start_ticks", "state", "user_ticks", "system_ticks")
_MOST = 4096  # zombies that are looked at again
_MOST_PARENTS, _MOST_STOPPED, _MOST_NAMES = 20, 50, 3
_LEAST_THREADS, _FIRST_THREADS = 6, 64  # of a JVM


class Parent(NamedTuple):
    """A process that does not reap. `zombies`: children that had ended at both looks. `state`: its own.

    `is_init`: it is PID 1 of a PID namespace inside the machine's: of a container. `names`: of the zombies.
    """

    pid: int
    name: str
    start_ticks: int
    state: str
    is_init: bool
    zombies: int
    names: Sequence[str] = ()


class Stopped(NamedTuple):
    """A process that was stopped at both looks. `tracer`: the PID that traces it; `has_terminal`: a user may have typed Ctrl-Z."""

    pid: int
    name: str
    start_ticks: int
    tracer: int | None
    has_terminal: bool
    is_jvm: bool = False


class Facts(NamedTuple):
    """`processes`: how many were read; `denied`: how many could not be. `is_hidden`: others are not listed (hidepid)."""

    processes: int
    zombies: int
    parents: Sequence[Parent]
    stopped: Sequence[Stopped]
    window_s: float
    denied: int = 0
    is_hidden: bool = False


def collect(host: Host, window_s: float, pids: Sequence[int] = ()) -> Facts:
    """Look, wait, and look again; `pids`: at these processes and their children only. A window of 0: look once."""
    fs = host.fs
    states: dict[int, str] = {}
    denied = 0
    for pid in fs.pids():
        try:
            state = _state(fs.read(pid, "stat"))
        except PermissionError:
            denied += 1
        except OSError:
            continue
        else:
            states[pid] = state
    suspects = [pid for pid, state in states.items() if state in (_ZOMBIE, _STOPPED, _TRACED)][:_MOST]
    before = _stats(fs, suspects)
    begun_s = host.monotonic()
    if window_s and before:
        host.sleep(window_s)
        after = _stats(fs, suspects)
        before = {pid: stat for pid, stat in after.items() if pid in before and _is_unchanged(before[pid], stat)}
    zombies = [stat for stat in before.values() if stat.state == _ZOMBIE and stat.threads <= 1]
    stopped = [stat for stat in before.values() if stat.state in (_STOPPED, _TRACED) and (not pids or stat.pid in pids)]
    return Facts(
        len(states), len(zombies), _parents(fs, zombies, pids), _stopped(fs, stopped), host.monotonic() - begun_s, denied,
        fs.is_live and hides_processes(fs),
    )  # fmt: skip


def _state(stat: bytes) -> str:
    at = stat.rfind(b")")
    return chr(stat[at + 2]) if len(stat) > at + 2 else ""


def _stats(fs: ProcFS, pids: Sequence[int]) -> dict[int, ProcStat]:
    found = ((pid, fs.maybe(parse_stat, pid, "stat")) for pid in pids)
    return {pid: stat for pid, stat in found if stat is not None}


def _is_unchanged(before: ProcStat, now: ProcStat) -> bool:
    """Whether it is in the same state all the time: a program that limits CPU use (cpulimit) stops and continues others."""
    return all(getattr(before, name) == getattr(now, name) for name in _STEADY)


def _parents(fs: ProcFS, zombies: Sequence[ProcStat], pids: Sequence[int]) -> list[Parent]:
    """Those with the most zombies first."""
    by_parent: dict[int, list[ProcStat]] = {}
    for each in zombies:
        by_parent.setdefault(each.ppid, []).append(each)
    found = []
    for pid, children in sorted(by_parent.items(), key=lambda item: (-len(item[1]), item[0]))[:_MOST_PARENTS]:
        stat = fs.maybe(parse_stat, pid, "stat")
        if stat is None or (pids and pid not in pids):
            continue
        status = fs.maybe(parse_status, pid, "status")
        ns_pids = status.ns_pids if status is not None else ()
        names = sorted({each.comm for each in children})
        is_init = len(ns_pids) > 1 and ns_pids[-1] == 1
        found.append(
            Parent(
                pid, command_name(fs, pid), stat.start_ticks, stat.state, is_init, len(children), names[:_MOST_NAMES]
            )
        )
    return found


def _stopped(fs: ProcFS, stats: Sequence[ProcStat]) -> list[Stopped]:
    found = []
    for stat in stats[:_MOST_STOPPED]:
        status = fs.maybe(parse_status, stat.pid, "status")
        tracer = integer(status.fields.get("TracerPid", "")) if status is not None else None
        has_terminal = fs.maybe(parse_terminal, stat.pid, "stat") != 0
        name, is_jvm = command_name(fs, stat.pid), _is_jvm(fs, stat)
        found.append(Stopped(stat.pid, name, stat.start_ticks, tracer or None, has_terminal, is_jvm))
    return found


def _is_jvm(fs: ProcFS, stat: ProcStat) -> bool:
    """By the names of its threads, of which HotSpot starts its own first."""
    if stat.threads < _LEAST_THREADS:
        return False
    tids = optional(fs.tids, stat.pid, default=[])[:_FIRST_THREADS]
    return any(thread_name(fs, stat.pid, tid) == "VM Thread" for tid in tids)
