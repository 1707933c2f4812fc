"""What an fd is, by the target of its link in /proc/PID/fd (proc_pid_fd(5)) and the mode of its file.

pipe:[4194986548]  socket:[8121]  anon_inode:[eventpoll]  anon_inode:inotify  net:[4026531840]  pidfd:[31]
/var/log/app.log  /var/log/app.log.1 (deleted)  /memfd:pool (deleted)  /dev/null  /dmabuf:
"""

from __future__ import annotations

import re
import stat

DELETED = b" (deleted)"
FILE, FILE_DELETED, DIRECTORY, DEVICE, FIFO = "file", "deleted", "directory", "device", "fifo"
_ANONYMOUS = {
    "eventfd": "eventfd", "eventpoll": "epoll", "inotify": "inotify", "fanotify": "fanotify", "timerfd": "timerfd",
    "signalfd": "signalfd", "io_uring": "io_uring", "perf_event": "perf_event", "userfaultfd": "userfaultfd",
    "pidfd": "pidfd",
}  # fmt: skip
_NAMESPACES = frozenset(("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"))
# Files of file systems that are mounted nowhere; what their names begin with. A name that a program chose follows.
_UNMOUNTED = ((b"/memfd:", "memfd", ""), (b"/dmabuf:", "anon", "dmabuf"), (b"/secretmem", "anon", "secretmem"),
              (b"/[aio]", "anon", "aio"), (b"/anon_hugepage", "anon", "hugepage"), (b"/SYSV", "anon", "sysv"))  # fmt: skip
_NOT_DEVICES = (b"/dev/shm/", b"/dev/mqueue/", b"/dev/hugepages/")
_PROCESS = re.compile(rb"/proc/[0-9]+(?P<task>/task/[0-9]+)?(?=/|$)")


def kind_of(target: bytes) -> tuple[str, str]:
    """Kind and detail of what is no path and no socket: `("epoll", "")`, `("anon", "kvm-vcpu")`."""
    head, bracket, _ = target.partition(b":")
    name = head.decode("utf-8", "surrogateescape")
    if not target:
        return "unknown", ""
    if head == b"anon_inode" or not bracket:
        bare = target.removeprefix(b"anon_inode:").strip(b"[]").partition(b":")[0].decode("utf-8", "surrogateescape")
        return (
            ("bpf", bare)
            if bare.startswith("bpf")
            else (_ANONYMOUS.get(bare, "anon"), "" if bare in _ANONYMOUS else bare)
        )
    if name in ("pipe", "pidfd"):
        return name, ""
    return "anon", f"namespace {name}" if name in _NAMESPACES else name


def unmounted_kind_of(path: bytes) -> tuple[str, str] | None:
    """The same of a path that leads nowhere, such as `/memfd:pool (deleted)`; None for another path."""
    for name, kind, detail in _UNMOUNTED:
        if path.startswith(name):
            if kind == "memfd":
                detail = path[len(name) :].removesuffix(DELETED).decode("utf-8", "surrogateescape")
            return kind, detail
    return None


def path_kind(path: bytes, mode: int | None, links: int) -> str:
    """The kind of a path's file. `mode` None: nobody looked at it, and the path decides."""
    if mode is None:
        if path.endswith(DELETED):
            return FILE_DELETED
        return DEVICE if path.startswith(b"/dev/") and not path.startswith(_NOT_DEVICES) else FILE
    if not links:
        return FILE_DELETED
    if stat.S_ISDIR(mode):
        return DIRECTORY
    if stat.S_ISFIFO(mode):
        return FIFO
    return DEVICE if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else FILE


def place_of(path: bytes) -> str:
    """The path of a file's directory, or of a device, as text; in /proc with PID for the number of a process."""
    found = _PROCESS.match(path)
    if found is not None:
        path = (b"/proc/PID/task/TID" if found["task"] else b"/proc/PID") + path[found.end() :]
    return path.decode("utf-8", "surrogateescape")
