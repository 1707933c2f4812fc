"""Whether we run in a container: what the kernel says of our namespaces, not what files an image brought along.

The inode numbers of the machine's first namespaces are fixed (include/linux/proc_ns.h, PROC_*_INIT_INO):

/proc/self/ns/pid -> pid:[4026531836]
/proc/self/ns/user -> user:[4026531837]
/proc/self/ns/cgroup -> cgroup:[4026531835]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.fs import DENIED, GONE

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS

_FIRST = {"pid": b"pid:[4026531836]", "user": b"user:[4026531837]", "cgroup": b"cgroup:[4026531835]"}


def container_evidence(fs: ProcFS) -> str | None:
    """What shows that we are in a container; None where nothing does.

    A container that shares all namespaces but that of its mounts has another root than pid 1, where that can be seen.
    """
    for kind, first in _FIRST.items():
        try:
            ours = fs.link("self", "ns", kind)
        except (*GONE, DENIED):
            continue
        if ours != first:
            return f"its {kind} namespace is {ours.decode()}, not the machine's first"
    try:
        same_root = fs.file_id("self", "root") == fs.file_id(1, "root")
    except (*GONE, DENIED):
        return None
    return None if same_root else "its root directory is not that of pid 1"


def in_first_pid_namespace(fs: ProcFS, pid: int | str = "self") -> bool:
    """Whether the pids here are those that the kernel itself uses; True where it does not tell."""
    try:
        return fs.link(pid, "ns", "pid") == _FIRST["pid"]
    except OSError:
        return True
