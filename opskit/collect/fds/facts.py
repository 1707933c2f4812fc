"""What is read of file descriptors. None: unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.collect.fd_threads import FdThread
    from opskit.proc.open_files import OpenFiles
    from opskit.proc.process import Process


class Request(NamedTuple):
    """What to read of one process. `ask`: one thread dump of a JVM."""

    pid: int
    ask: bool = False


class Group(NamedTuple):
    """The fds of one kind and place: `tcp ESTAB to 10.0.0.7:5432`, `file /var/log`, `eventfd`, `deleted /var/log`.

    `kind`: tcp, udp, unix, netlink, packet, socket (another protocol, or unknown), file, directory, deleted, pipe, fifo, eventfd, epoll, inotify,
    fanotify, timerfd, signalfd, memfd, device, io_uring, bpf, perf_event, userfaultfd, pidfd, anon (any other anonymous inode), unknown.
    `detail`: state and peer, or the directory, or the device; empty where the kind is all there is. `example`: the target of one fd.
    `oldest_s` and `newest_s`: since 1970, when the objects were made, where the kernel tells. `threads`: waiting on fds of the group.
    """

    kind: str
    detail: str
    fds: int
    lowest: int
    highest: int
    example: str
    oldest_s: float | None = None
    newest_s: float | None = None
    threads: tuple[FdThread, ...] = ()


class Facts(NamedTuple):
    """One look. `open`: RLIMIT_NOFILE and what is used of it. `now_s`: since 1970. `at_s`: since the first look of a watch.

    `raise_limit`: the command that doubles the limit; None where it cannot be raised.
    """

    process: Process
    open: OpenFiles | None
    groups: tuple[Group, ...]
    at_s: float
    now_s: float
    fds: int
    is_jvm: bool
    missing: tuple[str, ...] = ()
    raise_limit: str | None = None


class Near(NamedTuple):
    """A process and what it uses of RLIMIT_NOFILE. `raise_limit`: a command line for twice the limit, where it is nearly used up."""

    process: Process
    open: OpenFiles
    raise_limit: str | None = None


class User(NamedTuple):
    """What a user has of a per-user limit (inotify instances, inotify watches, epoll watches), and the processes with the most."""

    uid: int
    name: str
    used: int
    processes: tuple[tuple[int, str, int], ...]  # PID, command, of these


class HostFacts(NamedTuple):
    """The machine. `file_nr`: open files and fs.file-max. The limits are fs.inotify.max_user_instances, .max_user_watches, fs.epoll.max_user_watches.

    `complete`: every process could be read, so that the users' counts are no lower bounds.
    """

    nearest: tuple[Near, ...]
    file_nr: tuple[int, int] | None
    inotify_instances: tuple[User, ...]
    inotify_watches: tuple[User, ...]
    epoll_watches: tuple[User, ...]
    max_instances: int | None
    max_watches: int | None
    max_epoll: int | None
    complete: bool
    missing: tuple[str, ...] = ()


class DeletedHolder(NamedTuple):
    """A process that has a deleted file open (`fds`) or mapped. `unit`: its container, pod or systemd unit."""

    process: Process
    fds: tuple[int, ...]
    mapped: bool
    unit: str | None
    # An fd, where all of them are open for writing alone and with O_APPEND: only then truncating the file leaves no hole.
    appending_fd: int | None = None


class DeletedFile(NamedTuple):
    """A deleted file that is still held. `bytes`: its blocks, not its apparent size; both None where only mappings are seen, without rights."""

    device: int
    inode: int
    path: str
    bytes: int | None
    size_bytes: int | None
    is_regular: bool
    holders: tuple[DeletedHolder, ...]


class FileSystem(NamedTuple):
    """A local file system. `files`: deleted and held, the largest first. Free: for users without rights. Inodes None: it does not count them.

    `reserved_bytes`: free for root alone.

    `mount` empty, sizes None: where the files are is not mounted now, or nowhere that could be read. One that opskit does not see is below
    /proc/PID/root.
    """

    device: int
    mount: str
    type: str
    size_bytes: int | None
    free_bytes: int | None
    inodes: int | None
    free_inodes: int | None
    files: tuple[DeletedFile, ...]
    reserved_bytes: int = 0


class Unattached(NamedTuple):
    """Memory that no process holds: a System V segment attached by nobody, or a file in /dev/shm that nobody has open or mapped."""

    kind: str  # sysv, shm
    name: str  # the segment's id, or the file's path
    bytes: int
    remove: str  # a command line of opskit.shell


class DeletedFacts(NamedTuple):
    """All local file systems. `in_flight`: fds in the queues of unix sockets by PID, whose files are not seen. `skipped_remote`: fds not looked at.

    `of_pid`: these are the files of one process alone.
    """

    systems: tuple[FileSystem, ...]
    memory: tuple[DeletedFile, ...]  # memfds, and deleted files of a tmpfs that is not among the systems
    unattached: tuple[Unattached, ...]
    in_flight: tuple[tuple[int, int], ...]
    skipped_remote: int
    complete: bool
    missing: tuple[str, ...] = ()
    of_pid: int | None = None
