"""A line between two network namespaces of its own: `python netline.py JSON`. It ends with its standard input.

`addresses`: IPv4 and IPv6 of each end. With `veth` the kernel joins them. Otherwise two TUN devices are forwarded here, each direction with the values of `forth` and `back`:
delay_ms, loss (a share of the packets), rate (bytes a second), queue_ms (what fits before that rate drops), drop_above (bytes: a black hole),
jitter_ms (added at random, in order). It prints READY and the file descriptors of the two namespaces; for each line of its input it
prints how many packets and bytes of TCP data each direction was given, and how many of them it dropped.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import random
import select
import struct
import subprocess
import sys
import time
from collections import deque

NEW_NETWORK = 0x40000000
_SET_INTERFACE, _TUN, _NO_HEADER = 0x400454CA, 0x0001, 0x1000
_TCP = 6


def main() -> None:
    wanted = json.loads(sys.argv[1])
    spaces = [_new_namespace(), _new_namespace()]  # we stay in the second
    if wanted.get("veth"):
        for command in ("ip link add line type veth peer name peer netns {}", "ip link set lo up"):
            _ip(spaces[0], command.format(os.getpid()))
        _ip(spaces[1], "ip link set peer name line")
    tuns = [] if wanted.get("veth") else [_tun(space) for space in spaces]
    for space, (ipv4, ipv6) in zip(spaces, wanted["addresses"]):
        for command in (
            f"ip addr add {ipv4}/24 dev line",
            f"ip -6 addr add {ipv6}/64 dev line nodad",
            f"ip link set line mtu {wanted.get('mtu', 1500)} txqueuelen 2000 up",
            "ip link set lo up",
        ):
            _ip(space, command)
    print("READY", *spaces, flush=True)
    directions = [Direction(**wanted.get("forth", {})), Direction(**wanted.get("back", {}))]
    forward(tuns, directions)


def _new_namespace() -> int:
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "unshare")
    return os.open("/proc/self/ns/net", os.O_RDONLY)


def _ip(space: int, command: str) -> None:
    subprocess.run(["nsenter", f"--net=/proc/{os.getpid()}/fd/{space}", *command.split()], check=True)


def _tun(space: int) -> int:
    """A device `line` in this namespace; its packets are read and written by the fd."""
    libc = ctypes.CDLL(None, use_errno=True)
    ours = os.open("/proc/self/ns/net", os.O_RDONLY)
    if libc.setns(space, NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "setns")
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, _SET_INTERFACE, struct.pack("16sH14x", b"line", _TUN | _NO_HEADER))
    libc.setns(ours, NEW_NETWORK)
    os.close(ours)
    return tun


class Direction:
    """Packets on their way, in order: `take` one, `due` gives those that arrive."""

    def __init__(self, delay_ms=0.0, loss=0.0, rate=0.0, queue_ms=300.0, drop_above=0, jitter_ms=0.0) -> None:
        self.delay_s, self.rate, self.queue_s, self.drop_above = delay_ms / 1e3, rate, queue_ms / 1e3, drop_above
        self.jitter_s = jitter_ms / 1e3
        self.chosen, self.dice = loss_pattern(loss), random.Random(2)  # noqa: S311
        self.packets: deque[tuple[float, bytes]] = deque()
        self.free_s = self.last_s = 0.0
        self.given = {"packets": 0, "bytes": 0, "dropped_packets": 0, "dropped_bytes": 0}

    def take(self, packet: bytes, now: float) -> None:
        data = tcp_payload(packet)
        self._note("", data)
        arrives = self._leaves(packet, now)
        if arrives is None:
            self._note("dropped_", data)
            return
        self.last_s = max(self.last_s, arrives + self.delay_s + self.jitter_s * self.dice.random())
        self.packets.append((self.last_s, packet))

    def _leaves(self, packet: bytes, now: float) -> float | None:
        if next(self.chosen) or (self.drop_above and len(packet) > self.drop_above):
            return None
        if not self.rate:
            return now
        leaves = max(self.free_s, now) + len(packet) / self.rate
        if leaves - now > self.queue_s + len(packet) / self.rate:
            return None
        self.free_s = leaves
        return leaves

    def _note(self, what: str, data: int) -> None:
        if data:
            self.given[f"{what}packets"] += 1
            self.given[f"{what}bytes"] += data

    def due(self, now: float):
        while self.packets and self.packets[0][0] <= now:
            yield self.packets.popleft()[1]


def loss_pattern(loss: float):
    """Whether each next packet is lost: one of every 1 / loss, at a random place among them."""
    dice, every = random.Random(1), round(1 / loss) if loss else 0  # noqa: S311
    while True:
        lost = dice.randrange(every) if every else -1
        for number in range(every or 1):
            yield number == lost


def tcp_payload(packet: bytes) -> int:
    """The bytes of TCP data in an IPv4 or IPv6 packet without extension headers; 0 for anything else."""
    if packet[0] >> 4 == 4:
        start, length, protocol = 4 * (packet[0] & 15), int.from_bytes(packet[2:4], "big"), packet[9]
    else:
        start, length, protocol = 40, 40 + int.from_bytes(packet[4:6], "big"), packet[6]
    return length - start - 4 * (packet[start + 12] >> 4) if protocol == _TCP and len(packet) > start + 12 else 0


def forward(tuns: list[int], directions: list[Direction]) -> None:
    """Until the end of the standard input."""
    ways = list(zip(tuns, reversed(tuns), directions))
    while True:
        now = time.monotonic()
        for _, target, direction in ways:
            for packet in direction.due(now):
                try:
                    os.write(target, packet)
                except OSError:
                    pass  # the other end has gone, or its queue is full
        next_s = min((direction.packets[0][0] for direction in directions if direction.packets), default=now + 1)
        ready, _, _ = select.select([0, *tuns], [], [], max(0.0, next_s - time.monotonic()))
        if 0 in ready:
            if not os.read(0, 4096):
                return
            print(json.dumps([direction.given for direction in directions]), flush=True)
        for source, _, direction in ways:
            if source in ready:
                _drain(source, direction)


def _drain(source: int, direction: Direction) -> None:
    for _ in range(64):
        try:
            packet = os.read(source, 65536)
        except BlockingIOError:
            return
        direction.take(packet, time.monotonic())


if __name__ == "__main__":
    main()
