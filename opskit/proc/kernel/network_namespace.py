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


@contextmanager
def network_namespace(path: str | None) -> Iterator[None]:
    """Move this thread to the network namespace at a path, `/proc/4242/ns/net`, and back. None: stay.

    Raises OSError: EPERM without CAP_SYS_ADMIN over the namespace, ENOENT where the process has ended. /proc/net is that of the
    main thread, so that other threads read /proc/thread-self/net.
    """
    if path is None:
        yield
        return
    with Guard():  # no signal may leave us there
        ours = os.open(_OURS, os.O_RDONLY | os.O_CLOEXEC)
        try:
            theirs = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                set_network_namespace(theirs)
            finally:
                os.close(theirs)
            try:
                with Interruptible():
                    yield
            finally:
                set_network_namespace(ours)
        finally:
            os.close(ours)
