"""Connections of real processes in network namespaces of their own, read over a short window."""

from __future__ import annotations

import os
import socket
import subprocess

import pytest
from tcpstage import SOME, START

from opskit.collect.tcp.collect import Collector
from opskit.collect.tcp.facts import Request
from opskit.errors import NoSuchProcess, NotPermitted, NotSupported
from opskit.host import Host
from opskit.proc.fs import ProcFS
from opskit.proc.kernel import network_namespace, sock_diag
from opskit.proc.socket_owners import SocketOwners
from opskit.proc.tcp_sockets import ESTABLISHED, LISTEN
from opskit.proc.treefs import TreeFS

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")
WINDOW_S = 0.4


@pytest.fixture
def staged(spawn):
    def start(code):
        process = spawn(START + code)
        if process.line != "ready":
            pytest.skip("no network namespace can be made here")
        return process.pid

    return start


def look(pid, window_s=WINDOW_S, **wanted):
    return Collector(Host(ProcFS()), Request((pid,), window_s, **wanted)).look()


def test_each_connection_of_a_process(staged):
    """Both ends of an idle, a busy and a deaf one: samples, deltas, owner; CLOSE-WAIT, and the queue of the listening socket."""
    pid = staged(SOME)
    facts = look(pid)
    assert WINDOW_S <= facts.window_s < WINDOW_S + 0.5
    assert facts.missing == ()
    assert facts.spaces[0].source == "sock_diag"
    assert facts.spaces[0].namespace == os.readlink(f"/proc/{pid}/ns/net")
    assert not facts.is_still
    assert facts.idle == ()
    assert {(each.owner.pid, each.owner.command[:6]) for each in facts.connections} == {(pid, "python")}
    fds = {os.readlink(f"/proc/{pid}/fd/{each.owner.fd}") for each in facts.connections}
    assert fds == {f"socket:[{each.last.inode}]" for each in facts.connections}
    # Both ends of three connections, one of CLOSE-WAIT, and the clients of three that wait for accept(2).
    assert sum(each.last.state == ESTABLISHED for each in facts.connections) == 9
    assert sum(each.inbound for each in facts.connections) == 3
    for each in facts.connections:
        assert len(each.samples) >= 4  # 20, if nothing else runs
        assert WINDOW_S / 4 < each.elapsed_s <= facts.window_s
        assert each.first.memory.send_limit > 0
        assert each.samples[-1].recv_queue == each.last.recv_queue
    grown = [each for each in facts.connections if each.last.info.bytes_received > each.first.info.bytes_received]
    ends = {each.inbound: each for each in grown}
    sent, received = (
        getattr(ends[False].last.info, name) - getattr(ends[False].first.info, name)
        for name in ("bytes_sent", "bytes_received")
    )
    assert received == pytest.approx(3 * sent, rel=0.1)
    (deaf,) = (each for each in facts.connections if each.last.recv_queue > 65536)
    assert deaf.inbound
    assert min(sample.recv_queue for sample in deaf.samples) > 65536
    assert [each.last.peer_port for each in facts.connections if each.last.send_queue > 65536] == [7001]


def test_closing_and_listening_sockets(staged):
    """CLOSE-WAIT with its age and fd; how many wait for accept(2); the states of the whole namespace, and the host."""
    pid = staged(SOME)
    facts = look(pid)
    (closing,) = facts.closing
    assert (closing.port, closing.inbound, closing.first, closing.last, closing.lasting) == (7001, False, 1, 1, 1)
    assert closing.owner.pid == pid
    assert WINDOW_S * 1000 < closing.oldest_ms < 20_000
    assert len(closing.fds) == 1
    (listener,) = facts.listeners
    assert (listener.last.recv_queue, listener.last.send_queue, listener.most_waiting) == (3, 5, 3)
    assert listener.owner.pid == pid
    assert facts.spaces[0].states[ESTABLISHED] == 12
    assert facts.spaces[0].states[LISTEN] == 1
    assert facts.spaces[0].host.ports is not None


def test_what_is_asked_for(staged):
    """A peer's address and port, a network, and a user."""
    pid = staged(SOME)
    all_of_them = len(look(pid, 0.05).connections)
    for peer, number in (
        ((b"\x7f\0\0\1", 32, 7001), 7),
        ((b"\x7f\0\0\0", 8, None), all_of_them),
        ((b"\x0a\0\0\0", 8, None), 0),
        ((bytes(4), 0, None), all_of_them),
        ((bytes(16), 0, None), 0),
    ):
        assert len(look(pid, 0.05, peer=peer).connections) == number, peer
    assert len(look(pid, 0.05, uids=frozenset({0})).connections) == all_of_them
    assert look(pid, 0.05, uids=frozenset({4242})).connections == ()


MANY = """
server = listen(7001)
kept = [pair(server) for _ in range(400)]
busy = [pair(server) for _ in range(70)]
def work():
    while True:
        for number, (client, accepted) in enumerate(busy):
            for _ in range(1 + number // 10):
                client.send(b"x" * 100); accepted.recv(100)
        time.sleep(0.01)
kept[0][0].send(b"not read")
time.sleep(1.5)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
wait()
"""


def test_many_connections(staged):
    """The 50 that do the most are sampled, others that did something are read at both ends, idle ones are counted."""
    facts = look(staged(MANY))
    sampled = [each for each in facts.connections if each.samples]
    assert len(sampled) == 50
    moved = [each for each in facts.connections if each.last.info.segs_in > each.first.info.segs_in]
    assert len(moved) == 140
    assert len(facts.connections) == 141  # and the end that does not read
    assert any(each.last.recv_queue == 8 and each.samples for each in facts.connections)
    assert all(0 < each.elapsed_s < facts.window_s + 0.1 for each in facts.connections)  # each chunk has its time
    assert {(each.port, each.inbound, each.state, each.connections) for each in facts.idle} == {
        (7001, False, ESTABLISHED, 400),
        (7001, True, ESTABLISHED, 399),
    }
    assert {each.owner.pid for each in facts.idle} == {facts.ask.pids[0]}
    assert facts.spaces[0].states[ESTABLISHED] == 940


CHANGING = """
server = listen(7001, address="::1")
old = [pair(server) for _ in range(3)]
def work(*_):
    time.sleep(0.5)
    old[0][0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\\1\\0\\0\\0\\0\\0\\0\\0")
    old[0][0].close(); old[0][1].close()
    old.append(pair(server))
signal.signal(signal.SIGUSR1, lambda *_: threading.Thread(target=work, daemon=True).start())
print("ready")
while True: signal.pause()
"""


def test_connections_that_begin_and_end_within_the_window(staged):
    """A new one has one look; one that was closed keeps what was seen of it."""
    pid = staged(CHANGING)
    collector = Collector(Host(ProcFS()), Request((pid,), 1.0))
    os.kill(pid, 10)
    facts = collector.look()
    assert len(facts.connections) == 8
    new = [each for each in facts.connections if each.first is each.last]
    assert [each.elapsed_s for each in new] == [0.0, 0.0]
    most = max(len(each.samples) for each in facts.connections)
    brief = [each for each in facts.connections if 0 < len(each.samples) < most]
    assert len(brief) == 2
    assert all(0 < each.elapsed_s < facts.window_s for each in brief)
    assert {each.last.local for each in facts.connections} == {bytes(15) + b"\1"}


def _watch(collector):
    for _ in range(20):
        collector.look()


def test_a_watch_has_no_gaps(staged):
    """Each window begins where the last one ended, that of the host's counters too; the watch ends with the process."""
    pid = staged(SOME)
    host = Host(ProcFS())
    collector = Collector(host, Request((pid,), WINDOW_S), watch=True)
    first = collector.look()
    host.sleep(0.5)
    second = collector.look()
    assert 0.5 + 0.3 * WINDOW_S < second.window_s < 0.5 + 2 * WINDOW_S  # to where the next look is due
    assert second.spaces[0].host.first == first.spaces[0].host.last
    assert second.at_s > first.at_s + 0.5
    os.kill(pid, 9)
    with pytest.raises(NoSuchProcess, match="ended"):
        _watch(collector)


def test_without_the_right_to_enter_the_namespace(staged, monkeypatch):
    """/proc/PID/net tells states and queues, and what is missing is said."""
    pid = staged(SOME)

    def refuse(_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(network_namespace, "set_network_namespace", refuse)
    facts = look(pid)
    assert facts.spaces[0].source == "proc"
    assert len(facts.connections) == 10
    assert {each.last.info for each in facts.connections} == {None}
    assert all(each.first is not each.last and each.elapsed_s >= WINDOW_S for each in facts.connections)
    assert sum(each.last.recv_queue > 65536 for each in facts.connections) == 1
    assert [(each.last, each.oldest_ms) for each in facts.closing] == [(1, None)]
    assert facts.listeners[0].last.recv_queue == 3
    assert len(facts.missing) == 1
    assert f"the network namespace of {pid} cannot be entered" in facts.missing[0]
    assert "unknown" in facts.missing[0]


def test_sockets_that_listen_on_the_same_port(staged, monkeypatch):
    """SO_REUSEPORT: /proc has no cookies that tell them apart."""
    pid = staged("""
def shared():
    server = socket.socket(); server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    server.bind(("127.0.0.1", 7001)); server.listen(5)
    return server
servers = [shared() for _ in range(3)]
wait()
""")
    for _ in range(2):
        facts = look(pid, 0.1)
        assert len({each.last.inode for each in facts.listeners}) == 3
        monkeypatch.setattr(sock_diag, "_SOCK_DIAG", 31)
    assert facts.spaces[0].source == "proc"


def test_the_namespace_of_a_host_from_a_container(staged):
    """Its first process stands for it (HOST_PROC); what is read is not elsewhere."""
    pid = staged("server = listen(7001)\nkept = pair(server)\nwait()\n")

    class Mounted(ProcFS):
        def is_own(self):
            return False

        def path(self, *parts):
            return super().path(*(pid if part == 1 else part for part in parts))

    facts = Collector(Host(Mounted()), Request((), 0.1)).look()
    name = os.readlink(f"/proc/{pid}/ns/net")
    assert [each.namespace for each in facts.spaces] == [name]
    assert len(facts.connections) == 2
    assert not {1, pid}.intersection(one for one, _ in facts.elsewhere)


def test_without_sock_diag(staged, monkeypatch):
    """A kernel or a sandbox without it."""
    pid = staged(SOME)
    monkeypatch.setattr(sock_diag, "_SOCK_DIAG", 31)
    facts = look(pid)
    assert facts.spaces[0].source == "proc"
    assert len(facts.connections) == 10
    assert "sock_diag is not available (Protocol not supported)" in facts.missing[0]


def test_sock_diag_that_fails_within_the_window(staged, monkeypatch):
    """The rest is read of /proc, and it is said that less is known."""
    pid = staged(SOME)
    looks = []

    def fail(self, keys):
        looks.append(len(keys))
        if len(looks) > 3:
            raise OSError(105, "No buffer space available")
        yield from real(self, keys)

    real = sock_diag.SockDiag.look
    monkeypatch.setattr(sock_diag.SockDiag, "look", fail)
    facts = look(pid)
    assert len(facts.connections) == 10
    assert facts.spaces[0].source == "proc"
    assert facts.missing == (
        "sock_diag is not available (No buffer space available); losses, round-trip times, byte counts and backlogs are unknown: "
        "/proc has only states and queues",
    )


def test_another_users_process(staged, monkeypatch):
    """Without ptrace rights its sockets are unknown, and what would be allowed is said."""

    class Denied(ProcFS):
        def fd_pairs(self, *parts):
            raise PermissionError(13, "Permission denied")

    pid = staged("wait()")
    collector = Collector(Host(Denied()), Request((pid,), WINDOW_S))
    with pytest.raises(NotPermitted, match=f"cannot read the file descriptors of {pid} .python.*permission denied; "):
        collector.look()


def test_a_copy(tmp_path):
    """One look: queues and states, owners by the links of the copy, no rates."""
    head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    line = "   {}: {} {} {} 00000000:{:08X} 00:00000000 00000000  1000        0 {} 1 0\n"
    tcp = head + line.format(0, "0100007F:1F90", "00000000:0000", "0A", 2, 11)
    tcp += line.format(1, "0100007F:1F90", "0200007F:C350", "01", 70000, 12)
    tcp += line.format(2, "0100007F:C351", "0300007F:1538", "08", 0, 13)
    process = tmp_path / "4242"
    (process / "fd").mkdir(parents=True)
    (process / "net").mkdir()
    (process / "net" / "tcp").write_text(tcp)
    (process / "comm").write_text("orders\n")
    (process / "status").write_text("Name:\torders\nUid:\t1000\t1000\t1000\t1000\nGid:\t0\t0\t0\t0\n")
    for fd, inode in ((3, 11), (4, 12), (5, 13)):
        (process / "fd" / str(fd)).symlink_to(f"socket:[{inode}]")
    for pids in ((4242,), ()):
        if not pids:
            (tmp_path / "net").mkdir()
            (tmp_path / "net" / "tcp").write_text(tcp)
        facts = Collector(Host(TreeFS(str(tmp_path))), Request(pids)).look()
        assert facts.is_still
        assert facts.spaces[0].source == "proc"
        assert facts.spaces[0].namespace is None
        assert [(each.owner.pid, each.owner.command, each.owner.fd) for each in facts.connections] == [
            (4242, "orders", 4), (4242, "orders", 5),
        ]  # fmt: skip
        assert facts.connections[0].inbound
        assert facts.connections[0].first is facts.connections[0].last
        assert facts.connections[0].last.recv_queue == 70000
        assert (facts.closing[0].port, facts.closing[0].fds) == (5432, (5,))
        assert facts.listeners[0].last.recv_queue == 2
    (process / "net" / "tcp").unlink()
    with pytest.raises(NotSupported, match="net/tcp cannot be read: copy it too"):
        Collector(Host(TreeFS(str(tmp_path))), Request((4242,))).look()
    (process / "fd").rename(tmp_path / "gone")
    with pytest.raises(NotSupported, match="the sockets of 4242 are unknown"):
        Collector(Host(TreeFS(str(tmp_path))), Request((4242,))).look()


def test_processes_of_several_namespaces(staged):
    """Each namespace is read once; a record tells which one it belongs to."""
    ours = "server = listen(7001)\nkept = pair(server)\nwait()\n"
    pids = tuple(staged(ours) for _ in range(2))
    with subprocess.Popen(["sleep", "60"]) as here:  # without a connection; what runs this test may have some
        try:
            facts = Collector(Host(ProcFS()), Request((*pids, here.pid), WINDOW_S)).look()
        finally:
            here.kill()
    assert [each.namespace for each in facts.spaces] == [os.readlink(f"/proc/{pid}/ns/net") for pid in (*pids, "self")]
    assert [each.source for each in facts.spaces] == ["sock_diag"] * 3
    assert sorted((each.owner.pid, each.space) for each in facts.connections) == sorted(
        (pid, number) for number, pid in enumerate(pids) for _ in range(2)
    )
    assert sorted(each.owner.pid for each in facts.listeners) == sorted(pids)
    assert facts.missing == ()


def test_one_of_several_processes_ends_as_its_namespace_is_opened(staged, monkeypatch):
    """The others are read, in each namespace another process of it; when all have ended, that is said."""
    ours = "server = listen(7001)\nkept = pair(server)\nwait()\n"
    first, second = (staged(ours) for _ in range(2))
    real = SocketOwners.__init__

    def end_meanwhile(self, fs, pids):
        real(self, fs, pids)
        os.kill(first, 9)
        os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)

    monkeypatch.setattr(SocketOwners, "__init__", end_meanwhile)
    facts = Collector(Host(ProcFS()), Request((first, second), 0.1)).look()
    assert [each.namespace for each in facts.spaces] == [os.readlink(f"/proc/{second}/ns/net")]
    assert [(each.owner.pid, each.space) for each in facts.connections] == [(second, 0)] * 2
    first = staged(ours)
    with pytest.raises(NoSuchProcess, match="ended"):
        Collector(Host(ProcFS()), Request((first,), 0.1)).look()


def test_one_of_several_processes_ends_within_the_window(staged, monkeypatch):
    """Where /proc alone can be read, nothing holds its namespace: the others are told of, and a watch goes on."""

    def refuse(_):
        raise PermissionError(1, "Operation not permitted")

    ours = "server = listen(7001)\nkept = pair(server)\nwait()\n"
    first, second = (staged(ours) for _ in range(2))
    monkeypatch.setattr(network_namespace, "set_network_namespace", refuse)
    collector = Collector(Host(ProcFS()), Request((first, second), 0.1), watch=True)
    real = collector._sample

    def end_meanwhile(windows, end_s):
        os.kill(first, 9)
        os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
        real(windows, end_s)

    monkeypatch.setattr(collector, "_sample", end_meanwhile)
    for _ in range(2):
        facts = collector.look()
        assert len(facts.spaces) == 1
        assert {each.owner.pid for each in facts.connections} == {second}


def test_everything_of_our_own_namespace(staged):
    """Without a PID: every process of this namespace, and that there are others."""
    pid = staged(
        "kept = socket.socket()\nif not os.fork():\n    ctypes.CDLL(None).prctl(1, 9); kept.close(); signal.pause()\nwait()"
    )
    without = staged("control.close()\nwait()")
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())
        facts = Collector(Host(ProcFS()), Request((), 0.1)).look()
        assert any(each.last.inode == os.fstat(server.fileno()).st_ino for each in facts.listeners)
        if not facts.idle:  # else those that do nothing are only counted
            (found,) = (each for each in facts.connections if each.last.inode == os.fstat(client.fileno()).st_ino)
            assert (found.owner.pid, found.owner.fd, found.inbound) == (os.getpid(), client.fileno(), False)
    assert len(facts.spaces) == 1
    assert facts.spaces[0].namespace == os.readlink("/proc/self/ns/net")
    others = {
        os.readlink(f"/proc/{one}/ns/net"): (one, number)
        for one, number in facts.elsewhere
        if os.path.exists(f"/proc/{one}")
    }
    # The process with the most sockets stands for its namespace. One without any is not worth a look, nor is a kernel thread.
    assert others[os.readlink(f"/proc/{pid}/ns/net")] == (pid, 2)
    assert os.readlink(f"/proc/{without}/ns/net") not in others
    assert facts.spaces[0].namespace not in others
