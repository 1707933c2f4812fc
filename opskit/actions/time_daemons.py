"""Ask the machine's own time daemons by their clients: chronyc, ntpq, timedatectl. Fixed words, fixed directories, 2 s each.

They are asked only where the daemon was found in /proc, may set the clock, and is in our network namespace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.actions.programs import ask_program
from opskit.collect.clock.answers import PARSERS, Answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.collect.clock.facts import Daemon
    from opskit.host import Host

_TOOLS = {
    "chronyd": ("chronyc", "-n", "tracking"),
    "ntpd": ("ntpq", "-n", "-c", "rv"),
    "systemd-timesyncd": ("timedatectl", "show-timesync", "--all"),
}
_TIMEOUT_S, _EACH_S, _EACH_STEP_S = 2.0, 10.0, 1.0


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
    try:
        said = host.fs.calls.ask(ask_program, words, _TIMEOUT_S)
    except OSError as error:
        return nothing._replace(problem=f"{words[0]}: {error.strerror}")
    if said is None:
        return nothing._replace(problem=f"{words[0]} is not installed")
    code, text = said
    if code is None:
        return nothing._replace(problem=f"{words[0]} did not end within {_TIMEOUT_S:g} s")
    answer = PARSERS[words[0]](text, host.now().timestamp())
    if answer is None:
        first = next((line.strip() for line in text.splitlines() if line.strip()), f"exit code {code}")
        return nothing._replace(problem=f"{words[0]}: {first[:120]}")
    return answer._replace(daemon=daemon.name, tool=words, pid=daemon.pid)
