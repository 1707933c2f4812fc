"""The trigger file `.attach_pidPID`, which turns the JVM's next SIGQUIT into the start of its attach listener.

It is made before the signal is sent, with the JVM's own IDs, and always removed. Where it cannot be made, no signal is sent: that
would only print a thread dump into the application's output.
"""

from __future__ import annotations

import os
import stat
import time
from functools import partial

from opskit.errors import AttachError
from opskit.jvm.attach.listener import as_user
from opskit.jvm.attach.target import TRIGGER_STAYS_S, AttachTarget, accepts_root_trigger, why_denied
from opskit.proc.fs import ProcFS, optional

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_CAPABILITIES = "CAP_SYS_PTRACE CAP_SETUID CAP_SETGID"  # to reach the directory, and to make the file as the JVM's user


class Trigger:
    """The trigger file of one JVM, in its working directory or else in its /tmp."""

    def __init__(self, fs: ProcFS, target: AttachTarget) -> None:
        self.fs, self.target = fs, target
        self._made: tuple[int, int, int] | None = None  # directory fd, device, inode
        self._theirs_at = 0.0  # when the trigger of another client was made

    def make(self, tmp: int) -> bool:
        """Make the file. False: another client's file is there and works. Raises AttachError (no-trigger)."""
        refused, is_denied = [], False
        cwd = self.fs.path(self.target.pid, "cwd")
        link = optional(self.fs.link, self.target.pid, "cwd")
        shown = cwd if link is None else link.decode("utf-8", "surrogateescape")
        for place, open_it in ((shown, partial(os.open, cwd, _DIRECTORY)), ("/tmp", partial(os.dup, tmp))):
            try:
                if self._make_at(open_it(), place):
                    return self._made is not None
                refused.append(f"{place}: the new file has another owner")
            except OSError as error:
                refused.append(f"{place}: {os.strerror(error.errno or 0)}")
                is_denied |= isinstance(error, PermissionError)
        why = f"{self.target.trigger_name} cannot be made ({'; '.join(refused)})"
        advice = "SIGQUIT without that file would print a thread dump into the application's output"
        if is_denied:
            advice += f"; {why_denied(self.fs, self.target.pid, _CAPABILITIES)}"
        raise AttachError("no-trigger", self.target.who, why=why, advice=advice)

    def _make_at(self, directory: int, place: str) -> bool:
        """Whether a trigger that works is in a directory now, ours or another client's. Closes the fd of a directory that is not ours."""
        try:
            return self._make_in(directory)
        except FileExistsError:
            if self._check_theirs(directory, place):
                return True
            raise
        finally:
            if self._made is None:
                os.close(directory)

    def is_old(self) -> bool:
        """Whether the trigger that was there, another client's, was left behind."""
        return time.time() - self._theirs_at > TRIGGER_STAYS_S

    def remove(self) -> None:
        """Remove the file that was made, and no other."""
        if self._made is None:
            return
        directory, *made = self._made
        self._made = None
        try:
            self._unlink(directory, made)
        except FileNotFoundError:
            pass
        finally:
            os.close(directory)

    def _make_in(self, directory: int) -> bool:
        flags = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_WRONLY | os.O_CLOEXEC
        path = f"/proc/self/fd/{directory}/{self.target.trigger_name}"
        fd = as_user(self.target, lambda: os.open(path, flags, 0o600))
        try:
            made = os.fstat(fd)
        finally:
            os.close(fd)
        self._made = (directory, made.st_dev, made.st_ino)
        if made.st_uid == self.target.euid:
            return True
        self._unlink(directory, [made.st_dev, made.st_ino])  # a mount that changes owners: the JVM would not accept it
        self._made = None
        return False

    def _unlink(self, directory: int, made: list[int]) -> None:
        path = f"/proc/self/fd/{directory}/{self.target.trigger_name}"
        try:
            os.close(_unlinked(path, made))
        except PermissionError:  # root without rights over that directory or mount
            os.close(as_user(self.target, lambda: _unlinked(path, made)))

    def _check_theirs(self, directory: int, place: str) -> bool:
        """Whether a trigger that is there works: another client's, or one that a killed client left."""
        try:
            found = os.lstat(self.target.trigger_name, dir_fd=directory)
        except FileNotFoundError:
            return False
        by_root = found.st_uid == 0 and accepts_root_trigger(self.target.java_major)
        if stat.S_ISREG(found.st_mode) and (found.st_uid == self.target.euid or by_root):
            self._theirs_at = found.st_mtime
            return True
        owners = f"belongs to uid {found.st_uid}, and a JVM of uid {self.target.euid}"
        why = f"{place}/{self.target.trigger_name} {owners} does not accept it as its trigger file"
        raise AttachError("no-trigger", self.target.who, why=why, advice="remove that file")


def _unlinked(path: str, made: list[int]) -> int:
    """Remove the file with this device and inode, and no other. Returns an fd, as `as_user` needs."""
    found = os.lstat(path)
    if [found.st_dev, found.st_ino] == made:
        os.unlink(path)
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
