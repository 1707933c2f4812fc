"""Do one thing with a JVM's own user and group IDs: HotSpot goes by the IDs of the client that connects."""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.jvm.attach.target import AttachTarget


def has_ids(target: AttachTarget) -> bool:
    """Whether our effective IDs are the JVM's."""
    return (os.geteuid(), os.getegid()) == (target.euid, target.egid)


def as_user(target: AttachTarget, act: Callable[[], int]) -> int:
    """The fd that `act` returns, with the JVM's effective IDs: in a child process where root must take them on.

    Raises what `act` raises, as an OSError.
    """
    if os.geteuid() != 0 or has_ids(target):
        return act()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = os.fork()
        if not child:
            _run(target, act, theirs)
        theirs.close()
        try:
            message, fds, _, _ = socket.recv_fds(ours, 4, 1)
        finally:
            os.waitpid(child, 0)
    code = int.from_bytes(message, "little")
    if code or not fds:
        raise OSError(code or errno.ECHILD, os.strerror(code or errno.ECHILD))
    return fds[0]


def _run(target: AttachTarget, act: Callable[[], int], report: socket.socket) -> NoReturn:
    """In the child: take on the IDs (the group first, while that is still allowed), act, send the fd or the error."""
    code, fds = errno.EIO, []
    try:
        os.setgroups(target.groups)
        os.setegid(target.egid)
        os.seteuid(target.euid)
        fds = [act()]
        code = 0
    except OSError as error:
        code = error.errno or errno.EIO
    finally:
        socket.send_fds(report, [code.to_bytes(4, "little")], fds)
        os._exit(0)
