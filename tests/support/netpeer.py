"""Programs that talk over TCP at a set pace: `python netpeer.py JSON`. It ends with its standard input.

`listen` or `connect`: [address, port]; `connections`: how many; one that listens prints LISTENS, and READY when it has so many (0: never). `action`:
    read     `rate` bytes a second (0: as they come)          batches  all that has come, every tick_s
    write    `rate` bytes a second, `size` bytes each
    serve    a request of `size` bytes, think_ms, an answer of `answer` bytes
    ask      a request, its answer, think_ms; `again`: on a new connection each time
    hold     nothing                                           leak     reads to the end and never closes
`sndbuf`, `rcvbuf`, `backlog`, `accept` (false: never), `tick_s` (how often one with a rate does something). For each line of its input it prints JSON with its totals.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import sys
import threading
import time

TICK_S = 0.05


class Totals:
    """Of one connection. `thought_s`, `waited_s`: between requests and answers."""

    def __init__(self) -> None:
        self.thought_s = self.waited_s = 0.0
        self.exchanges = self.sent = self.received = 0


def main() -> None:
    wanted = json.loads(sys.argv[1])
    threading.stack_size(256 * 1024)
    sockets, every = [], []
    if wanted.get("connections") == 0:
        threading.Thread(target=_start, args=(wanted, sockets, every), daemon=True).start()
    else:
        _start(wanted, sockets, every)
        print("READY", flush=True)
    for _ in sys.stdin:
        print(json.dumps({key: sum(getattr(one, key) for one in every) for key in vars(Totals())}), flush=True)


def _start(wanted, sockets, every):
    """A thread for each connection, and its totals; `sockets` keeps them open."""
    for each in _sockets(wanted, sockets):
        every.append(Totals())
        if wanted["action"] != "hold":
            threading.Thread(target=_run, args=(wanted, each, every[-1]), daemon=True).start()


def _sockets(wanted, kept):
    number = wanted.get("connections", 1)
    if "connect" in wanted:
        kept += [_prepared(wanted, wanted["connect"][0]) for _ in range(number)]
        for each in kept:  # all at once: the line may be long
            each.setblocking(False)
            each.connect_ex(tuple(wanted["connect"]))
        for each in kept:
            select.select([], [each], [])
            each.setblocking(True)
        yield from kept
        return
    listener = _prepared(wanted, wanted["listen"][0])
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(tuple(wanted["listen"]))
    listener.listen(wanted.get("backlog", 1024))
    kept.append(listener)
    print("LISTENS", flush=True)
    for _ in range(number or sys.maxsize if wanted.get("accept", True) else 0):
        connection = listener.accept()[0]
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if number:
            kept.append(connection)
        yield connection


def _prepared(wanted, address):
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    for option, name in ((socket.SO_SNDBUF, "sndbuf"), (socket.SO_RCVBUF, "rcvbuf")):
        if name in wanted:
            made.setsockopt(socket.SOL_SOCKET, option, wanted[name])
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def _run(wanted, connection, totals):
    with contextlib.suppress(ConnectionError):  # the other program has ended
        ACTIONS[wanted["action"]](wanted, connection, totals)


def read(wanted, connection, totals):
    rate, tick_s = wanted.get("rate", 0), wanted.get("tick_s", TICK_S)
    begun = time.monotonic()
    while data := connection.recv(max(1, int(rate * tick_s)) if rate else 1 << 18):
        totals.received += len(data)
        if rate:
            _pause(begun + totals.received / rate)


def batches(wanted, connection, totals):
    """All that has come, again after `tick_s`."""
    while data := connection.recv(1 << 25):
        totals.received += len(data)
        time.sleep(wanted.get("tick_s", TICK_S))


def write(wanted, connection, totals):
    rate, size = wanted.get("rate", 0), wanted.get("size", 0)
    data = bytes(size or (max(1, int(rate * wanted.get("tick_s", TICK_S))) if rate else 1 << 16))
    begun = time.monotonic()
    while True:
        connection.sendall(data)
        totals.sent += len(data)
        if rate:
            _pause(begun + totals.sent / rate)


def serve(wanted, connection, totals):
    answer = bytes(wanted.get("answer", 1000))
    while _receive(connection, wanted.get("size", 200), totals):
        totals.exchanges += 1
        _think(wanted, totals)
        connection.sendall(answer)
        totals.sent += len(answer)


def ask(wanted, connection, totals):
    request = bytes(wanted.get("size", 200))
    while True:
        begun = time.monotonic()
        connection.sendall(request)
        totals.sent += len(request)
        if not _receive(connection, wanted.get("answer", 1000), totals):
            return
        waited_s = time.monotonic() - begun
        totals.exchanges += 1
        totals.waited_s += waited_s
        _think(wanted, totals)
        if wanted.get("again"):
            connection.close()
            connection = _prepared(wanted, wanted["connect"][0])
            connection.connect(tuple(wanted["connect"]))


def leak(_wanted, connection, totals):
    while data := connection.recv(65536):
        totals.received += len(data)


def _receive(connection, size, totals):
    left = size
    while left:
        data = connection.recv(left)
        if not data:
            return False
        left -= len(data)
    totals.received += size
    return True


def _think(wanted, totals):
    """Sleep; what was not slept yet counts as well, so that each exchange has its whole time."""
    begun = time.monotonic()
    think_s = wanted.get("think_ms", 0) / 1e3
    totals.thought_s += think_s
    if think_s:
        time.sleep(think_s)
    totals.thought_s += time.monotonic() - begun - think_s


def _pause(until):
    left = until - time.monotonic()
    if left > 0:
        time.sleep(left)


ACTIONS = {"read": read, "batches": batches, "write": write, "serve": serve, "ask": ask, "leak": leak}

if __name__ == "__main__":
    main()
