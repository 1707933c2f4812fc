"""What is read of TCP connections over one window, and of the machine that they run on. None: unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.collect.fd_threads import FdThread
    from opskit.collect.tcp.host_facts import HostFacts
    from opskit.proc.tcp_sockets import Socket


class Request(NamedTuple):
    """What to read. No `pids`: all connections of our network namespace. `window_s`: of one sample. `ask`: one thread dump of a JVM.

    `peer`: only connections with this address: a packed network, its prefix length, and a port or None. `uids`: only sockets of
    these users; empty: of all. `quick`: two dumps, and looks at the connections with a queue alone; owners are read when they are asked for.
    """

    pids: tuple[int, ...] = ()
    window_s: float = 2.0
    peer: tuple[bytes, int, int | None] | None = None
    ask: bool = False
    uids: frozenset[int] = frozenset()
    quick: bool = False


class Owner(NamedTuple):
    """A process that has a socket open, by the fd. `others`: how many more processes have it."""

    pid: int
    start_ticks: int | None
    command: str
    fd: int
    others: int = 0
    is_jvm: bool = False


class Sample(NamedTuple):
    """One of 20 to 50 looks a second at a connection."""

    at_s: float
    recv_queue: int
    send_queue: int
    last_data_sent_ms: int
    last_data_recv_ms: int
    rcv_ssthresh: int
    snd_wnd: int | None
    unacked: int
    rtt_us: int


class Watched(NamedTuple):
    """A connection at the begin and the end of the window. `samples`: empty for those that were read at both ends alone.

    `first` is `last` where the connection is new within the window, or where there was one look alone (a copy).
    `elapsed_s`: between `first` and `last`. `inbound`: its local port is listened on here. `space`: its place in Facts.spaces.
    """

    first: Socket
    last: Socket
    elapsed_s: float
    inbound: bool
    owner: Owner | None
    samples: tuple[Sample, ...] = ()
    threads: tuple[FdThread, ...] = ()
    space: int = 0


class Idle(NamedTuple):
    """Connections without data in the window and with empty queues, of one process and one peer (host, port of the service), in one state.

    Only where there are many connections: of few each is a Watched.
    """

    owner: Owner | None
    host: bytes
    port: int
    inbound: bool
    state: int
    connections: int
    space: int = 0


class Listener(NamedTuple):
    """A listening socket at both ends of the window. `most_waiting`: for accept(2), of all looks."""

    first: Socket
    last: Socket
    owner: Owner | None
    most_waiting: int


class Closing(NamedTuple):
    """Connections that the peer has closed and a process has not (CLOSE-WAIT), of one process and one peer (host, port of the service).

    `inbound`: `port` is ours, else the peer's. `first` and `last`: how many at both ends of the window; `lasting`: of them the same ones.
    `oldest_ms`: since the last ACK from a peer (tcp_info: last_ack_recv), which was its FIN or, with keep-alive, a later answer: at
    least so long ago. `threads`: of the fd of one of them.
    """

    owner: Owner | None
    host: bytes
    port: int
    inbound: bool
    first: int
    last: int
    lasting: int
    oldest_ms: int | None
    fds: tuple[int, ...] = ()
    threads: tuple[FdThread, ...] = ()


class Space(NamedTuple):
    """A network namespace: `net:[4026531840]`, how it was read (`sock_diag`, `proc`), and how many sockets of each state it has."""

    namespace: str | None
    source: str
    states: Mapping[int, int]
    host: HostFacts


class Facts(NamedTuple):
    """One window. `spaces`: one for each network namespace of the processes. `missing`: what could not be read, and what would show it.

    `idle`: connections that are not in `connections`. `is_still`: a copy, or one look: no rates. `elsewhere`: other network
    namespaces: of the processes that have sockets there the PID with the most, and how many they are.
    """

    ask: Request
    window_s: float
    connections: tuple[Watched, ...]
    listeners: tuple[Listener, ...]
    closing: tuple[Closing, ...]
    spaces: tuple[Space, ...]
    is_still: bool = False
    elsewhere: tuple[tuple[int, int], ...] = ()
    missing: tuple[str, ...] = ()
    at_s: float = 0.0
    idle: tuple[Idle, ...] = ()
