"""A file in which a run leaves what the next one compares with: read and written under one lock, replaced whole, mode 0600.

The lock (flock(2)) is on the file itself. After waiting for it the name may stand for another file: then that one is locked.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from typing import TYPE_CHECKING

from opskit.actions import outfile
from opskit.errors import BadInput, NotPermitted, TargetTimeout

if TYPE_CHECKING:
    from opskit.host import Host

_LARGEST_BYTES = 16 << 20
_TRY_S = 0.05
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class StateFile:
    """The file of a path. `text` is its content, None where there is none yet. It stays locked until `close`."""

    def __init__(self, path: str, option: str, host: Host, wait_s: float) -> None:
        """Lock and read it. Raises BadInput, NotPermitted, CannotWrite; TargetTimeout where another run keeps the lock."""
        self.path, self._option = path, option
        self._fd = -1
        until_s = host.monotonic() + wait_s
        while self._open() and not self._is_locked():
            self.close()
            if host.monotonic() >= until_s:
                raise TargetTimeout(
                    f"{path}: another run of opskit has used it for {wait_s:g} s; try again, or name another file"
                )
            host.sleep(_TRY_S)
        try:
            outfile.check(path, option)
            self.text = self._read() if self._fd >= 0 else None
        except BaseException:
            self.close()
            raise

    def write(self, text: str) -> None:
        """Replace the content. Raises CannotWrite."""
        outfile.write_file(self.path, text.encode("ascii"), mode=0o600, option=self._option)

    def close(self) -> None:
        """Give the lock back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> bool:
        try:
            self._fd = os.open(self.path, _FLAGS)
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                kind = "a symbolic link" if error.errno == errno.ELOOP else "not a regular file"
                raise BadInput(self.path, f"it is {kind}; name a regular file") from None
            raise NotPermitted(f"{self.path}: {error.strerror}; name a file of your own") from None
        found = os.fstat(self._fd)
        if not stat.S_ISREG(found.st_mode):
            self.close()
            raise BadInput(self.path, "it is not a regular file; name one, or a name that does not exist yet")
        if found.st_uid != os.geteuid():
            self.close()
            raise NotPermitted(f"{self.path} belongs to uid {found.st_uid}; name a file of your own")
        return True

    def _is_locked(self) -> bool:
        """Whether we have the lock, and the name still stands for the locked file."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        try:
            return os.path.samestat(os.fstat(self._fd), os.lstat(self.path))
        except FileNotFoundError:
            return False

    def _read(self) -> str:
        with open(os.dup(self._fd), "rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
        if len(data) > _LARGEST_BYTES:
            raise BadInput(self.path, "it is not a state file of opskit doctor: it is too large")
        return data.decode("utf-8", "replace")
