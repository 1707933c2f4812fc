"""Findings about the host's part in TCP, by hand-made facts: each rule, and each healthy state that is near it."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tcphostfacts import (
    CLIENT,
    SERVER,
    address,
    closing,
    host_facts,
    listener,
    tcp_facts,
    tcp_info,
    tcp_socket,
    watched,
)

from opskit.analysis.tcp.closing import Look, closing_look
from opskit.analysis.tcp.host import host_findings
from opskit.analysis.tcp.limits import usable_ports
from opskit.collect.fd_threads import FdThread
from opskit.collect.tcp.facts import Idle, Owner, Request
from opskit.collect.tcp.host import COUNTERS
from opskit.collect.tcp.host_facts import Destination
from opskit.proc.tcp_sockets import SYN_SENT, TIME_WAIT, SocketMemory


def codes(facts, looks=()):
    """(severity, code) of each finding."""
    return [(each.severity, each.code) for each in host_findings(facts, looks)]


def one(facts, looks=()):
    """The only finding."""
    (found,) = host_findings(facts, looks)
    return found


def test_a_busy_healthy_server():
    """TIME_WAIT by ten thousand, some CLOSE_WAIT, a queue in use, tail loss probes, most ports used for many peers: nothing."""
    host = host_facts(
        {
            "Tcp.RetransSegs": 40_000, "TcpExt.TCPDSACKRecv": 39_990, "TcpExt.TCPDSACKRecvSegs": 39_990, "TcpExt.TCPOrigDataSent": 900_000,
            "TcpExt.TCPSynRetrans": 5, "Tcp.InSegs": 900_000, "TcpExt.TCPOFOQueue": 200, "TcpExt.PruneCalled": 3,
        },
        destinations=(Destination(address("10.0.0.1"), address("10.0.0.7"), 5432, 24_000, {1: 24_000}),),
        ports_used=27_000,
    )  # fmt: skip
    facts = tcp_facts(
        host,
        listeners=[listener((3, 60), most=128), listener((0, 1), backlog=1)],
        closing=[closing(25, lasting=2, first=30), closing(9, inbound=False), closing(4, oldest_ms=10**8, owner=None)],
        connections=[watched(tcp_socket(SYN_SENT)) for _ in range(50)],
    )
    assert host_findings(facts) == []


def test_unknown_values():
    """Nothing can be read: nothing is found."""
    host = host_facts(
        sockstat={}, ports=None, ports_used=None, tcp_mem_pages=None, max_orphans=None, max_time_wait=None, conntrack=None,
        sysctls={}, uptime_s=None,
    )  # fmt: skip
    bare = tcp_socket(10, send_queue=0, recv_queue=5, cookie=None)
    facts = tcp_facts(
        host,
        listeners=[listener()._replace(first=bare, last=bare, most_waiting=5)],
        closing=[closing(5, oldest_ms=None, owner=None)],
    )
    assert host_findings(facts) == []
    assert host_findings(facts._replace(spaces=())) == []


NUMBERS = st.integers(0, 2**64)
SOME = st.one_of(st.none(), NUMBERS)
NAMES = st.sampled_from(sorted(COUNTERS | {"Conntrack.drop", "Conntrack.early_drop"}))
KEYS = st.sampled_from(
    ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.core.somaxconn", "net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_syncookies"]
)
HOSTS = st.builds(
    host_facts,
    first=st.dictionaries(NAMES, NUMBERS),
    last=st.dictionaries(NAMES, NUMBERS),
    sockstat=st.dictionaries(st.sampled_from(["TCP.mem", "TCP.orphan", "TCP.tw"]), NUMBERS),
    ports=st.one_of(st.none(), st.tuples(st.integers(0, 100), st.integers(100, 200), st.integers(0, 300))),
    ports_used=SOME,
    destinations=st.lists(
        st.builds(Destination, st.binary(min_size=4, max_size=4), st.binary(min_size=16, max_size=16), st.integers(0, 65535), NUMBERS,
                  st.dictionaries(st.integers(0, 12), NUMBERS), NUMBERS),
        max_size=5,
    ).map(tuple),
    tcp_mem_pages=st.one_of(st.none(), st.tuples(NUMBERS, NUMBERS, NUMBERS)),
    max_orphans=SOME,
    max_time_wait=SOME,
    conntrack=st.one_of(st.none(), st.tuples(NUMBERS, NUMBERS)),
    sysctls=st.dictionaries(KEYS, st.sampled_from(["", "1", "2", "4096 1 5", "x y z", "0 0 0", "128"])),
)  # fmt: skip
LISTENERS = st.builds(
    listener, st.tuples(NUMBERS, NUMBERS), NUMBERS, NUMBERS, st.tuples(SOME, SOME), st.sampled_from([SERVER, None])
)
CLOSING = st.builds(
    closing, st.integers(0, 99), NUMBERS, SOME, st.booleans(), NUMBERS, owner=st.sampled_from([SERVER, None])
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    HOSTS,
    st.lists(LISTENERS, max_size=3),
    st.lists(CLOSING, max_size=3),
    st.sampled_from([0.0, 0.5, 1e9]),
    st.booleans(),
)
def test_any_numbers(host, listeners, some, window_s, is_still):
    """Whatever a kernel or a copy says: shares are between 0 and 1, and each code is in the catalog with its class."""
    found = host_findings(tcp_facts(host, (), listeners, some, window_s=window_s, is_still=is_still))
    assert all(each.share is None or 0 <= each.share <= 1 for each in found)
    assert all(each.severity == "note" or each.class_ != "tidy" for each in found)


class TestListenQueues:
    """More connections wait for accept(2) than the backlog."""

    def test_a_server_that_does_not_accept(self):
        """Full at both ends with drops: an error with the owner, the numbers and the next command; cookies and overflows add none."""
        host = host_facts({"TcpExt.ListenOverflows": 21, "TcpExt.ListenDrops": 22, "TcpExt.SyncookiesSent": 5})
        facts = tcp_facts(host, listeners=[listener((5, 5), backlog=4, drops=(100, 121))])
        found = host_findings(facts)
        assert [(each.severity, each.code) for each in found] == [
            ("error", "tcp-listen-queue-full"),
            ("note", "tcp-syn-queue-full"),
        ]
        assert found[0].summary == (
            "the listen queue of 0.0.0.0:8080 is full: 5 connections wait for accept(), its backlog is 4; 21 times in 2.0 s a new "
            "connection was dropped; java (4242) does not accept them in time"
        )
        assert found[0].entity.name == "0.0.0.0:8080"
        assert (found[0].entity.inside.kind, found[0].entity.inside.id, found[0].entity.inside.start_ticks) == (
            "process",
            4242,
            77,
        )
        assert (found[0].next, found[0].fix, found[0].share) == ("opskit jpmp 4242", None, 1.0)
        assert "TcpExt.ListenOverflows +21" in found[0].evidence

    def test_a_full_queue_that_nobody_joins(self):
        """A warning: the connections that wait get no answer."""
        assert codes(tcp_facts(listeners=[listener((129, 129))])) == [("warning", "tcp-listen-queue-full")]

    def test_a_burst(self):
        """Drops of this socket in the window, full at neither end; a somaxconn that cuts the backlog is the fix."""
        host = host_facts(
            {"TcpExt.ListenOverflows": 40, "TcpExt.ListenDrops": 40}, sysctls={"net.core.somaxconn": "128"}
        )
        quiet = listener((0, 0), drops=(7, 7))
        found = one(tcp_facts(host, listeners=[quiet, listener((0, 3), most=129, drops=(0, 40))]))
        assert (found.severity, found.code) == ("warning", "tcp-listen-queue-full")
        assert found.fix == "sysctl net.core.somaxconn=4096"
        assert "at most 129 waited for accept(), its backlog is 128; 40 times in 2.0 s" in found.summary

    @pytest.mark.parametrize(
        ("waiting", "backlog", "most"),
        [((0, 0), 128, 129), ((0, 129), 128, 129), ((70, 90), 128, 90), ((10, 10), 10, 10)],
    )
    def test_what_may_become_full(self, waiting, backlog, most):
        """Full for a moment, or half full at both ends: a note."""
        facts = tcp_facts(listeners=[listener(waiting, backlog, most)])
        assert codes(facts) == [("note", "tcp-listen-queue-fills")]

    def test_whose_drops(self):
        """A socket's own count, where the kernel has it: a full one that nobody joins gets none of another's."""
        host = host_facts({"TcpExt.ListenOverflows": 7})
        waits, drops = listener((5, 5), backlog=4), listener((1, 1), drops=(0, 9), local_port=81)
        found = {each.entity.name: each for each in host_findings(tcp_facts(host, listeners=[waits, drops]))}
        assert found["0.0.0.0:8080"].severity == found["0.0.0.0:81"].severity == "warning"
        assert "7 times in 2.0 s" in found["0.0.0.0:81"].summary
        assert "dropped" not in found["0.0.0.0:8080"].summary
        old = waits._replace(first=waits.first._replace(memory=None))
        assert "7 times in 2.0 s" in one(tcp_facts(host, listeners=[old])).summary

    def test_drops_for_other_reasons(self):
        """sk_drops counts others too: without ListenOverflows they are no finding."""
        assert codes(tcp_facts(host_facts({"TcpExt.ListenDrops": 3}), listeners=[listener(drops=(0, 3))])) == []

    def test_overflows_of_no_socket_that_is_seen(self):
        """A warning about the host; a note where the command is about a process."""
        host = host_facts({"TcpExt.ListenOverflows": 2})
        assert codes(tcp_facts(host)) == [("warning", "tcp-listen-overflows")]
        assert one(tcp_facts(host, listeners=[listener()])).summary.endswith(
            "was dropped; none was full when it was read"
        )
        assert one(tcp_facts(host, listeners=[listener(cookie=None)])).summary.endswith("was dropped")
        for request in (Request(pids=(4242,)), Request(uids=frozenset({0})), Request(peer=(b"1234", 32, None))):
            assert codes(tcp_facts(host, request=request)) == [("note", "tcp-listen-overflows")]

    def test_overflows_in_the_past(self):
        """A note, once."""
        found = one(tcp_facts(host_facts(before={"TcpExt.ListenOverflows": 21, "Conntrack.drop": 3})))
        assert (found.severity, found.code) == ("note", "tcp-drops-counted")
        assert "21 connections dropped at full listen queues, 3 packets dropped by connection tracking" in found.summary

    def test_overflows_in_the_past_of_others(self):
        """Who asks about a process is told of them only where its own listening sockets dropped some."""
        host, request = host_facts(before={"TcpExt.ListenOverflows": 21}), Request(pids=(4242,))
        assert codes(tcp_facts(host, listeners=[listener(drops=(0, 0))], request=request)) == []
        assert codes(tcp_facts(host, request=request)) == []
        assert codes(tcp_facts(host, listeners=[listener(drops=(3, 3))], request=request)) == [
            ("note", "tcp-drops-counted")
        ]

    def test_proc_net_tcp_shows_no_backlog(self):
        """One waiting connection is not more than a backlog of 0."""
        assert codes(tcp_facts(listeners=[listener((1, 1), backlog=0, cookie=None)])) == []


@pytest.mark.parametrize(
    ("grown", "mode", "severity", "words"),
    [
        ({"SyncookiesSent": 412, "SyncookiesRecv": 3}, "1", "warning", "a SYN flood"),
        ({"SyncookiesSent": 412, "SyncookiesRecv": 400}, "1", "warning", "more clients connect at once"),
        ({"SyncookiesSent": 4, "SyncookiesRecv": 4}, "1", "note", "more clients connect at once"),
        ({"SyncookiesSent": 412, "SyncookiesRecv": 400}, "2", None, ""),
        ({"TCPReqQFullDrop": 7}, "0", "warning", "7 SYNs were dropped"),
    ],
)
def test_syn_queues(grown, mode, severity, words):
    """Cookies in the window, unless they are always sent; without cookies drops."""
    host = host_facts(
        {f"TcpExt.{name}": number for name, number in grown.items()}, sysctls={"net.ipv4.tcp_syncookies": mode}
    )
    found = host_findings(tcp_facts(host))
    assert [each.severity for each in found] == ([severity] if severity else [])
    assert all(each.code == "tcp-syn-queue-full" and words in each.summary for each in found)


class TestUnanswered:
    """SYN_SENT."""

    @staticmethod
    def asking(number, repeats=1, **values):
        return [watched(tcp_socket(SYN_SENT, retransmits=repeats, **values)) for _ in range(number)]

    def test_a_pile(self):
        """Five to one address and port is a warning with the process."""
        found = one(tcp_facts(connections=self.asking(5, repeats=3)))
        assert (found.severity, found.code, found.entity.id) == ("warning", "tcp-connect-unanswered", 5151)
        assert found.summary.startswith(
            "5 connections of python3 (5151) to 10.0.0.7:5432 get no answer to their SYNs (SYN_SENT)"
        )
        assert found.evidence == "the SYN was sent again up to 3 times"

    def test_some(self):
        """One note for all others: a crawler meets hosts that are down."""
        connections = [
            *self.asking(1, peer_port=1),
            *self.asking(2, peer_port=2),
            *self.asking(1, peer_port=3),
            *self.asking(1, peer_port=4),
        ]
        found = one(tcp_facts(connections=connections))
        assert found.severity == "note"
        assert "5 connections of python3 (5151) to 10.0.0.7:2, 10.0.0.7:1, 10.0.0.7:3, … 1 more get" in found.summary

    def test_just_sent(self):
        """An answer may still come."""
        assert codes(tcp_facts(connections=self.asking(50, repeats=0))) == []

    def test_our_own_full_listener_explains_them(self):
        """One finding."""
        facts = tcp_facts(listeners=[listener((129, 129))], connections=self.asking(9, peer_port=8080))
        assert codes(facts) == [("warning", "tcp-listen-queue-full")]


class TestCloseWait:
    """Leaks, and what looks like one."""

    def test_a_leak(self):
        """300 of a server, with owner, age, count, fds and the next command."""
        found = one(tcp_facts(closing=[closing(300, oldest_ms=130_000)]))
        assert (found.severity, found.code, found.entity.id) == ("warning", "tcp-close-wait", 4242)
        assert found.summary == (
            "java (4242) has 300 connections on port 8080 that their peers closed and it has not (CLOSE_WAIT), "
            "the oldest at least 2 min 10 s ago"
        )
        assert (
            found.evidence
            == "300 and 300 in CLOSE_WAIT at both ends of 2.0 s, 300 the same; fds 10, 11, 12, 13, 14, … 295 more"
        )
        assert found.next == "opskit fds 4242 -w --ask"

    def test_peers_of_a_server_are_one_pile(self):
        """Clients at many addresses; of a client each peer is another one."""
        many = [closing(1, host=f"10.0.1.{each}") for each in range(25)]
        assert codes(tcp_facts(closing=many)) == [("warning", "tcp-close-wait")]
        assert codes(tcp_facts(closing=[each._replace(inbound=False) for each in many])) == []

    @pytest.mark.parametrize(
        ("number", "lasting", "oldest_ms", "inbound", "working", "severity"),
        [
            (25, 2, 100, True, 0, None),  # others each time
            (25, 25, 2500, True, 500, "note"),  # clients of long polls that are gone
            (25, 25, 90_000, True, 500, "warning"),
            (25, 25, 2500, True, 25, "warning"),
            (20, 20, 10**7, False, 0, "note"),  # a pool that is not used at night
            (60, 60, 2500, False, 0, "warning"),
            (9, 9, 10**7, True, 0, None),
        ],
    )
    def test_what_is_a_leak(self, number, lasting, oldest_ms, inbound, working, severity):
        """The same connections, as many as the working ones or for a minute; more of them where a pool may hold them."""
        place = {"local_port": 8080} if inbound else {"peer": "10.0.0.9", "peer_port": 8080}
        connections = [watched(tcp_socket(**place), owner=SERVER, inbound=inbound) for _ in range(working)]
        pile = closing(number, lasting=lasting, oldest_ms=oldest_ms, inbound=inbound)
        assert codes(tcp_facts(closing=[pile], connections=connections)) == (
            [(severity, "tcp-close-wait")] if severity else []
        )

    def test_growth_over_a_watch(self):
        """Steady growth is a warning long before the number is large."""
        counts = (12, 20, 31, 55, 90)
        facts = [
            tcp_facts(closing=[closing(number, inbound=False, port=443)], at_s=60.0 * at)
            for at, number in enumerate(counts)
        ]
        looks = [closing_look(each) for each in facts]
        found = one(facts[-1], looks)
        assert found.severity == "warning"
        assert "java (4242) has 90 connections to 10.0.0.9:443" in found.summary
        assert "grew from 12 to 90 in 4 min 0 s, +19 a minute" in found.summary
        assert found.next == "opskit fds 4242 --ask"

    def test_a_leak_to_many_peers(self):
        """One to each: a client that never closes. With one peer that leaks, that one is named alone."""
        many = [closing(1, inbound=False, host=f"10.0.{each // 250}.{each % 250}", port=443) for each in range(300)]
        found = one(tcp_facts(closing=many))
        assert found.severity == "warning"
        assert "java (4242) has 300 connections to 300 peers that their peers closed" in found.summary
        assert codes(tcp_facts(closing=many[:199])) == []
        assert (
            "60 connections to 10.9.9.9:443"
            in one(tcp_facts(closing=[*many, closing(60, inbound=False, host="10.9.9.9", port=443)])).summary
        )
        working = [watched(tcp_socket(peer=f"10.1.{each // 250}.{each % 250}"), owner=SERVER) for each in range(301)]
        assert codes(tcp_facts(closing=many, connections=working)) == []

    def test_clients_that_wait_in_a_full_queue_are_gone(self):
        """No process has them yet: the queue is the finding."""
        waiting = listener((129, 129), local_port=8080)
        assert codes(tcp_facts(closing=[closing(100, owner=None)], listeners=[waiting])) == [
            ("warning", "tcp-listen-queue-full")
        ]
        assert len(codes(tcp_facts(closing=[closing(300, owner=None)], listeners=[waiting]))) == 2

    def test_a_slow_leak(self):
        """One a minute, in a watch of 20 minutes: no step between two looks shows it."""
        facts = tcp_facts(closing=[closing(20, lasting=20, inbound=False, oldest_ms=5)], at_s=1200.0)
        (place,) = closing_look(facts).counts
        looks = [Look(2.0 * at, {place: at // 30}) for at in range(600)]
        found = one(facts, [*looks, closing_look(facts)])
        assert found.severity == "warning"
        assert "grew from 0 to 20 in 20 min 0 s, +1 a minute" in found.summary

    def test_idle_connections_work_too(self):
        """Where there are many connections, idle ones are counted in groups."""
        idle = (
            Idle(SERVER, address("10.0.0.5"), 8080, True, 1, 300),
            Idle(SERVER, address("10.0.0.5"), 81, True, 1, 300),
        )
        assert codes(tcp_facts(closing=[closing(25)], idle=idle)) == [("note", "tcp-close-wait")]
        assert codes(tcp_facts(closing=[closing(25)], idle=idle[1:])) == [("warning", "tcp-close-wait")]

    def test_ups_and_downs(self):
        """A number that falls in between is no leak."""
        facts = tcp_facts(closing=[closing(12, lasting=9, inbound=False)], at_s=100.0)
        (place,) = closing_look(facts).counts
        looks = [Look(20.0 * at, {place: number}) for at, number in enumerate((1, 5, 3, 8, 9))]
        assert codes(facts, [*looks, closing_look(facts)]) == []

    def test_stacks_and_unknown_processes(self):
        """The Java stack of a thread that waits on one of them; a process that we may not see."""
        thread = FdThread(10, 4300, "worker-1", "read", ("java.net.SocketInputStream.socketRead0", "Pool.run"))
        found = one(tcp_facts(closing=[closing(300, threads=(thread,))]))
        assert found.evidence.endswith("; waiting in java.net.SocketInputStream.socketRead0")
        found = one(tcp_facts(closing=[closing(300, owner=None, fds=())]))
        assert found.summary.startswith("an unknown process has 300 connections on port 8080")
        assert (found.entity.kind, found.entity.inside, found.next) == (
            "socket",
            None,
            None,
        )  # the host would explain too much


class TestPorts:
    """Local ports for one destination."""

    @staticmethod
    def with_ports(used, states=None, peer="10.0.0.7", young=0, **values):
        states = {1: used} if states is None else states
        destination = Destination(address("10.0.0.1"), address(peer), 5432, used, states, young)
        return host_facts(destinations=(destination,), ports=(50000, 50099, 0), ports_used=used, **values)

    def test_none_left(self):
        """An error with the process, and the next command."""
        connections = [watched(tcp_socket(local_port=50000 + each)) for each in range(100)]
        connections.append(watched(tcp_socket(peer_port=1), owner=Owner(1, 1, "other", 3)))
        found = one(tcp_facts(self.with_ports(100), connections=connections))
        idle = (Idle(SERVER, address("10.0.0.7"), 5432, False, 1, 99),)
        assert "most by java (4242);" in one(tcp_facts(self.with_ports(100), idle=idle)).summary
        assert (found.severity, found.code, found.share) == ("error", "tcp-ports-exhausted", 1.0)
        assert found.summary == (
            "all 100 local ports for connections from 10.0.0.1 to 10.0.0.7:5432 are used, most by python3 (5151); "
            "connect() fails (EADDRNOTAVAIL)"
        )
        assert found.next == "opskit tcp --peer 10.0.0.7:5432"
        assert found.fix == "sysctl 'net.ipv4.ip_local_port_range=10240 65535'"

    @pytest.mark.parametrize(("used", "severity"), [(89, None), (90, "warning"), (99, "warning"), (100, "error")])
    def test_few_left(self, used, severity):
        """From 90 % on."""
        assert [each.severity for each in host_findings(tcp_facts(self.with_ports(used)))] == (
            [severity] if severity else []
        )

    @pytest.mark.parametrize(
        ("reuse", "timestamps", "peer", "young", "expected"),
        [
            ("0", "1", "10.0.0.7", 0, "error"),
            ("1", "1", "10.0.0.7", 0, None),
            ("1", "0", "10.0.0.7", 0, "error"),
            ("2", "1", "10.0.0.7", 0, "error"),
            ("2", "1", "127.0.0.1", 0, None),
            ("2", "1", "::1", 0, None),
            ("2", "1", "::2", 0, "error"),
            ("1", "1", "10.0.0.7", 100, "error"),
        ],
    )
    def test_time_wait(self, reuse, timestamps, peer, young, expected):
        """Ports in TIME_WAIT count, unless connect(2) may take them again, a second after the end."""
        sysctls = {"net.ipv4.tcp_tw_reuse": reuse, "net.ipv4.tcp_timestamps": timestamps}
        host = self.with_ports(100, {TIME_WAIT: 100}, peer, young, sysctls=sysctls)._replace(ports_used=0)
        found = host_findings(tcp_facts(host))
        assert [each.severity for each in found] == ([expected] if expected else [])
        if expected and timestamps == "1" and reuse != "1":
            assert found[0].fix == "sysctl net.ipv4.tcp_tw_reuse=1"

    def test_all_ports_by_several_destinations(self):
        """connect(2) shares them, bind(2) does not: a note."""
        destinations = tuple(
            Destination(address("10.0.0.1"), address(f"10.0.0.{each}"), 80, 50, {1: 50}) for each in (5, 6)
        )
        host = host_facts(destinations=destinations, ports=(50000, 50099, 0), ports_used=100)
        assert codes(tcp_facts(host)) == [("note", "tcp-ports-nearly-exhausted")]

    def test_many_destinations(self):
        """Three findings, and how many more there are."""
        destinations = tuple(
            Destination(address("10.0.0.1"), address(f"10.0.0.{each}"), 80, 95, {1: 95}) for each in range(9)
        )
        found = host_findings(tcp_facts(host_facts(destinations=destinations, ports=(50000, 50099, 0))))
        assert len(found) == 3
        assert "6 more destinations like this" in found[0].evidence

    @pytest.mark.parametrize(
        ("ports", "usable"),
        [((50000, 50099, 0), 100), ((50000, 50100, 3), 97), ((5, 5, 0), 1), ((1, 2, 9), 1), (None, None)],
    )
    def test_usable_ports(self, ports, usable):
        """connect(2) tries an even number of them; those that are reserved or listened on are not free."""
        assert usable_ports(host_facts(ports=ports)) == usable


@pytest.mark.parametrize(
    ("conntrack", "dropped", "expected"),
    [
        ((262144, 262144), 0, [("error", "conntrack-full")]),
        ((260000, 262144), 32, [("error", "conntrack-full")]),
        ((240000, 262144), 0, [("warning", "conntrack-nearly-full")]),
        ((230000, 262144), 0, []),
        ((10, 262144), 32, []),  # a clash of two packets of one connection
        ((10, 0), 0, []),  # no limit
    ],
)
def test_connection_tracking(conntrack, dropped, expected):
    """Full with or without drops in the window, nearly full; drops for other reasons are none."""
    found = host_findings(tcp_facts(host_facts({"Conntrack.drop": dropped}, conntrack=conntrack)))
    assert [(each.severity, each.code) for each in found] == expected
    if dropped and expected:
        assert "260,000 of 262,144 entries, 32 packets of new connections dropped in 2.0 s" in found[0].summary
        assert found[0].fix == "sysctl net.netfilter.nf_conntrack_max=524288"


class TestMemory:
    """net.ipv4.tcp_mem and tcp_max_orphans."""

    @pytest.mark.parametrize(
        ("pages", "grown", "expected"),
        [
            (383_867, {}, []),
            (383_868, {}, [("warning", "tcp-memory-pressure")]),
            (575_802, {}, [("error", "tcp-memory-pressure")]),
            (
                300,
                {"TcpExt.TCPMemoryPressures": 1, "TcpExt.TCPMemoryPressuresChrono": 40},
                [("warning", "tcp-memory-pressure")],
            ),
            (300, {"TcpExt.TCPAbortOnMemory": 4}, [("error", "tcp-memory-pressure")]),
        ],
    )
    def test_pressure(self, pages, grown, expected):
        """By the level, and by what happened in the window."""
        host = host_facts(grown, sockstat={"TCP.mem": pages, "TCP.orphan": 5})
        assert codes(tcp_facts(host)) == expected

    def test_who_holds_it(self):
        """The processes whose connections queue the most."""
        connections = [watched(tcp_socket(recv_queue=6 << 20), owner=SERVER), watched(tcp_socket(send_queue=1 << 20))]
        found = one(tcp_facts(host_facts(sockstat={"TCP.mem": 400_000}), connections=connections))
        assert found.summary == (
            "TCP is under memory pressure: 1.5 GiB of buffers; pressure from 1.5 GiB, limit 2.2 GiB; connections get smaller windows; "
            "the most: java (4242) 6.0 MiB, python3 (5151) 1.0 MiB"
        )

    @pytest.mark.parametrize(
        ("orphans", "grown", "expected"),
        [
            (117_964, {}, []),
            (117_965, {}, [("warning", "tcp-orphans")]),
            (40_000, {"TcpExt.TCPAbortOnMemory": 4}, [("warning", "tcp-orphans")]),
        ],
    )
    def test_orphans(self, orphans, grown, expected):
        """Near the limit; or aborted while the limit applies to those without progress."""
        assert codes(tcp_facts(host_facts(grown, sockstat={"TCP.mem": 300, "TCP.orphan": orphans}))) == expected

    def test_time_wait(self):
        """Connections without TIME_WAIT are a note."""
        found = one(tcp_facts(host_facts({"TcpExt.TCPTimeWaitOverflow": 7}, sockstat={"TCP.tw": 10}, max_time_wait=10)))
        assert (found.severity, found.code) == ("note", "tcp-time-wait-full")
        assert "7 connections ended without TIME_WAIT in 2.0 s, since there are too many: 10 of 10" in found.summary


@pytest.mark.parametrize(
    ("again", "syns", "known", "sent", "severity"),
    [
        (198, 0, 0, 10_000, "note"),
        (600, 0, 0, 10_000, "warning"),
        (600, 590, 0, 10_000, None),  # a host that is down
        (600, 0, 590, 10_000, None),  # tail loss probes
        (90, 0, 0, 10_000, None),
        (30, 0, 0, 900, None),  # too few to tell
        (15, 0, 0, 1200, None),
    ],
)
def test_segments_sent_again(again, syns, known, sent, severity):
    """Of data, less what the peer had; 1 % is a note, 5 % a warning."""
    host = host_facts(
        {
            "Tcp.RetransSegs": again, "TcpExt.TCPSynRetrans": syns, "TcpExt.TCPDSACKRecvSegs": known, "TcpExt.TCPOrigDataSent": sent,
            "Tcp.OutSegs": sent * 2,
        }
    )  # fmt: skip
    found = host_findings(tcp_facts(host))
    assert [(each.severity, each.code) for each in found] == ([(severity, "tcp-host-retransmits")] if severity else [])


def test_old_kernels_count_less():
    """Without TCPOrigDataSent all segments count, without TCPDSACKRecvSegs the reports."""
    host = host_facts({"Tcp.RetransSegs": 700, "TcpExt.TCPDSACKRecv": 100, "Tcp.OutSegs": 10_000})
    assert "5.7 % of its TCP data segments again in 2.0 s: 600 of 10,600" in one(tcp_facts(host)).summary


def test_segments_out_of_order():
    """A note: the receiver's only sign of loss."""
    found = one(tcp_facts(host_facts({"TcpExt.TCPOFOQueue": 400, "Tcp.InSegs": 10_000})))
    assert (found.severity, found.code, found.share) == ("note", "tcp-host-out-of-order", 0.04)
    assert codes(tcp_facts(host_facts({"TcpExt.TCPOFOQueue": 100, "Tcp.InSegs": 10_000}))) == []


class TestBuffers:
    """Connections whose rate the buffer sets."""

    @staticmethod
    def receiving(bytes_s=5_000_000, min_rtt_us=40_000, ssthresh=208_000, limit=425_984, was=None, queue=0):
        first = tcp_socket(info=tcp_info(bytes_received=0), memory=SocketMemory(0, limit if was is None else was, 0, 0))
        info = tcp_info(bytes_received=bytes_s * 2, min_rtt_us=min_rtt_us, rcv_ssthresh=ssthresh)
        return watched(tcp_socket(info=info, memory=SocketMemory(0, limit, 0, 0), recv_queue=queue), first)

    def test_a_receive_buffer_of_the_program(self):
        """The rate is the window in each round trip."""
        found = one(tcp_facts(connections=[self.receiving()]))
        assert (found.severity, found.code, found.entity.id, found.fix) == (
            "note",
            "tcp-buffers-small",
            CLIENT.pid,
            None,
        )
        assert (
            "at most 5.0 MiB a second with 203 KiB at a round trip of 40 ms; the program or the kernel set it (SO_RCVBUF)"
            in found.summary
        )

    def test_a_receive_buffer_of_the_host(self):
        """The sysctl is the fix."""
        host = host_facts(sysctls={"net.ipv4.tcp_rmem": "4096 131072 425984"})
        found = one(tcp_facts(host, connections=[self.receiving()]))
        assert (found.entity.kind, found.fix) == ("host", "sysctl 'net.ipv4.tcp_rmem=4096 131072 1703936'")
        assert "net.ipv4.tcp_rmem allows 416 KiB" in found.summary

    @pytest.mark.parametrize(
        "values",
        [
            {"bytes_s": 1_000_000},
            {"min_rtt_us": 100, "bytes_s": 130_000_000},
            {"was": 131_072},
            {"queue": 150_000},
            {"min_rtt_us": None},
        ],
    )
    def test_others(self, values):
        """A slow peer, a near one, a buffer that still grows, a program that does not read, an unknown round trip."""
        assert codes(tcp_facts(connections=[self.receiving(**values)])) == []

    @pytest.mark.parametrize(("limit", "expected"), [(4_194_304, ["tcp-buffers-small"]), (16_384, [])])
    def test_a_send_buffer(self, limit, expected):
        """The host's largest; where the program chose a small one, the verdict of the connection says so."""
        first = tcp_socket(info=tcp_info(), memory=SocketMemory(0, 0, 0, limit))
        info = tcp_info(busy_us=1_900_000, sndbuf_limited_us=1_500_000, min_rtt_us=50_000)
        held = watched(tcp_socket(info=info, memory=SocketMemory(0, 0, 0, limit)), first)
        assert [each.code for each in host_findings(tcp_facts(connections=[held]))] == expected
