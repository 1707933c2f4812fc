"""Files of processes that no command has read so far and that do not change: for questions about one process, later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.fs import optional
from opskit.proc.kernel.names import node_name
from opskit.proc.network import our_network
from opskit.proc.process import real_uid
from opskit.proc.recorded.manifest import read_for_manifest
from opskit.proc.rights import our_obstacles, our_uid_map, read_rights

if TYPE_CHECKING:
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
    for pid in pids:
        for name in _FILES:
            optional(fs.read_path, fs.path(pid, name))
        for name in _LINKS:
            optional(fs.link, pid, *name.split("/"))
        optional(fs.all_fds, pid)
        optional(fs.file_id_at, fs.path(pid))
        optional(fs.file_id, pid, "exe")
    for uid in {fs.maybe(real_uid, pid, "status") for pid in pids} - {None}:
        recorded.user_name(uid or 0)
    for question in _OF_OPSKIT:
        optional(fs.calls.ask, question)
    return len(pids)
