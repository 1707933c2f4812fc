"""Which process has most of the threads that a nearly full limit counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.files.limits import is_nearly_full
from opskit.proc.process import command_name
from opskit.proc.thread_names import thread_names
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from opskit.proc.cgroup.limits import CgroupLimit, CgroupLimits
    from opskit.proc.fs import ProcFS
    from opskit.proc.task_counts import ProcessTasks, TaskCounts


class Filler(NamedTuple):
    """The process with most threads under a limit; `names`: how many of its threads have a name of each pattern."""

    limit: str
    cgroup: str | None
    pid: int
    command: str
    threads: int
    names: Mapping[str, int]


def read_fillers(
    fs: ProcFS,
    tasks: TaskCounts,
    pids: CgroupLimits,
    others: Iterable[tuple[str, float | None, int | None, int | None]],
) -> tuple[Filler, ...]:
    """One for each nearly full limit: of cgroups, and of `others`: (name, value, threads in use, the uid it counts or None)."""
    return (*_of_cgroups(fs, tasks, pids), *_of_others(fs, tasks, others))


def _of_cgroups(fs: ProcFS, tasks: TaskCounts, pids: CgroupLimits) -> Iterator[Filler]:
    full = [level for level in pids.levels if is_nearly_full(level.limit, level.usage)]
    paths = {each.pid: _pids_cgroup(fs, each.pid) for each in tasks.processes} if full else {}
    for level in full:
        members = [each for each in tasks.processes if _is_in(paths[each.pid], level)]
        if members:
            yield _filler(fs, "pids.max", level.path, members)


def _of_others(
    fs: ProcFS, tasks: TaskCounts, others: Iterable[tuple[str, float | None, int | None, int | None]]
) -> Iterator[Filler]:
    for name, value, in_use, uid in others:
        members = [each for each in tasks.processes if uid in (None, each.uid)]
        if members and is_nearly_full(value, in_use):
            yield _filler(fs, name, None, members)


def _filler(fs: ProcFS, limit: str, cgroup: str | None, members: list[ProcessTasks]) -> Filler:
    most = max(members, key=lambda each: (each.threads, -each.pid))
    return Filler(limit, cgroup, most.pid, command_name(fs, most.pid), most.threads, thread_names(fs, most.pid))


def _pids_cgroup(fs: ProcFS, pid: int) -> str | None:
    """The path of a process's cgroup in the hierarchy that has the pids controller: v1's, or else v2."""
    members = fs.maybe(parse_cgroup, pid, "cgroup", default=[])
    v1 = next((member.path for member in members if "pids" in member.controllers), None)
    return v1 or next((member.path for member in members if not member.controllers and member.hierarchy == 0), None)


def _is_in(path: str | None, level: CgroupLimit) -> bool:
    return path is not None and (path == level.path or path.startswith(level.path.rstrip("/") + "/"))
