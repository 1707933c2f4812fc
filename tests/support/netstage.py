"""States of the TCP host for the tests, each in a network namespace of its own.

    with stage("unaccepted", backlog=4, clients=12) as staged:
        run(f"opskit tcp {staged.pid}")

The process that is started makes the namespace (unshare), sets it up, stages the case, writes READY and what it made as JSON, and
waits. It needs root, and what a case says. Nothing remains: the namespace ends with the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from shells import opskit_as

_LO_UP = struct.pack("16sh14x", b"lo", 0x1 | 0x40)  # IFF_UP, IFF_RUNNING
_SIOCSIFFLAGS, _SIOCSIFADDR = 0x8914, 0x8916
_SET_PARENT_DEATH_SIGNAL = 1


class Staged(NamedTuple):
    """A staged case: the process that holds it, and what it says of itself."""

    process: subprocess.Popen
    said: dict

    @property
    def pid(self) -> int:
        return self.process.pid

    def run(self, *command, user=None, inside=True, **options):
        """Run opskit, by default in its network namespace."""
        entered = ["nsenter", f"--net=/proc/{self.pid}/ns/net"] if inside else []
        opskit = opskit_as(user, *command) if user is not None else [sys.executable, "-m", "opskit", *map(str, command)]
        return subprocess.run(
            [*entered, *opskit], capture_output=True, text=True, check=False, timeout=60, cwd="/", **options
        )

    def go_on(self) -> dict:
        """Let a case that has a second part do it."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@contextlib.contextmanager
def stage(case: str, **wanted):
    """Stage a case; skip where it cannot be."""
    import pytest

    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("needs root and unshare (util-linux)")
    words = ["unshare", "-n", sys.executable, str(Path(__file__).resolve()), case, json.dumps(wanted)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
    try:
        line = process.stdout.readline()
        assert line, f"{case}: no answer"
        said = json.loads(line)
        if "skip" in said:
            pytest.skip(said["skip"])
        yield Staged(process, said)
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


# In the process of a case.


def sysctl(name: str, value: object) -> None:
    Path("/proc/sys", *name.split(".")).write_text(f"{value}\n")


def set_up(address: str | None = None) -> None:
    """Bring lo up; with another address than 127.0.0.1 too."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, _LO_UP)
        if address:
            family = struct.pack("=H2x4s8x", socket.AF_INET, socket.inet_aton(address))
            fcntl.ioctl(control, _SIOCSIFADDR, struct.pack("16s16s8x", b"lo:1", family))


def listening(port: int, backlog: int, host: str = "127.0.0.1") -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((host, port))
    made.listen(backlog)
    return made


def connecting(number: int, port: int, host: str = "127.0.0.1") -> list[socket.socket]:
    """Clients that do not wait for an answer."""
    made = []
    for _ in range(number):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex((host, port))
        made.append(client)
    return made


def pairs(
    number: int, port: int, host: str = "127.0.0.1"
) -> tuple[socket.socket, list[tuple[socket.socket, socket.socket]]]:
    server = listening(port, 64, host)
    made = []
    for _ in range(number):
        client = socket.create_connection((host, port))
        made.append((client, server.accept()[0]))
    return server, made


def child() -> bool:
    """Fork; True in the child, which ends with its parent."""
    parent = os.getpid()
    if os.fork():
        return False
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
    return True


def wait() -> None:
    sys.stdin.readline()


def say(**what) -> None:
    print(json.dumps(what), flush=True)


def unaccepted(backlog: int = 4, clients: int = 12, settled_s: float = 0.2, again: int = 0) -> None:
    """A server that does not accept; then `again` more clients come each second."""
    server = listening(7100, backlog)
    held = connecting(clients, 7100)
    time.sleep(settled_s)
    say(fd=server.fileno())
    while again:
        time.sleep(1 / again)
        held += connecting(1, 7100)
    wait()


def overflowed() -> None:
    """A server that did not accept all clients, and has none now."""
    with listening(7100, 1):
        held = connecting(8, 7100)
        time.sleep(0.2)
    say(clients=len(held))
    wait()


def bursts(backlog: int = 4, clients: int = 12, each_s: float = 0.1) -> None:
    """A server that accepts all that wait now and then, and another one that is left alone."""
    server, _quiet = listening(7100, backlog), listening(7107, backlog)
    server.setblocking(False)
    say(fd=server.fileno())
    while True:
        held = connecting(clients, 7100)
        time.sleep(each_s)
        with contextlib.suppress(BlockingIOError):
            while True:
                server.accept()[0].close()
        for one in held:
            one.close()
        time.sleep(each_s)


def accepted(backlog: int = 64, seconds: float = 30.0) -> None:
    """A server that accepts, and clients that connect, ask, and go: healthy, with TIME_WAIT by the thousand."""
    server = listening(7100, backlog)
    if child():
        while True:
            client, _ = server.accept()
            client.recv(10)
            client.send(b"answer")
            client.close()
    end = time.monotonic() + seconds
    made = 0
    while time.monotonic() < end:
        with socket.create_connection(("127.0.0.1", 7100)) as client:
            client.send(b"ask")
            client.recv(10)
        made += 1
        if made == 2000:
            say(made=made)


def close_wait(
    number: int = 300, inbound: bool = True, working: int = 0, more_each: float = 0.0, age_s: float = 0.2
) -> None:
    """Connections that the peer closes and this process does not. `more_each`: then another one in so many seconds."""
    server, made = pairs(number + working, 7101)
    children = [pair[inbound] for pair in made[:number]]
    for pair in made[:number]:
        pair[not inbound].close()
    time.sleep(age_s)
    say(fds=[one.fileno() for one in children])
    if more_each:
        wait()
        say()
    while more_each:
        time.sleep(more_each)
        client = socket.create_connection(("127.0.0.1", 7101))
        pair = client, server.accept()[0]
        pair[not inbound].close()
        children.append(pair[inbound])
    wait()


def ports(
    first: int = 50000, last: int = 50099, used: int = 100, address: str = "127.0.0.1", closed: bool = False, settled_s: float = 0.2
) -> None:  # fmt: skip
    """Connections that use ports of a short range to one destination. `closed`: they end in TIME_WAIT."""
    set_up(None if address.startswith("127.") else address)
    sysctl("net.ipv4.ip_local_port_range", f"{first} {last}")
    _server, made = pairs(used, 7102, address)
    if closed:
        for client, accepted in made:
            client.close()
            accepted.close()
    time.sleep(settled_s)
    failed = None
    try:
        with socket.socket() as client:
            client.connect((address, 7102))
    except OSError as error:
        failed = error.errno
    say(connect=failed)
    wait()


def unanswered(number: int = 8, settled_s: float = 1.1) -> None:
    """Connections to a host that takes packets and does not answer. Needs ip (iproute2)."""
    if not shutil.which("ip"):
        return say(skip="needs ip (iproute2)")
    for words in (
        "link add name line0 type veth peer name line1", "link set line1 up", "addr add 10.77.0.1/24 dev line0", "link set line0 up",
        "neigh add 10.77.0.9 lladdr 02:00:00:00:00:09 dev line0 nud permanent",
    ):  # fmt: skip
        if subprocess.run(["ip", *words.split()], check=False, capture_output=True).returncode:
            return say(skip=f"ip {words} failed")
    held = connecting(number, 443, "10.77.0.9")
    time.sleep(settled_s)
    say(fds=[one.fileno() for one in held])
    return wait()


def half_open(number: int = 40, backlog: int = 8) -> None:
    """A server whose SYN-ACKs get lost, while SYNs come all the time. Needs nft (nftables)."""
    if not _nft("add rule inet t input tcp flags & (syn | ack) == (syn | ack) drop"):
        return
    server = listening(7103, backlog)
    held = connecting(number, 7103)
    say(fd=server.fileno())
    while True:
        time.sleep(0.05)
        held = (held + connecting(2, 7103))[-200:]


def _nft(rule: str) -> bool:
    script = f"add table inet t; add chain inet t input {{ type filter hook input priority 0; }}; {rule}"
    if not shutil.which("nft"):
        say(skip="needs nft (nftables)")
    elif subprocess.run(["nft", script], check=False, capture_output=True).returncode:
        say(skip="nft cannot set up a rule in this kernel")
    else:
        return True
    return False


def tracked(share: float = 0.93, clients_each: float = 0.02) -> None:
    """A connection tracking table with this share of its limit, which is the machine's; then a full one with new clients."""
    if not _nft("add rule inet t input ct state invalid counter"):
        return
    limit = int(Path("/proc/sys/net/netfilter/nf_conntrack_max").read_text())
    if limit > 600_000:
        say(skip=f"a table of {limit:,} entries takes too much memory")
        return
    server = listening(7104, 64)
    first = int(limit * share)
    fill_table(0, first)
    say(limit=limit)
    wait()
    fill_table(first, limit + 1000)
    say(limit=limit)
    held = []
    while server:
        held += connecting(1, 7104)
        time.sleep(clients_each)


def fill_table(first: int, end: int) -> None:
    """Add assured UDP entries by ctnetlink (include/uapi/linux/netfilter/nfnetlink_conntrack.h)."""
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
    header = struct.Struct("=IHHII")
    addresses = socket.inet_aton("10.1.0.1"), socket.inet_aton("10.2.0.1")
    batch = []
    for each in range(first, end):
        ports = struct.pack(">H", 1 + each % 60000), struct.pack(">H", 1 + each // 60000)
        body = (
            struct.pack("=BBH", socket.AF_INET, 0, 0)
            + _nested(1, _tuple(addresses, ports))
            + _nested(2, _tuple(addresses[::-1], ports[::-1]))
            + _attribute(3, struct.pack(">I", 2 | 4 | 8))  # seen reply, assured, confirmed
            + _attribute(7, struct.pack(">I", 600))
        )
        batch.append(header.pack(16 + len(body), 1 << 8, 0x1 | 0x400 | 0x200, each + 1, 0) + body)
        if len(batch) == 200:
            netlink.send(b"".join(batch))
            batch.clear()
    if batch:
        netlink.send(b"".join(batch))
    netlink.close()


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _nested(kind: int, value: bytes) -> bytes:
    return _attribute(kind | 0x8000, value)


def _tuple(addresses: tuple[bytes, bytes], ports: tuple[bytes, bytes]) -> bytes:
    place = _attribute(1, addresses[0]) + _attribute(2, addresses[1])
    protocol = _attribute(1, b"\x11") + _attribute(2, ports[0]) + _attribute(3, ports[1])
    return _nested(1, place) + _nested(2, protocol)


def time_wait(limit: int = 10, each_s: float = 0.02) -> None:
    """Connections that end, more than may wait in TIME_WAIT."""
    sysctl("net.ipv4.tcp_max_tw_buckets", limit)
    server = listening(7105, 64)
    say(limit=limit)
    while True:
        client = socket.create_connection(("127.0.0.1", 7105))
        accepted = server.accept()[0]
        client.close()
        accepted.close()
        time.sleep(each_s)


def lossy(one_in: int = 33) -> None:
    """A stream of which each nth packet gets lost: as many as said, on a slow machine too. Needs nft (nftables)."""
    if not _nft(f"add rule inet t input tcp dport 7106 numgen inc mod {one_in} 0 drop"):
        return
    server = listening(7106, 4)
    if child():
        client = socket.create_connection(("127.0.0.1", 7106))
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            for _ in range(10):
                client.send(bytes(1400))
            time.sleep(0.001)
    accepted = server.accept()[0]
    say(fd=accepted.fileno())
    while accepted.recv(1 << 16):
        pass


CASES = {
    each.__name__: each
    for each in (
        unaccepted,
        overflowed,
        bursts,
        accepted,
        close_wait,
        ports,
        unanswered,
        half_open,
        tracked,
        time_wait,
        lossy,
    )
}

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    set_up()
    CASES[sys.argv[1]](**json.loads(sys.argv[2]))
