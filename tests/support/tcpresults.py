"""Answers of `opskit tcp`, as the analysis gives them: a service with a slow database, a lossy broker, clients, and an idle process."""

from __future__ import annotations

from ipaddress import ip_address

from opskit.analysis.finding import HOST, Finding
from opskit.analysis.tcp import result as verdicts
from opskit.analysis.tcp.harm import connection_findings
from opskit.analysis.tcp.result import Group, Judged, Rates, Result, Shares
from opskit.collect.fd_threads import FdThread
from opskit.collect.tcp.facts import Closing, Facts, Listener, Owner, Request, Sample, Space, Watched
from opskit.collect.tcp.host_facts import Destination, HostFacts
from opskit.proc.tcp_sockets import ESTABLISHED, LISTEN, Socket, SocketMemory, TcpInfo

OWNER = Owner(4242, 8675309, "orders", 57, is_jvm=True)
FRAMES = (
    "sun.nio.ch.Net.poll(java.base@21.0.8/Native Method)",
    "sun.nio.ch.NioSocketImpl.park(java.base@21.0.8/NioSocketImpl.java:191)",
    "java.net.Socket$SocketInputStream.read(java.base@21.0.8/Socket.java:1099)",
    "org.postgresql.core.PGStream.receiveChar(PGStream.java:481)",
    "com.example.OrderDao.load(OrderDao.java:42)",
)
MEMORY = SocketMemory(0, 212992, 0, 87040, 0)


def packed(host) -> bytes:
    """The address as a socket has it."""
    return ip_address(host).packed


def info(**changes) -> TcpInfo:
    """A connection that is in order."""
    return TcpInfo(
        retransmits=0, backoff=0, rto_us=204000, snd_mss=1448, rcv_mss=1448, unacked=0, lost=0, last_data_sent_ms=20,
        last_data_recv_ms=4, last_ack_recv_ms=4, pmtu=1500, rcv_ssthresh=64088, rtt_us=410, rttvar_us=90, snd_cwnd=10,
        advmss=1448, rcv_space=14480, total_retrans=0, bytes_acked=1200000, bytes_received=88000000, segs_out=61000,
        segs_in=62000, notsent_bytes=0, min_rtt_us=180, data_segs_in=60800, data_segs_out=12000, delivery_rate=9000000,
        busy_us=5000000, rwnd_limited_us=0, sndbuf_limited_us=0, bytes_sent=1200000, bytes_retrans=0, rcv_ooopack=0,
        snd_wnd=64256,
    )._replace(**changes)  # fmt: skip


def socket(local, local_port, peer, peer_port, **changes) -> Socket:
    """An established connection."""
    made = Socket(
        socket_family(local), ESTABLISHED, packed(local), local_port, packed(peer), peer_port, 0, 0, 1001, 500000 + local_port,
        cookie=local_port.to_bytes(8, "little"), info=info(), memory=MEMORY,
    )  # fmt: skip
    return made._replace(**changes)


def socket_family(host) -> int:
    """AF_INET or AF_INET6."""
    return 2 if ip_address(host).version == 4 else 10


def rates(**changes) -> Rates:
    """A megabyte a second in, little out."""
    return Rates(12400.0, 1048576.0, 0.0, 0.0, 0.41, 0.18, 0.31, 0.0, 0.0, 0, 0)._replace(**changes)


BEFORE = {
    "bytes_acked": 24800, "bytes_received": 2097152, "bytes_sent": 24800, "segs_out": 800, "segs_in": 1500, "data_segs_in": 1480,
    "data_segs_out": 40, "busy_us": 620000,
}  # fmt: skip
LOSSY = {
    "bytes_acked": 4800000, "bytes_received": 1800, "bytes_sent": 4896000, "bytes_retrans": 96940, "total_retrans": 67, "segs_out": 3390,
    "segs_in": 1700, "data_segs_in": 18, "data_segs_out": 3382, "busy_us": 1960000,
}  # fmt: skip
QUIET = dict.fromkeys(BEFORE, 0)
SAMPLE = Sample(0.05, 0, 0, 20, 4, 64088, 64256, 0, 410)


def judged(last, verdict, rates_=None, shares=None, owner=OWNER, inbound=False, threads=(), before=None) -> Judged:
    """A connection that was sampled over 2 s. `before`: by how much its counters were smaller at the begin."""
    lower = (
        {name: getattr(last.info, name) - change for name, change in (before or BEFORE).items()} if last.info else {}
    )
    first = last._replace(info=last.info and last.info._replace(**lower))
    watched = Watched(first, last, 2.0, inbound, owner, (SAMPLE,) * 3, threads)
    return Judged(watched, verdict, rates_ or rates(), shares, True)


def group(
    members, host, port, verdict, rates_=None, shares=None, inbound=False, command="orders", pids=(4242,)
) -> Group:
    """Connections of one process with one peer."""
    counts: dict[str, int] = {}
    for member in members:
        counts[member.verdict] = counts.get(member.verdict, 0) + 1
    return Group(
        command,
        pids,
        inbound,
        packed(host),
        port,
        verdict,
        tuple(counts.items()),
        rates_ or rates(),
        shares,
        tuple(members),
    )


DATABASE_SHARES = Shares(0.83, 0.12, 0.05)


def database() -> Group:
    """Twenty connections to a slow database, two of which are idle; a thread waits on one."""
    threads = (FdThread(57, 4301, "http-nio-8080-exec-3", "poll", FRAMES),)
    members = [
        judged(
            socket("10.0.0.2", 41000 + each, "10.0.0.7", 5432), verdicts.REQUESTS, None, DATABASE_SHARES,
            OWNER._replace(fd=57 + each), threads=threads if each == 0 else (),
        )
        for each in range(18)
    ]  # fmt: skip
    idle = rates(sent_bytes_s=0.0, received_bytes_s=0.0, loss=None, busy=0.0)
    for each in range(2):
        quiet = socket("10.0.0.2", 41018 + each, "10.0.0.7", 5432)
        members.append(judged(quiet, verdicts.IDLE, idle, None, OWNER._replace(fd=75 + each), before=QUIET))
    return group(members, "10.0.0.7", 5432, verdicts.REQUESTS, rates(sent_bytes_s=223200.0), DATABASE_SHARES)


def broker() -> Group:
    """A connection over a network that loses segments."""
    lossy = rates(
        sent_bytes_s=2400000.0, received_bytes_s=900.0, loss=0.0198, rtt_ms=41.2, min_rtt_ms=40.1, busy=0.98, send_queue_bytes=812000
    )  # fmt: skip
    state = info(
        bytes_acked=90000000, bytes_sent=92000000, bytes_retrans=1800000, total_retrans=1260, data_segs_out=64000,
        rtt_us=41200, min_rtt_us=40100,
    )  # fmt: skip
    last = socket("10.0.0.2", 52000, "10.0.0.9", 9092, send_queue=812000, info=state)
    member = judged(last, verdicts.LOSS, lossy, None, OWNER._replace(fd=91), before=LOSSY)
    return group([member], "10.0.0.9", 9092, verdicts.LOSS, lossy)


def clients() -> Group:
    """A client over IPv6 whose requests this application answers quickly."""
    shares = Shares(0.9, 0.06, 0.04)
    member = judged(
        socket("2001:db8::2", 8080, "2001:db8::30", 60123),
        verdicts.REQUESTS,
        None,
        shares,
        OWNER._replace(fd=112),
        inbound=True,
    )
    return group([member], "2001:db8::30", 8080, verdicts.REQUESTS, None, shares, inbound=True)


HOST_FACTS = HostFacts(
    {"Tcp.OutSegs": 900000, "Tcp.RetransSegs": 4000, "TcpExt.ListenOverflows": 21, "Tcp.CurrEstab": 22},
    {"Tcp.OutSegs": 902400, "Tcp.RetransSegs": 4033, "TcpExt.ListenOverflows": 21, "Tcp.CurrEstab": 22},
    {"TCP.inuse": 30, "TCP.orphan": 0, "TCP.tw": 28, "TCP.mem": 120},
    (32768, 60999, 0), 48,
    (Destination(packed("10.0.0.2"), packed("10.0.0.7"), 5432, 48, {ESTABLISHED: 20, 6: 28}),),
    (188000, 251000, 376000), 131072, 131072, (412, 262144), {"net.core.somaxconn": "4096"}, 86400.5,
)  # fmt: skip
SPACE = Space("net:[4026531840]", "sock_diag", {ESTABLISHED: 22, 6: 28, LISTEN: 2, 8: 3}, HOST_FACTS)
LISTENING = Socket(
    10,
    LISTEN,
    packed("::"),
    8080,
    packed("::"),
    0,
    3,
    100,
    1001,
    499000,
    cookie=b"listen-1",
    memory=MEMORY._replace(drops=21),
)
LISTENERS = (
    Listener(LISTENING._replace(recv_queue=1), LISTENING, OWNER._replace(fd=12), 41),
    Listener(
        Socket(2, LISTEN, packed("0.0.0.0"), 22, packed("0.0.0.0"), 0, 0, 128, 0, 1200, cookie=b"listen-2", memory=MEMORY),  # noqa: S104
        Socket(2, LISTEN, packed("0.0.0.0"), 22, packed("0.0.0.0"), 0, 0, 128, 0, 1200, cookie=b"listen-2", memory=MEMORY),  # noqa: S104
        None, 0,
    ),
)  # fmt: skip
CLOSED = Closing(OWNER._replace(fd=130), packed("10.0.0.9"), 443, False, 2, 3, 2, 95000, (130, 131, 132))


def facts(**changes) -> Facts:
    """Of the namespace of `orders`."""
    request = Request((4242,), 2.0)
    return Facts(request, 2.0, (), LISTENERS, (CLOSED,), (SPACE,))._replace(**changes)


def orders(**changes) -> Result:
    """A broker behind a lossy network comes first."""
    groups = (broker(), database(), clients())
    watched = tuple(each.connection for one in groups for each in one.judged)
    found = tuple(connection_findings(groups))
    return Result(facts(connections=watched), groups, LISTENERS, (CLOSED,), found)._replace(**changes)


def healthy() -> Result:
    """Requests and responses at full speed."""
    return orders(groups=(clients(), database()), findings=())


def idle() -> Result:
    """Nothing moves."""
    quiet = rates(sent_bytes_s=0.0, received_bytes_s=0.0, busy=0.0)
    member = judged(socket("10.0.0.2", 41000, "10.0.0.7", 5432), verdicts.IDLE, quiet, before=QUIET)
    return orders(groups=(group([member], "10.0.0.7", 5432, verdicts.IDLE, quiet),), findings=())


def nothing() -> Result:
    """No connection at all."""
    return Result(facts(closing=(), listeners=()), (), (), (), ())


def still() -> Result:
    """/proc of a copy: one look, without tcp_info."""
    bare = socket("10.0.0.2", 41000, "10.0.0.7", 5432, info=None, memory=None, cookie=None)
    unknown = Rates(None, None, None, None, None, None, None, None, None, 0, 0)
    member = Judged(Watched(bare, bare, 0.0, False, OWNER), verdicts.UNKNOWN, unknown, None, False)
    one = group([member], "10.0.0.7", 5432, verdicts.UNKNOWN, unknown)
    host = HOST_FACTS._replace(first={}, last={}, ports=None, destinations=(), tcp_mem_pages=None, conntrack=None)
    space = SPACE._replace(source="proc", namespace=None, host=host)
    made = facts(
        is_still=True, window_s=0.0, spaces=(space,), missing=("a copy has no tcp_info: no verdicts",), listeners=()
    )
    return Result(made, (one,), (), (), ())


def unowned() -> Result:
    """Connections whose process cannot be read, in two namespaces; names that are not harmless."""
    strange = Owner(66, None, "evil\x1b[31m`|\n", 3)
    members = [
        judged(
            socket("10.0.0.2", 41000, "10.0.0.7", 5432),
            verdicts.READER_HERE,
            rates(recv_queue_bytes=600000),
            None,
            None,
        ),
    ]
    groups = (
        group(members, "10.0.0.7", 5432, verdicts.READER_HERE, rates(recv_queue_bytes=600000), command=None, pids=()),
        group(
            [judged(socket("10.0.0.2", 41001, "10.0.0.8", 80), verdicts.WRITER_THERE, owner=strange)], "10.0.0.8", 80,
            verdicts.WRITER_THERE, command=strange.command, pids=(66,),
        ),
    )  # fmt: skip
    note = Finding("tcp-drops-counted", "note", HOST, "21 connections were dropped since boot", "ListenOverflows 21")
    made = facts(
        ask=Request((), 2.0), spaces=(SPACE, SPACE._replace(namespace="net:[4026532001]")), elsewhere=((812, 3), (900, 1)),
        missing=("7 of 30 processes could not be read; run as root to see them",),
    )  # fmt: skip
    return Result(made, groups, LISTENERS, (CLOSED,), (note,))
