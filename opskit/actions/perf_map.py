"""Profile a JVM by frame pointers, with the names that it writes to a perf map.

    jcmd PID Compiler.perfmap          JDK 17 to 21: /tmp/perf-PID.map in its own mount and PID namespace
    jcmd PID Compiler.perfmap FILE     JDK 22 and later

The JVM follows links where it writes. So its file is made before, as the JVM's user, and stays open here; the JVM truncates it.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from opskit.actions.private_directory import PrivateDirectory, read_received
from opskit.collect.cpu_profile import profile
from opskit.collect.cpu_rights import why_not
from opskit.collect.perf_map import PerfMapTarget, check_can_follow, with_later_names
from opskit.errors import AttachError, NoSuchProcess, NotPermitted
from opskit.interrupts import Guard, Interruptible
from opskit.jvm.attach.client import AttachClient
from opskit.jvm.attach.listener import as_user, open_tmp
from opskit.proc.fs import READ_ONLY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opskit.collect.cpu_profile import CpuProfile
    from opskit.host import Host

    WriteMap = Callable[[], bytes]

_NAMED_FILE_JDK = 22
_TMP = "/tmp"  # noqa: S108  (that of the JVM)
_LARGEST_BYTES = 256 << 20
_NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR | os.O_CLOEXEC


def profile_by_perf_map(host: Host, pid: int, hz: float, duration_s: float) -> CpuProfile:
    """Sample for `duration_s` or until Ctrl-C; `missing` says what is not seen.

    Raises NotPermitted, NotSupported (no frame pointers, JDK before 17), NotAJvm, NoSuchProcess, AttachError.
    """
    host.prove_own(pid)
    client = AttachClient(host.fs, pid)
    check_can_follow(host, client)
    why = why_not(host, pid)
    if why is not None:
        raise NotPermitted(why)
    with Guard(), _map_writer(host, client) as write_map:
        with Interruptible():
            first = write_map()
            found = profile(
                host, pid, hz, duration_s, open_target=lambda host, pid: PerfMapTarget(host, pid, first)
            )  # fmt: skip
        with suppress(NoSuchProcess, AttachError):  # it has ended, or does not answer any more
            found = with_later_names(found, write_map())
        return found


@contextmanager
def _map_writer(host: Host, client: AttachClient) -> Iterator[WriteMap]:
    """A function that has the JVM write its map, and returns it. The file is removed at the end, if it was made for that."""
    target = client.target
    if (target.java_major or 0) >= _NAMED_FILE_JDK:
        directory = PrivateDirectory(host, target, executable=False)
        try:
            path = directory.receive("map")
            yield lambda: _written(client, f"Compiler.perfmap {path}", lambda: directory.read("map", _LARGEST_BYTES))
        finally:
            directory.remove()
        return
    name = f"perf-{target.jvm.ns_pid}.map"
    tmp = open_tmp(host.fs, target)
    try:
        fd, is_ours = _hold(client, tmp, name)
        try:
            read = lambda: read_received(fd, f"{_TMP}/{name}", target.who, _LARGEST_BYTES)  # noqa: E731
            yield lambda: _written(client, "Compiler.perfmap", read)
        finally:
            if is_ours:
                _unlink(tmp, name, fd)
            os.close(fd)
    finally:
        os.close(tmp)


def _written(client: AttachClient, command: str, read: WriteMap) -> bytes:
    said = client.jcmd(command)
    found = read()
    if not found:
        why = f"Compiler.perfmap wrote no perf map: {said.strip()[:300] or 'it gave no reason'}"
        raise AttachError("tmp", client.target.who, why=why, advice="make room there")
    return found


def _hold(client: AttachClient, tmp: int, name: str) -> tuple[int, bool]:
    """An fd of the file that the JVM will write, and whether it was made now. Raises AttachError (tmp) for a file that is not the JVM's."""
    target = client.target
    try:
        return as_user(target, lambda: os.open(f"/proc/self/fd/{tmp}/{name}", _NEW, 0o600)), True
    except FileExistsError:
        pass
    except OSError as error:
        raise AttachError("tmp", target.who, why=f"{name}: {error.strerror}", advice="make it writable") from None
    try:
        seen = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=tmp)
        try:
            found = os.fstat(seen)
            if stat.S_ISREG(found.st_mode) and found.st_uid == target.euid and found.st_nlink == 1:
                return os.open(f"/proc/self/fd/{seen}", READ_ONLY), False
        finally:
            os.close(seen)
    except OSError as error:
        raise AttachError("tmp", target.who, why=f"{_TMP}/{name}: {error.strerror}", advice="remove it") from None
    why = f"{_TMP}/{name} is not a file of uid {target.euid} alone, and the JVM would write through it"
    raise AttachError("tmp", target.who, why=why, advice="find out who made it, and remove it")


def _unlink(tmp: int, name: str, fd: int) -> None:
    """Remove the file that we hold, and no other."""
    with suppress(OSError):
        if os.path.samestat(os.lstat(name, dir_fd=tmp), os.fstat(fd)):
            os.unlink(name, dir_fd=tmp)
