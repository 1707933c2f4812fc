"""A directory where another process sees it, for files that it loads or writes: no other user can add, replace or link any.

It is made under an unpredictable name through an fd, in the process's own mount namespace, and belongs to us. The process's group
may enter it. Files are created before the process is told of them, and stay open: what it wrote is read by those fds.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from opskit.actions import leftovers
from opskit.errors import AttachError, NotPermitted
from opskit.jvm.attach.target import has_our_tmp
from opskit.proc.rights import ANY_COMMAND, how_to_be_allowed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.host import Host
    from opskit.jvm.attach.target import AttachTarget

PLACES = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  (those of the process)
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR | os.O_CLOEXEC


class PrivateDirectory:
    """The directory. `path`: as the process names it. The caller makes, uses and removes it in a Guard."""

    def __init__(self, host: Host, target: AttachTarget, *, executable: bool) -> None:
        """Make it in the first usable place; `executable`: libraries can be mapped there. Raises AttachError (tmp), NotPermitted."""
        self.target = target
        refused = []
        denied = False
        self._files: dict[str, int] = {}
        for place in PLACES:
            try:
                self._parent = _open(host, target, place)
            except OSError as error:
                refused.append(f"{place}: {error.strerror}")
                continue
            why = _unfit(self._parent, executable=executable)
            try:
                if why is None:
                    self._make(place)
                    return
            except OSError as error:
                why = error.strerror
                denied |= isinstance(error, PermissionError)
            os.close(self._parent)
            refused.append(f"{place}: {why}")
        why = f"no file of ours can be put there ({'; '.join(refused)})"
        advice = "mount a directory for it at one of these places"
        if denied:
            advice = how_to_be_allowed(host.fs, "CAP_CHOWN CAP_DAC_OVERRIDE", *ANY_COMMAND, pid=target.pid)
        raise AttachError("tmp", target.who, why=why, advice=advice)

    def _make(self, place: str) -> None:
        remove_abandoned(self._parent)
        self._name = leftovers.new_name()
        os.mkdir(self._name, 0o700, dir_fd=self._parent)
        self.path = f"{place}/{self._name}"
        self._fd = os.open(self._name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=self._parent)
        try:
            if os.geteuid() != self.target.euid:
                here = f"/proc/self/fd/{self._fd}"
                os.chown(here, -1, self.target.egid)
                os.chmod(here, 0o710)  # noqa: S103  (the process's group may enter it)
        except OSError:
            os.close(self._fd)
            os.rmdir(self._name, dir_fd=self._parent)
            raise

    def put(self, name: str, data: bytes) -> str:
        """Make a file that the process may read; its path there. Raises AttachError (tmp)."""
        with self._explained(name):
            fd = self._files[name] = os.open(name, _NEW, 0o600, dir_fd=self._fd)
            os.fchmod(fd, 0o644)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
        return f"{self.path}/{name}"

    def receive(self, name: str) -> str:
        """Make an empty file that the process may write to; its path there. Raises AttachError (tmp)."""
        with self._explained(name):
            fd = self._files[name] = os.open(name, _NEW, 0o600, dir_fd=self._fd)
            if os.geteuid() != self.target.euid:
                os.fchown(fd, self.target.euid, -1)
        return f"{self.path}/{name}"

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = f"{self.path}/{name} cannot be made: {error.strerror}"
            raise AttachError("tmp", self.target.who, why=why, advice="everything was removed") from None

    def read(self, name: str, limit_bytes: int) -> bytes:
        """What the process wrote to a file of `receive`. Raises AttachError (reply-too-large)."""
        return read_received(self._files[name], f"{self.path}/{name}", self.target.who, limit_bytes)

    def remove(self) -> bool:
        """Remove everything; whether nothing is left. What the process itself put there stays."""
        for name, fd in self._files.items():
            with suppress(OSError):
                os.unlink(name, dir_fd=self._fd)
            with suppress(OSError):
                os.close(fd)
        self._files.clear()
        try:
            os.rmdir(self._name, dir_fd=self._parent)
        except FileNotFoundError:
            pass
        except OSError:
            return False
        finally:
            os.close(self._fd)
            os.close(self._parent)
        return True


def read_received(fd: int, path: str, who: str, limit_bytes: int) -> bytes:
    """What another process wrote to a file that we hold. Raises AttachError (reply-too-large)."""
    if (size := os.fstat(fd).st_size) > limit_bytes:
        what = f"{path} has {size >> 20} MiB, and at most {limit_bytes >> 20} MiB are read"
        raise AttachError("reply-too-large", who, what=what, advice="nothing of it was used", limit_bytes=limit_bytes)
    chunks: list[bytes] = []
    at = 0
    while at < size and (chunk := os.pread(fd, size - at, at)):
        chunks.append(chunk)
        at += len(chunk)
    return b"".join(chunks)


def _open(host: Host, target: AttachTarget, place: str) -> int:
    """An fd of a directory in the mount namespace of the process. Raises OSError, NotPermitted."""
    try:
        return os.open(host.fs.inside(target.pid, place), _DIRECTORY)
    except PermissionError:
        if has_our_tmp(host.fs, target.jvm):
            return os.open(place, _DIRECTORY)
        advice = how_to_be_allowed(host.fs, "CAP_SYS_PTRACE", *ANY_COMMAND, pid=target.pid)
        raise NotPermitted(f"/proc/{target.pid}/root: permission denied; {advice}") from None


def _unfit(directory: int, *, executable: bool) -> str | None:
    flags = os.statvfs(f"/proc/self/fd/{directory}").f_flag
    if flags & os.ST_RDONLY:
        return "mounted read-only"
    return (
        "mounted noexec, so that no library can be loaded from there" if executable and flags & os.ST_NOEXEC else None
    )


def remove_abandoned(directory: int) -> None:
    """Remove the private directories that killed runs of our user left in a directory (an fd), with the files in them."""
    for name in leftovers.abandoned(directory):
        with suppress(OSError):
            fd = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
            try:
                if os.fstat(fd).st_uid == os.geteuid():
                    _empty(fd)
                    os.rmdir(name, dir_fd=directory)
            finally:
                os.close(fd)


def _empty(directory: int) -> None:
    for name in os.listdir(f"/proc/self/fd/{directory}"):
        if not stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode):
            os.unlink(name, dir_fd=directory)
