"""What is read of a network namespace beside its connections: counters, limits, ports, connection tracking.

/proc/PID/net belongs to the namespace of that process. /proc/sys/net belongs to the namespace of the thread that reads it, so the
limits are unknown where that is another one. net.ipv4.tcp_mem and tcp_max_orphans are the machine's, and only the initial namespace
shows them: they are read when a HostReader is made, before the thread enters another namespace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from opskit.collect.tcp.host_facts import HostFacts
from opskit.collect.tcp.ports import port_use
from opskit.proc.files.boot_time import parse_uptime
from opskit.proc.files.conntrack_stat import parse_conntrack_stat
from opskit.proc.files.local_ports import parse_port_range, parse_ports
from opskit.proc.files.snmp import parse_counters
from opskit.proc.files.sockstat import parse_sockstat
from opskit.proc.fs import optional
from opskit.proc.namespaces import namespace
from opskit.quantities import integers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opskit.host import Host
    from opskit.proc.fs import ProcFS
    from opskit.proc.inet_diag import End

T = TypeVar("T")

COUNTERS = frozenset(
    {
        *(f"Tcp.{name}" for name in ("ActiveOpens", "PassiveOpens", "AttemptFails", "EstabResets", "CurrEstab", "InSegs")),
        *(f"Tcp.{name}" for name in ("OutSegs", "RetransSegs", "InErrs", "OutRsts", "InCsumErrors")),
        *(f"TcpExt.{name}" for name in ("ListenOverflows", "ListenDrops", "TCPReqQFullDoCookies", "TCPReqQFullDrop")),
        *(f"TcpExt.Syncookies{name}" for name in ("Sent", "Recv", "Failed")),
        *(f"TcpExt.{name}" for name in ("TCPSynRetrans", "TCPOrigDataSent", "TCPTimeouts", "TCPLossProbes", "TCPOFOQueue")),
        *(f"TcpExt.{name}" for name in ("TCPSpuriousRTOs", "TCPDSACKRecv", "TCPDSACKRecvSegs", "TCPBacklogDrop")),
        *(f"TcpExt.{name}" for name in ("TCPTimeWaitOverflow", "TW", "TWRecycled", "TCPAbortOnMemory", "TCPAbortOnTimeout")),
        *(f"TcpExt.{name}" for name in ("TCPMemoryPressures", "TCPMemoryPressuresChrono", "PruneCalled", "RcvPruned")),
        *(f"TcpExt.{name}" for name in ("OfoPruned", "TCPRcvQDrop", "TCPOFODrop", "TCPZeroWindowDrop")),
    }
)  # fmt: skip
_CONNTRACK = frozenset({"Conntrack.drop", "Conntrack.early_drop", "Conntrack.insert_failed"})
_NAMED = (
    *(f"net.ipv4.{name}" for name in ("tcp_rmem", "tcp_wmem", "tcp_syncookies", "tcp_tw_reuse", "tcp_timestamps")),
    *(f"net.ipv4.{name}" for name in ("tcp_max_syn_backlog", "tcp_abort_on_overflow", "tcp_moderate_rcvbuf")),
    *("net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports"),
    *("net.core.somaxconn", "net.core.rmem_max", "net.core.wmem_max"),
)


class HostReader:
    """Reads one network namespace at the begin and the end of each window: that of a process, or without one that of this thread.

    `inside`: the tree as this thread sees it where it enters another one for count() and end().
    """

    def __init__(self, host: Host, pid: int | None = None, inside: ProcFS | None = None) -> None:
        self._host = host
        self._fs = host.fs
        # `self` is the first thread of opskit, which may be in another namespace than this one.
        ours = ("thread-self", "net") if host.fs.is_live else ("net",)
        self._pid, self._place = pid, ours if pid is None else (pid, "net")
        self._tcp_mem = self._sysctl(_three, "net.ipv4.tcp_mem")
        self._max_orphans = self._sysctl(_one, "net.ipv4.tcp_max_orphans")
        self._fs = inside or host.fs
        self._counted: tuple[dict[str, int], dict[str, int]] | None = None

    def count(self) -> None:
        """Read the counters: at the begin of a window, and at its end, where the next one begins."""
        last = self._counters()
        self._counted = self._counted[1] if self._counted else last, last

    def end(self, ends: Iterable[End]) -> HostFacts:
        """Read the rest after a window. `ends`: of all sockets of the namespace, in every state."""
        fs = self._fs
        first, last = self._counted or ({}, {})
        is_ours = self._reads_its_sysctls()
        texts = {name: text for name in _NAMED if is_ours and (text := self._sysctl(str.strip, name)) is not None}
        ports = optional(parse_port_range, texts.get("net.ipv4.ip_local_port_range", ""))
        reserved = optional(parse_ports, texts.get("net.ipv4.ip_local_reserved_ports", ""), default=frozenset())
        use = None if ports is None else port_use(ends, *ports, reserved)
        return HostFacts(
            first=first,
            last=last,
            sockstat=fs.maybe(parse_sockstat, *self._place, "sockstat", default={}),
            ports=None if ports is None or use is None else (*ports, use.taken),
            ports_used=use and use.used,
            destinations=use.destinations if use else (),
            tcp_mem_pages=self._tcp_mem,
            max_orphans=self._max_orphans,
            max_time_wait=self._sysctl(_one, "net.ipv4.tcp_max_tw_buckets") if is_ours else None,
            conntrack=self._conntrack() if is_ours else None,
            sysctls=texts,
            page_bytes=self._host.page_bytes,
            uptime_s=fs.maybe(parse_uptime, "uptime"),
        )

    def _counters(self) -> dict[str, int]:
        fs, found = self._fs, {}
        for name in ("snmp", "netstat"):
            found.update(fs.maybe(lambda text: parse_counters(text, COUNTERS), *self._place, name, default={}))
        tracked = fs.maybe(parse_conntrack_stat, *self._place, "stat", "nf_conntrack", default={})
        return {**found, **{name: tracked[name] for name in _CONNTRACK if name in tracked}}

    def _reads_its_sysctls(self) -> bool:
        """Whether /proc/sys is read in the namespace of the process."""
        fs, pid = self._host.fs, self._pid
        if pid is None:
            return True
        if not fs.is_live:  # a copy is made in the namespace of pid 1
            ours, its = namespace(fs, 1, "net"), namespace(fs, pid, "net")
            return None in (ours, its) or ours == its
        # Everybody may see that a file of /proc/PID/net has an inode of its own in each namespace.
        inodes = {optional(fs.file_id, *place, "snmp") for place in (("thread-self", "net"), self._place)}
        return None not in inodes and len({found.inode for found in inodes if found}) == 1

    def _conntrack(self) -> tuple[int, int] | None:
        entries, most = (self._sysctl(_one, f"net.netfilter.nf_conntrack_{name}") for name in ("count", "max"))
        return None if entries is None or most is None else (entries, most)

    def _sysctl(self, parse: Callable[[str], T], name: str) -> T | None:
        return self._fs.maybe(parse, "sys", *name.split("."))


def _one(text: str) -> int | None:
    numbers = integers(text.split())
    return numbers[0] if numbers is not None and len(numbers) == 1 else None


def _three(text: str) -> tuple[int, int, int] | None:
    numbers = integers(text.split())
    return (numbers[0], numbers[1], numbers[2]) if numbers is not None and len(numbers) == 3 else None
