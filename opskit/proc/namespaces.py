"""Namespaces of processes, and whether this is a container (namespaces(7)).

The inode numbers of the initial namespaces are fixed (include/linux/proc_ns.h, PROC_*_INIT_INO):

/proc/self/ns/pid -> pid:[4026531836]
/proc/self/ns/user -> user:[4026531837]
/proc/self/ns/cgroup -> cgroup:[4026531835]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.fs import optional

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS

INITIAL = {"pid": b"pid:[4026531836]", "user": b"user:[4026531837]", "cgroup": b"cgroup:[4026531835]"}


def namespace(fs: ProcFS, pid: int | str, kind: str) -> bytes | None:
    """The namespace of a process, `user:[4026531837]`; None where the link cannot be read."""
    return optional(fs.link, pid, "ns", kind)


def in_initial(fs: ProcFS, kind: str, pid: int | str = "self") -> bool | None:
    """Whether a process is in the machine's initial namespace of this kind; None where the link cannot be read."""
    found = namespace(fs, pid, kind)
    return None if found is None else found == INITIAL[kind]


def container_evidence(fs: ProcFS) -> str | None:
    """What shows that opskit runs in a container: a namespace, or a root that is not pid 1's; None: nothing does."""
    for kind, initial in INITIAL.items():
        ours = namespace(fs, "self", kind)
        if ours not in (None, initial):
            return f"its {kind} namespace is {(ours or b'').decode('utf-8', 'replace')}, not the initial one"
    our_root, its_root = optional(fs.file_id, "self", "root"), optional(fs.file_id, 1, "root")
    return None if None in (our_root, its_root) or our_root == its_root else "its root directory is not that of pid 1"
