"""What is read of a network namespace beside its connections: on this kernel, in its namespaces, and of a copy."""

from __future__ import annotations

import os
import subprocess
import sys

from lesser import call
from netstage import stage
from tcphostfacts import tcp_socket

from opskit.collect.tcp.host import COUNTERS, HostReader
from opskit.host import Host
from opskit.proc.fs import ProcFS
from opskit.proc.inet_diag import as_end
from opskit.proc.treefs import TreeFS

_READ = """
import sys
from opskit.collect.tcp.host import HostReader
from opskit.host import Host
from opskit.proc.fs import ProcFS
reader = HostReader(Host(ProcFS()), int(sys.argv[1]))
reader.count()
found = reader.end([])
print(found.ports, found.max_time_wait, found.conntrack is not None, found.tcp_mem_pages, found.last["Tcp.CurrEstab"])
"""


def read(pid=None):
    """One window."""
    reader = HostReader(Host(ProcFS()), pid)
    reader.count()
    return reader.end(())


def test_this_namespace():
    """Counters, limits and sysctls of this kernel, by a thread of it and by a PID in it."""
    for pid in (None, os.getpid()):
        found = read(pid)
        assert found.last.keys() == found.first.keys() >= COUNTERS - {"TcpExt.TCPDSACKRecvSegs"}
        assert all(found.last[name] >= number for name, number in found.first.items())
        assert found.sockstat["TCP.alloc"] >= 0
        low, high, _ = found.ports
        assert f"{low}\t{high}" == found.sysctls["net.ipv4.ip_local_port_range"]
        assert found.sysctls["net.core.somaxconn"].isdigit()
        assert found.uptime_s > 0
        assert found.max_time_wait > 0
        assert found.page_bytes == os.sysconf("SC_PAGE_SIZE")


def test_a_user_without_rights():
    """Reads the same of any process."""
    with stage("ports", used=3) as staged:
        found = call(lambda: read(staged.pid), uid=65534)
        assert found.last["Tcp.CurrEstab"] == 7  # both ends, and one that is closed by its client
        assert call(lambda: read(1), uid=65534).ports == read(1).ports


def test_another_namespace():
    """From outside its counters alone are known, inside its limits too; none of ours stand for them."""
    with stage("ports", used=3) as staged:
        found = read(staged.pid)
        assert found.last["Tcp.ActiveOpens"] == 4
        assert (found.ports, found.ports_used, found.max_time_wait, found.conntrack, found.sysctls) == (
            None,
            None,
            None,
            None,
            {},
        )
        words = ["nsenter", f"--net=/proc/{staged.pid}/ns/net", sys.executable, "-c", _READ, str(staged.pid)]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        # Only the initial namespace shows tcp_mem.
        assert said.startswith("(50000, 50099, 0) ")
        assert said.endswith(" None 7\n")


def test_windows_follow_each_other():
    """The counters at the end of a window are those at the begin of the next one."""
    with stage("time_wait") as staged:
        reader = HostReader(Host(ProcFS()), staged.pid)
        reader.count()
        windows = []
        for _ in range(3):
            reader.count()
            windows.append(reader.end(()))
        assert windows[0].last is windows[1].first
        assert windows[1].last is windows[2].first


def test_a_copy(tmp_path):
    """Files of a copied tree; a process in another namespace than pid 1 has none of its sysctls."""
    for name, text in {
        "net/snmp": "Tcp: OutSegs RetransSegs\nTcp: 9 1\n",
        "7/net/snmp": "Tcp: OutSegs\nTcp: 5\n",
        "net/sockstat": "TCP: inuse 3 orphan 1 tw 2 alloc 5 mem 6\n",
        "sys/net/ipv4/ip_local_port_range": "40000 40009\n",
        "sys/net/ipv4/ip_local_reserved_ports": "40001-40002,50000\n",
        "sys/net/ipv4/tcp_mem": "1 2 3\n",
        "sys/net/ipv4/tcp_max_orphans": "x\n",
        "sys/net/netfilter/nf_conntrack_count": "7\n",
        "sys/net/netfilter/nf_conntrack_max": "9\n",
        "uptime": "5.5 4.4\n",
        "loadavg": "0 0 0 1/1 1\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    host = Host(TreeFS(str(tmp_path)))
    reader = HostReader(host)
    reader.count()
    found = reader.end([as_end(tcp_socket(local_port=40005))])
    assert found.first == found.last == {"Tcp.OutSegs": 9, "Tcp.RetransSegs": 1}
    assert (found.ports, found.ports_used, found.tcp_mem_pages, found.max_orphans) == (
        (40000, 40009, 2),
        1,
        (1, 2, 3),
        None,
    )
    assert (found.conntrack, found.uptime_s, found.sockstat["TCP.orphan"]) == ((7, 9), 5.5, 1)
    assert HostReader(host, 7).end([]).ports == (40000, 40009, 2)
    for pid, target in ((1, "net:[1]"), (7, "net:[2]")):
        (tmp_path / str(pid) / "ns").mkdir(parents=True, exist_ok=True)
        (tmp_path / str(pid) / "ns" / "net").symlink_to(target)
    reader = HostReader(host, 7)
    reader.count()
    its = reader.end([])
    assert (its.ports, its.conntrack, its.last) == (None, None, {"Tcp.OutSegs": 5})
    assert HostReader(host, 1).end([]).ports == (40000, 40009, 2)


def test_an_empty_tree(tmp_path):
    """Nothing is known, and nothing fails."""
    (tmp_path / "1").mkdir()
    found = HostReader(Host(TreeFS(str(tmp_path))), 1).end([])
    assert (found.first, found.last, found.sockstat, found.ports, found.conntrack, found.uptime_s) == (
        {},
        {},
        {},
        None,
        None,
        None,
    )
