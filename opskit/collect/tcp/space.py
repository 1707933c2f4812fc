"""The sockets of one network namespace: by sock_diag, or where the kernel refuses that by /proc/PID/net."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.tcp.host import HostReader
from opskit.proc.files.net_tcp import parse_net_tcp
from opskit.proc.fs import ProcFS, optional
from opskit.proc.inet_diag import Reader
from opskit.proc.namespaces import namespace
from opskit.proc.rights import how_to_be_allowed
from opskit.proc.tcp_dumps import Dump, listed_dump, read_dump
from opskit.proc.tcp_sockets import LISTEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opskit.collect.tcp.host_facts import HostFacts
    from opskit.host import Host
    from opskit.proc.kernel.sock_diag import SockDiag
    from opskit.proc.tcp_sockets import Socket

SOCK_DIAG, PROC = "sock_diag", "proc"
_LESS = "round-trip times, losses, byte counts and who was last to send are unknown: /proc/net/tcp has only states and queues"


def our_namespace() -> bytes | None:
    """The network namespace of this thread."""
    return optional(ProcFS().link, "thread-self", "ns", "net")


class NetworkSpace:
    """Reads one network namespace: that of a process, or without one that of this thread.

    `name`: `net:[4026531840]`; None: unknown. `source`: sock_diag or proc. `missing`: what the source does not tell, and what would.
    """

    def __init__(self, host: Host, pid: int | None) -> None:
        self._host, self._pid = host, pid
        name = our_namespace() if pid is None else namespace(host.fs, pid, "net")
        self.name = None if name is None else name.decode("ascii", "replace")
        is_ours = pid is None or (name is not None and name == our_namespace())
        self._path = None if is_ours else host.fs.path(pid, "ns", "net")
        self.source = PROC
        self.missing: tuple[str, ...] = ()
        self._reader = Reader()
        self._diag: SockDiag | None = None
        self._reads_host = HostReader(host, None if is_ours and host.is_own else pid)

    def begin(self) -> Dump[bytes] | Dump[list[Socket]]:
        """The first dump of a window, and the first reading of the host. Raises OSError where neither source can be read."""
        if self._host.fs.is_live:
            self._open()
        dump = self.dump()
        self._inside(self._reads_host.begin)
        return dump

    def end(self, sockets: Iterable[Socket]) -> HostFacts:
        """The host at the end of a window."""
        return self._inside(lambda: self._reads_host.end(sockets))
