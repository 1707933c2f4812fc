"""Run work that may never return (a write or a sync on a hung mount) in a child process.

A process in uninterruptible sleep cannot be killed: the child is polled, and left behind when the time is up.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from opskit.errors import BugInChild
from opskit.interrupts import Guard, Interruptible
from opskit.proc.kernel.children import close_from, fork

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.host import Host

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.05
_UNKNOWN, _BUG = 255, 254  # no errno is that large
_KILL_TRIES = 200  # a killed child ends within milliseconds, on a loaded machine later


def run_in_child(host: Host, work: Callable[[], None], timeout_s: float) -> int | None:
    """Do the work in a child: 0 when it is done, the errno of the OSError it raised, None after the timeout.

    The child is killed at the end of the wait, also by Ctrl-C; one that cannot be killed has no terminal, pipe or file of ours open.
    Raises BugInChild where the work raised anything but an OSError.
    """
    with Guard():
        pid = fork()
        if pid == 0:
            _child(work)
        try:
            with Interruptible():
                code = wait_for(host, pid, timeout_s)
        except BaseException:
            abandon(pid)
            raise
    if code == _BUG:
        raise BugInChild(f"unexpected exception in {getattr(work, '__qualname__', 'the work')} of a child process")
    return code


def wait_for(host: Host, pid: int, timeout_s: float) -> int | None:
    """The exit code of a child, which is killed after the timeout: then None."""
    deadline, pause = host.monotonic() + timeout_s, _FIRST_PAUSE_S
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else _UNKNOWN
        if host.monotonic() >= deadline:
            abandon(pid)
            return None
        host.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


def abandon(pid: int) -> None:
    """Kill a child, and reap it unless it cannot be killed."""
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)
        for _ in range(_KILL_TRIES):
            if os.waitpid(pid, os.WNOHANG)[0]:
                return
            time.sleep(_FIRST_PAUSE_S)


def _child(work: Callable[[], None]) -> NoReturn:
    code = _BUG
    try:
        os.setsid()  # Ctrl-C goes to the parent only
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        close_from(3)
        os.chdir("/")
        work()
        code = 0
    except OSError as error:
        code = error.errno or _UNKNOWN
    finally:
        os._exit(code)
