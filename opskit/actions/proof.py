"""Hold a file so that it cannot be replaced by another one, and prove whose it is.

A user who may choose what is mounted where a process runs (in a user namespace, or a container started by a setuid program) can
mount any file over the name of an own one. So a file is reached from the process's own root, through real directories, and must
be on the mount of its /tmp: a file that something is mounted over is on another one. Processes are held by their /proc/PID,
which shows nothing once that process has ended, even if its PID is reused.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from opskit.analysis.hsperf_check.repairs import open_to_others
from opskit.errors import BadInput
from opskit.jvm.attach.listener import listener_at, listener_of
from opskit.jvm.mapped_files import parse_jvm_maps
from opskit.jvm.perfdata.holders import Holders
from opskit.jvm.perfdata.hsperfdata import MAGIC
from opskit.proc.file_id import FileId
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.fs import ProcFS
from opskit.proc.rights import ANY_COMMAND, how_to_be_allowed
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    from opskit.analysis.hsperf_check.repairs import Repair
    from opskit.host import Host
    from opskit.jvm.attach.files import Location
    from opskit.proc.files.maps import Mapping

_LARGEST_COUNTERS_BYTES = 16 << 20  # -XX:PerfDataMemorySize is 32 KiB by default
_ANY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = _ANY | os.O_DIRECTORY


class Unproven(Exception):  # noqa: N818  (it is a verdict)
    """Why a file is not touched."""


class Held(NamedTuple):
    """A file, held by fds: itself (O_PATH), the directory that has it as `name`, the process through which it is reached."""

    file: int
    directory: int
    name: str
    process: int | None

    def stat(self) -> os.stat_result:
        """Its stat now."""
        return os.fstat(self.file)

    @property
    def path(self) -> str:
        """A path that always leads to this file."""
        return f"/proc/self/fd/{self.file}"


def hold(host: Host, repair: Repair, fds: ExitStack) -> Held:
    """Find the file again. Raises Unproven, and OSError where it is not there. `fds` closes what was opened."""

    def keep(fd: int) -> int:
        fds.callback(os.close, fd)
        return fd

    if repair.location is None or not repair.names:
        raise Unproven("it cannot be reached safely")
    process, top = _start(host, repair.location, keep)
    for step in repair.location.steps:
        top = keep(os.open(step, _DIRECTORY, dir_fd=top))
    directory = top
    for name in repair.names[:-1]:
        directory = keep(os.open(name, _DIRECTORY, dir_fd=directory))
    file = keep(os.open(repair.names[-1], _ANY, dir_fd=directory))
    if not _mount_id(top) == _mount_id(directory) == _mount_id(file):
        raise Unproven("something is mounted over it, or over its directory")
    return Held(file, directory, repair.names[-1], process)


def _start(host: Host, location: Location, keep: Callable[[int], int]) -> tuple[int | None, int]:
    """The process, and its root or working directory. One in another user namespace chooses what is mounted there: refused."""
    if location.pid is None:
        return None, keep(os.open("/", _DIRECTORY))
    if location.start_ticks is None:
        raise Unproven(f"the start time of {location.pid} is unknown, and its PID may have been reused")
    process = keep(os.open(host.fs.path(location.pid), _DIRECTORY))
    check_process(process, location.pid, start_ticks=location.start_ticks)
    start = keep(os.open(location.start, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=process))
    # Checked after the open: a process may leave our user namespace at any moment, and cannot come back.
    if not os.path.samestat(os.stat("ns/user", dir_fd=process), os.stat("/proc/self/ns/user")):
        raise Unproven(f"{location.pid} runs in another user namespace: run opskit inside of it")
    return process, start


def check_process(process: int, pid: int, *, start_ticks: int | None = None, euid: int | None = None) -> None:
    """Raise Unproven unless it is the process that was looked at, and runs as this user."""
    try:
        started = parse_stat(_read(process, "stat")).start_ticks
        runs_as = parse_status(_read(process, "status")).effective_uid
    except (OSError, BadInput):
        raise Unproven(f"{pid} has ended, or cannot be looked into") from None
    if start_ticks is not None and started != start_ticks:
        raise Unproven(f"{pid} is another process now")
    if euid is not None and runs_as != euid:
        raise Unproven(f"{pid} runs as another user now")


def check_peer(held: Held, repair: Repair) -> None:
    """Raise Unproven unless the JVM, with its present user, listens on the socket."""
    if held.process is None or listener_of(held.path) != (repair.pid, repair.euid):
        raise Unproven(f"its listener is not {repair.pid}")
    check_process(held.process, repair.pid, euid=repair.euid)


def check_mapped(held: Held, repair: Repair, fds: ExitStack) -> None:
    """Raise Unproven unless the JVM maps the file, or one in the directory, as HotSpot does, and only its owner could do that."""
    if held.process is None or repair.euid is None:
        raise Unproven("it is not reached through the JVM")
    mapping = _mapping(held.process, repair.pid)
    if mapping is None or mapping.deleted:
        raise Unproven(f"{repair.pid} maps no hsperfdata file")
    file, names = held.file, repair.names
    if stat.S_ISDIR(held.stat().st_mode):
        names = (*names, mapping.path.rpartition("/")[2])
        try:
            file = os.open(names[-1], _ANY, dir_fd=held.file)
        except OSError:
            raise Unproven(f"the file that {repair.pid} maps is not in it") from None
        fds.callback(os.close, file)
    if tuple(mapping.path.split("/")[-2:]) != names:
        raise Unproven(f"{repair.pid} maps a file of another name")
    try:
        mapped = os.open(f"map_files/{mapping.addresses}", os.O_PATH | os.O_CLOEXEC, dir_fd=held.process)
    except OSError as error:
        advice = how_to_be_allowed(ProcFS(), "CAP_SYS_ADMIN", *ANY_COMMAND, pid=repair.pid)
        raise Unproven(f"what {repair.pid} maps cannot be looked at: {error.strerror}; {advice}") from None
    fds.callback(os.close, mapped)
    found = os.fstat(file)
    # Read again: another file may have been mapped there, for reading only, since the first time.
    if not os.path.samestat(found, os.fstat(mapped)) or mapping != _mapping(held.process, repair.pid):
        raise Unproven(f"{repair.pid} maps another file")
    if not _mount_id(held.file) == _mount_id(file) == _mount_id(mapped):
        raise Unproven(f"{repair.pid} maps it on another mount")
    _check_counters(file)
    for each in (found, held.stat()):
        open_to = open_to_others(FileId.of(each), repair.euid)
        if open_to is not None:
            raise Unproven(open_to)
    check_process(held.process, repair.pid, euid=repair.euid)


def _mapping(process: int, pid: int) -> Mapping | None:
    try:
        return parse_jvm_maps(_read(process, "maps")).hsperfdata
    except OSError:
        raise Unproven(f"the maps of {pid} cannot be read") from None


def check_dead(host: Host, held: Held) -> None:
    """Raise Unproven if a process listens on the socket, or locks or maps the counters."""
    found = held.stat()
    if stat.S_ISSOCK(found.st_mode):
        if listener_at(held.path)[0] is not False:
            raise Unproven("a process listens on it")
        return
    _check_counters(held.file)
    holders = Holders(host.fs)
    if holders.is_locked(found.st_ino) is not False:
        raise Unproven("a process holds a lock on it, or locks cannot be seen")
    if holders.is_mapped(FileId.of(found)) is not False:
        raise Unproven("a process maps it, or not every process could be looked into")


def _check_counters(file: int) -> None:
    """Raise Unproven unless it is a plain file with one link that begins with hsperfdata's magic."""
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        raise Unproven("it is not a plain file with one link")
    begins = b""
    if len(MAGIC) <= found.st_size <= _LARGEST_COUNTERS_BYTES:
        try:
            content = os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise Unproven(f"it cannot be read: {error.strerror}") from None
        try:
            begins = os.pread(content, len(MAGIC), 0)
        finally:
            os.close(content)
    if begins != MAGIC:
        raise Unproven("it is not an hsperfdata file")


def _mount_id(fd: int) -> int:
    """The mount that an fd was opened on. fdinfo has it since Linux 3.15; statx only since 5.8."""
    with open(f"/proc/self/fdinfo/{fd}", "rb") as lines:
        for line in lines:
            name, _, value = line.partition(b":")
            number = integer(value.strip()) if name == b"mnt_id" else None
            if number is not None:
                return number
    raise Unproven("its mount is unknown on this kernel")


def _read(directory: int, name: str) -> str:
    with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory), "rb", buffering=0) as file:
        return (file.readall() or b"").decode("utf-8", "surrogateescape")
