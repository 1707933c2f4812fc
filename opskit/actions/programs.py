"""Run a program of the machine for its answer: fixed words, fixed directories, no terminal, an end."""

from __future__ import annotations

import os
import select
import signal
from typing import TYPE_CHECKING

from opskit.actions.child import abandon, wait_for
from opskit.host import Host
from opskit.interrupts import Guard, Interruptible
from opskit.proc.fs import ProcFS

if TYPE_CHECKING:
    from collections.abc import Sequence


_DIRECTORIES = ("/usr/bin", "/usr/sbin", "/bin", "/sbin")
_LARGEST_BYTES = 256 << 10


def find_program(name: str) -> str | None:
    """Its path; None: it is not installed."""
    return next((path for each in _DIRECTORIES if os.access(path := f"{each}/{name}", os.X_OK)), None)


def ask_program(words: tuple[str, ...], timeout_s: float) -> tuple[int | None, str] | None:
    """(exit code, output) of a program of this machine; the code is None where it was killed after the timeout. None: it is not installed.

    Raises OSError where it does not start.
    """
    path = find_program(words[0])
    return None if path is None else program_output(Host(ProcFS()), path, words, timeout_s)


def program_output(host: Host, path: str, words: Sequence[str], timeout_s: float) -> tuple[int | None, str]:
    """(exit code, output) of a program; None where it had to be killed after the timeout. Raises OSError where it does not start."""
    with Guard():
        reading, writing = os.pipe()
        try:
            pid = os.posix_spawn(
                path, list(words), {"LC_ALL": "C", "PATH": ":".join(_DIRECTORIES), "SYSTEMD_PAGER": "", "TERM": "dumb"},
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, writing, 1),
                    (os.POSIX_SPAWN_DUP2, writing, 2),
                ],
                setpgroup=0,  # Ctrl-C goes to opskit only
                setsigdef=[signal.SIGPIPE, signal.SIGINT],
            )  # fmt: skip
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        deadline = host.monotonic() + timeout_s
        try:
            with Interruptible():
                text = _read(host, reading, deadline)
                code = wait_for(host, pid, max(deadline - host.monotonic(), 0))
        except BaseException:
            abandon(pid)
            raise
        finally:
            os.close(reading)
    return code, text.decode("utf-8", "replace")


def _read(host: Host, fd: int, deadline: float) -> bytes:
    """What comes until its end or the deadline."""
    text = b""
    while len(text) < _LARGEST_BYTES:
        ready, _, _ = select.select([fd], [], [], max(deadline - host.monotonic(), 0))
        chunk = os.read(fd, 1 << 16) if ready else b""
        if not chunk:
            break
        text += chunk
    return text
