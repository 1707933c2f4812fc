"""The PIDs that a command was given: they exist, and during a watch they stay the same processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.errors import NoSuchProcess, NotSupported
from opskit.proc.files.status import parse_status
from opskit.proc.rights import how_to_be_allowed
from opskit.proc.visibility import hides_processes

if TYPE_CHECKING:
    from opskit.host import Host
    from opskit.proc.process import Process


class GivenPids:
    """Processes by PID and start time."""

    def __init__(self, host: Host, pids: tuple[int, ...], command: str, *, shows_all: bool = True) -> None:
        """`shows_all`: the command without a PID does. Raises NoSuchProcess, also for a zombie; NotSupported for a thread."""
        self._host = host
        self._starts: dict[int, int | None] = {}
        for pid in pids:
            if not host.fs.exists(pid):
                raise NoSuchProcess(pid, _why_missing(host, pid, command, shows_all=shows_all))
            who = host.process(pid)
            if who.has_ended and who.start_ticks is not None:
                raise NoSuchProcess(pid, f"it is a zombie: it has ended, and its parent {who.ppid} has not reaped it")
            refuse_thread(host, who)
            self._starts[pid] = who.start_ticks

    def living(self) -> tuple[int, ...]:
        """Those that have not ended: a PID with another start time by now is another process. Raises NoSuchProcess when all have."""
        if not self._host.fs.is_live:
            return tuple(self._starts)
        now = {pid: self._host.process(pid) for pid in self._starts}
        alive = tuple(pid for pid, one in now.items() if one.start_ticks == self._starts[pid] and not one.has_ended)
        if self._starts and not alive:
            raise NoSuchProcess(next(iter(self._starts)), "it ended while it was watched")
        return alive


def refuse_thread(host: Host, who: Process) -> None:
    """Raise NotSupported where the id is that of a thread other than the main thread: /proc has its directory, unlisted."""
    status = host.fs.maybe(parse_status, who.pid, "status")
    whole = str(who.pid) if status is None else status.fields.get("Tgid", str(who.pid))
    if whole != str(who.pid):
        raise NotSupported(f"{who.pid} ({who.command}) is a thread of process {whole}: give {whole} instead")


def _why_missing(host: Host, pid: int, command: str, *, shows_all: bool) -> str:
    if hides_processes(host.fs):
        advice = how_to_be_allowed(host.fs, "CAP_SYS_PTRACE", "opskit", command, pid)
        return f"it may have ended, or is another user's and hidden (hidepid); {advice}"
    return f"it may have ended; {shell.command('opskit', command)} without a PID shows all" if shows_all else ""
