"""The sockets of one network namespace: by sock_diag, or where the kernel refuses that by /proc/PID/net."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from opskit.collect.tcp.host import HostReader
from opskit.errors import NoSuchProcess, NotSupported
from opskit.proc.fs import DENIED, optional
from opskit.proc.inet_diag import INFO, SKMEMINFO, Reader
from opskit.proc.namespaces import namespace
from opskit.proc.network import our_network
from opskit.proc.tcp_dumps import ListedDump, MessageDump
from opskit.proc.tcp_sockets import LISTEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    from opskit.collect.tcp.host_facts import HostFacts
    from opskit.host import Host
    from opskit.proc.fs import ProcFS
    from opskit.proc.inet_diag import End
    from opskit.proc.network import Network
    from opskit.proc.tcp_dumps import Dump
    from opskit.proc.tcp_sockets import Socket


SOCK_DIAG, PROC = "sock_diag", "proc"
_ALL_STATES = 0xFFF
_UNKNOWN = "losses, round-trip times, byte counts and backlogs are unknown: /proc has only states and queues"
_FILES = ("tcp", "tcp6")


def our_namespace(fs: ProcFS) -> bytes | None:
    """The network namespace of this thread."""
    return optional(fs.calls.ask, our_network)


class NetworkSpace:
    """Reads one network namespace: that of a process, or without one that of this thread.

    `name`: `net:[4026531840]`; None: unknown. `source`: sock_diag, or proc with less detail. `missing`: what that leaves unknown.
    """

    def __init__(self, host: Host, pid: int | None) -> None:
        """Open it."""
        self._host, self._pid = host, pid
        ours = our_namespace(host.fs) if host.fs.is_live else None
        name = ours if pid is None else namespace(host.fs, pid, "net")
        self.name = None if name is None else name.decode("ascii", "replace")
        self.source = PROC
        self.missing: tuple[str, ...] = ()
        self._reader = Reader()
        self._network: Network | None = None
        if host.fs.is_live:
            self._open(is_ours=pid is None or (name is not None and name == ours))
        network = self._network if host.is_own and self.source == SOCK_DIAG else None
        self._reads_host = HostReader(host, pid) if network is None else HostReader(host, None, network.fs(host.fs))

    def _open(self, *, is_ours: bool) -> None:
        """Make the netlink socket there; without the right to, stay here."""
        try:
            self._network = self._host.fs.calls.network(None if is_ours else self._host.fs.path(self._pid, "ns", "net"))
        except OSError as error:
            why = self._advice() if isinstance(error, DENIED) else error.strerror or str(error)
            self.missing = (f"the network namespace of {self._pid} cannot be entered ({why}); {_UNKNOWN}",)
            return
        try:
            self._network.connect()
            self.source = SOCK_DIAG
        except OSError as error:
            self._lose(error)
            return
        self.listening()  # the cheapest dump: whether the kernel has inet_diag

    def _advice(self) -> str:
        from opskit.proc.rights import how_to_be_allowed

        return how_to_be_allowed(self._host.fs, "CAP_SYS_ADMIN", "opskit", "tcp", self._pid, pid=self._pid)

    def _inside(self) -> AbstractContextManager[None]:
        return nullcontext() if self._network is None else self._network.inside()

    def close(self) -> None:
        """Let the namespace and the netlink socket go."""
        if self._network is not None:
            self._network.close()

    def dump(self) -> Dump:
        """All sockets, and with them the host's counters.

        Raises NotSupported where neither source can be read, NoSuchProcess where the process has ended.
        """
        dump = self._messages(_ALL_STATES, INFO) or ListedDump(self._listed(), self._host.monotonic)
        with self._inside():
            self._reads_host.count()
        return dump

    def listening(self) -> Dump | None:
        """The listening sockets alone, with what they dropped; None: that costs as much as a dump."""
        return self._messages(1 << LISTEN, SKMEMINFO)

    def _messages(self, states: int, attribute: int) -> Dump | None:
        """A dump by sock_diag, where that can be read."""
        if self._network is not None and self.source == SOCK_DIAG:
            try:
                return MessageDump(self._network.dump(states, 1 << attribute - 1), self._reader, self._host.monotonic)
            except OSError as error:
                self._lose(error)
        return None

    def looks(self, keys: list[bytes]) -> Iterator[bytes | None]:
        """A message about each of some sockets; None: it is gone. Without sock_diag none at all."""
        if self._network is not None and self.source == SOCK_DIAG:
            try:
                yield from self._network.look(keys)
            except OSError as error:
                self._lose(error)

    def _lose(self, error: OSError) -> None:
        """Go on without sock_diag."""
        self.source = PROC
        self.missing = (*self.missing, f"sock_diag is not available ({error.strerror or error}); {_UNKNOWN}")

    def _listed(self) -> list[Socket]:
        from opskit.proc.files.net_tcp import parse_net_tcp

        fs = self._host.fs
        places = ["thread-self/net", "self/net", "1/net", "net"] if self._pid is None else [f"{self._pid}/net"]
        for place in places:
            tables = [fs.maybe(parse_net_tcp, place, name) for name in _FILES]
            if any(table is not None for table in tables):
                return [socket for table in tables for socket in table or ()]
        if self._pid is not None and fs.is_live:  # one that is ending has no network namespace any more
            raise NoSuchProcess(self._pid, "it ended while its sockets were read")
        remedy = "this kernel has no IPv4" if fs.is_live else "copy it too"
        raise NotSupported(f"{fs.path(self._pid or 'self', 'net', 'tcp')} cannot be read: {remedy}")

    def end(self, ends: Iterable[End]) -> HostFacts:
        """The host, with its counters between the last two dumps. `ends`: of all its sockets."""
        with self._inside():
            return self._reads_host.end(ends)


def other_namespaces(host: Host) -> int:
    """How many network namespaces beside ours the visible processes are in."""
    ours = our_namespace(host.fs)
    found = {namespace(host.fs, pid, "net") for pid in host.fs.pids()}
    return len(found - {ours, None}) if host.is_own else 0
