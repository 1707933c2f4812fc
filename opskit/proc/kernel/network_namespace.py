"""Work in the network namespace of another process (setns(2)): netlink sockets made there, and /proc/sys/net, belong to it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opskit.interrupts import Guard, Interruptible
from opskit.proc.kernel.syscalls import set_network_namespace

if TYPE_CHECKING:
    from collections.abc import Iterator

_OURS = "/proc/thread-self/ns/net"
_FLAGS = os.O_RDONLY | os.O_CLOEXEC


class NetworkNamespace:
    """The network namespace at a path, `/proc/4242/ns/net`. It is held open: it lasts when the process ends."""

    def __init__(self, path: str) -> None:
        """Raise OSError: ENOENT where the process has ended, EACCES without ptrace rights."""
        self._fd = os.open(path, _FLAGS)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Move this thread there, and back. Raises OSError: EPERM without CAP_SYS_ADMIN over the namespace.

        /proc/net stays that of the main thread: another one reads /proc/thread-self/net.
        """
        with Guard():  # no signal may leave us there
            ours = os.open(_OURS, _FLAGS)
            try:
                set_network_namespace(self._fd)
                try:
                    with Interruptible():
                        yield
                finally:
                    set_network_namespace(ours)
            finally:
                os.close(ours)

    def close(self) -> None:
        """Let it go."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
