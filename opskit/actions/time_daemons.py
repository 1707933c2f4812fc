"""Ask the machine's own time daemons by their clients: chronyc, ntpq, timedatectl. Fixed words, fixed directories, 2 s each.

They are asked only where the daemon was found in /proc, may set the clock, and is in our network namespace.
"""

from __future__ import annotations

import os
import select
import signal
from typing import TYPE_CHECKING

from opskit.actions.child import abandon, wait_for
from opskit.collect.clock.answers import PARSERS, Answer
from opskit.interrupts import Guard, Interruptible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.collect.clock.facts import Daemon
    from opskit.host import Host

_TOOLS = {
    "chronyd": ("chronyc", "-n", "tracking"),
    "ntpd": ("ntpq", "-n", "-c", "rv"),
    "systemd-timesyncd": ("timedatectl", "show-timesync", "--all"),
}
_DIRECTORIES = ("/usr/bin", "/usr/sbin", "/bin", "/sbin")
_TIMEOUT_S, _EACH_S, _EACH_STEP_S = 2.0, 10.0, 1.0
_LARGEST_BYTES = 16 << 10


class DaemonReader:
    """Asks each daemon at most every 10 s, or every second while the clock is being set."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._answers: dict[tuple[str, int], tuple[float, int, Answer]] = {}

    def ask(self, daemons: Sequence[Daemon], steps: int = 0) -> list[Answer]:
        """An answer of each kind of daemon that has a client; its `problem` where there is none.

        `steps`: how often the clock was set so far. An answer from before that is asked for again after a second.
        """
        if not self._host.is_own:
            return []
        found = {}
        for daemon in _one_of_each(daemons):
            key = daemon.name, daemon.pid
            last = self._answers.get(key)
            now_s = self._host.monotonic()
            if last is None or now_s - last[0] >= (_EACH_S if steps == last[1] else _EACH_STEP_S):
                last = now_s, steps, _ask(self._host, daemon)
            found[key] = last
        self._answers = found
        return [answer for _, _, answer in found.values()]


def _one_of_each(daemons: Sequence[Daemon]) -> list[Daemon]:
    """A client reaches one daemon of its kind: the one in our network namespace that may set the clock."""
    able = [daemon for daemon in daemons if daemon.name in _TOOLS and daemon.may_set is not False]
    likely = sorted(able, key=lambda daemon: (daemon.shares_network is False, daemon.may_set is None))
    return [*{daemon.name: daemon for daemon in reversed(likely)}.values()]


def _ask(host: Host, daemon: Daemon) -> Answer:
    words = _TOOLS[daemon.name]
    nothing = Answer(daemon.name, words, pid=daemon.pid)
    if daemon.shares_network is False:
        return nothing._replace(problem="it runs in another network namespace")
    path = next((path for each in _DIRECTORIES if os.access(path := f"{each}/{words[0]}", os.X_OK)), None)
    if path is None:
        return nothing._replace(problem=f"{words[0]} is not installed")
    try:
        code, text = _output(host, path, words)
    except OSError as error:
        return nothing._replace(problem=f"{words[0]}: {error.strerror}")
    if code is None:
        return nothing._replace(problem=f"{words[0]} did not end within {_TIMEOUT_S:g} s")
    answer = PARSERS[words[0]](text, host.now().timestamp())
    if answer is None:
        said = next((line.strip() for line in text.splitlines() if line.strip()), f"exit code {code}")
        return nothing._replace(problem=f"{words[0]}: {said[:120]}")
    return answer._replace(daemon=daemon.name, tool=words, pid=daemon.pid)


def _output(host: Host, path: str, words: Sequence[str]) -> tuple[int | None, str]:
    """(exit code, output) of a program; None where it had to be killed. Raises OSError where it does not start."""
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
        deadline = host.monotonic() + _TIMEOUT_S
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
        chunk = os.read(fd, 4096) if ready else b""
        if not chunk:
            break
        text += chunk
    return text
