"""Files of processes that no command has read so far and that do not change: for questions about one process, later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.cgroup.io import device_limits
from opskit.proc.cgroup.memory import memory_groups
from opskit.proc.cgroup.sweep import cgroups_of
from opskit.proc.fs import ids, optional
from opskit.proc.kernel.names import node_name
from opskit.proc.network import our_network
from opskit.proc.process import real_uid
from opskit.proc.recorded.manifest import read_for_manifest
from opskit.proc.recorded.tape import FILE, LSTAT, NAMES, Failure
from opskit.proc.rights import our_obstacles, our_uid_map, read_rights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.proc.recorded.fs import TapeFS
    from opskit.recorded_host import RecordedHost

_FILES = (
    "cmdline",
    "environ",
    "comm",
    "limits",
    "cgroup",
    "mountinfo",
    "oom_score",
    "oom_score_adj",
    "wchan",
    "uid_map",
    "maps",
)
_LINKS = ("exe", "cwd", "root", "ns/mnt", "ns/net", "ns/pid", "ns/user", "ns/time", "ns/uts", "ns/cgroup", "ns/ipc")

_WHY_DENIED = ("attr", "current")  # the profile of a security module

_OF_OPSKIT = (
    node_name,
    our_network,
    our_obstacles,
    our_uid_map,
    read_rights,
)  # for advice about what could not be read


def sweep(recorded: RecordedHost) -> int:
    """Read them of every process of the first sample onto the tape; the number of processes. One that has ended leaves errors."""
    fs = recorded.fs
    recorded.rewind()
    read_for_manifest(fs)
    pids = fs.pids()
    later = list(_later(recorded))
    for pid in (*pids, *(pid for _, pid in later)):
        for name in _FILES:
            optional(fs.read_path, fs.path(pid, name))
        for name in _LINKS:
            optional(fs.link, pid, *name.split("/"))
        optional(fs.all_fds, pid)
        optional(fs.file_id, pid, "exe")
        optional(fs.read_path, fs.path(pid, "task", pid, "comm"))
        if isinstance(recorded.tape.answers[FILE][0].get(fs.path(pid, "maps")), Failure):
            optional(fs.read_path, fs.path(pid, *_WHY_DENIED))
    for pid in pids:
        optional(fs.file_id_at, fs.path(pid))
    for mark, pid in later:
        _keep_whether_there(recorded, pid, mark)
    for uid in {fs.maybe(real_uid, pid, "status") for pid in pids} - {None}:
        recorded.user_name(uid or 0)
    for question in _OF_OPSKIT:
        optional(fs.calls.ask, question)
    _cgroups(fs, pids)
    for device in fs.names_root("sys", "dev", "block"):
        fs.maybe_root(str, "sys", "dev", "block", device, "uevent")
    return len(pids)


def _later(recorded: RecordedHost) -> Iterator[tuple[int, int]]:
    """(mark, PID) of each process that began after the first sample; it may have ended since."""
    known: set[int] = set()
    for mark, names in enumerate(recorded.tape.answers[NAMES]):
        listed = names.get(recorded.fs.proc, ())
        found = [] if isinstance(listed, Failure) else [pid for pid in ids(listed) if pid not in known]
        known.update(found)
        if mark:
            yield from ((mark, pid) for pid in found)


def _keep_whether_there(recorded: RecordedHost, pid: int, mark: int) -> None:
    """From its sample on: where it has ended since, all that nobody asked of it is absent, and not unknown."""
    path, source = recorded.fs.path(pid), recorded.fs.source
    if source is None:
        return
    found: object
    try:
        found = source.file_id_at(path)
    except OSError as error:
        found = recorded.fs.failure_of(error, path)
    recorded.tape.keep(LSTAT, path, found, mark)


def _cgroups(fs: TapeFS, pids: list[int]) -> None:
    """The limits of the cgroups of all processes."""
    by_group = {fs.maybe(str, pid, "cgroup"): pid for pid in pids}
    memory_groups(fs, cgroups_of(fs, by_group.values(), "memory"))
    for controller in ("blkio", "io"):
        device_limits(fs, cgroups_of(fs, by_group.values(), controller))
