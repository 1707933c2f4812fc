"""Users without rights for tests, one test at a time: two that use one user's files in /tmp disturb each other."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import tempfile

_NAMES = ("news", "uucp", "proxy", "backup", "list", "irc", "man", "lp", "games", "bin", "mail", "daemon")


@contextlib.contextmanager
def reserved_user():
    """The passwd entry of a system user, reserved on this machine while the block runs; None where there is none."""
    path = os.path.join(tempfile.gettempdir(), "opskit-test-users")
    with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as locks:
        for name in _NAMES:
            with contextlib.suppress(KeyError, OSError):
                entry = pwd.getpwnam(name)
                fcntl.lockf(locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, entry.pw_uid)
                break
        else:
            entry = None
        yield entry
