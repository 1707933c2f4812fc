"""A process that looks like a HotSpot JVM to clients and misbehaves in one known way: python fakejvm.py LIBJVM MODE [UID].

It maps a file called libjvm.so, catches SIGQUIT, and then, where the trigger file is there, listens as HotSpot does.
It prints READY, and a line for each thing that happens to it: `quit`, `dump` (a SIGQUIT without a trigger), `asked …`.

    v1, v2         answers as JDK 8 to 21, or as 24 and later, do
    jdk8           v1, and closes without an answer unless uid and gid of the client are exactly its own
    101            answers 101 to everything
    close          closes without an answer               reset     closes with the request unread
    stall          accepts, and never answers          queue     never accepts, its queue is full
    trickle        a byte now and then, forever        big       a reply of 100 MB
    endless        bytes as fast as they are read, forever; endless-version already where its version is asked for
    half           a dump without its end              halfcode  a code without its newline
    histograms     two histograms
    garbage        no code at all                      never     never listens
    burn           never answers, while its thread "hog-thread" burns CPU
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import socket
import struct
import sys
import threading
import time

DUMP = b"""2025-11-21 11:02:13
Full thread dump OpenJDK 64-Bit Server VM (17.0.9+9 mixed mode):

"main" #1 prio=5 os_prio=0 cpu=33.15ms elapsed=2.01s tid=0x00007f nid=0x1 runnable  [0x00007f]
   java.lang.Thread.State: RUNNABLE

JNI global refs: 6, weak refs: 0

"""

HISTOGRAM = b""" num     #instances         #bytes  class name (module)
-------------------------------------------------------
   1:             2             48  java.lang.String (java.base@17)
Total             2             48
"""


def say(*words: object) -> None:
    """One write, no buffer: the handler of SIGQUIT may come in the midst of another line, and print() is not made for that."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def answer(mode: str, request: list[bytes]) -> bytes:
    version, command = request[0], request[1].split(b" ")[0]
    if mode == "101" or (mode != "v2" and version != b"1"):
        return b"101\n"
    if command == b"getversion":
        return b"0\n2 streaming\n" if mode == "v2" else b"-1\nOperation getversion not recognized!"
    return {
        "histograms": b"0\n" + HISTOGRAM * 2,
        "half": b"0\n" + DUMP[:200],
        "halfcode": b"0",
        "garbage": b"hello, world\n" + DUMP,
        "big": b"0\n" + b"x" * (99 << 20 if mode == "big" else 0) + b"\n" + DUMP,
    }.get(mode, b"0\n" + DUMP)


def read_request(client: socket.socket) -> list[bytes]:
    data = b""
    while True:
        words = data.split(b"\0")
        if (words[0] == b"1" and len(words) == 6) or (
            words[0] == b"2" and len(words) > 2 and len(data) == len(words[0] + words[1]) + 2 + int(words[1])
        ):
            return [words[0], *words[2:-1]] if words[0] == b"2" else words[:-1]
        chunk = client.recv(65536)
        if not chunk:
            return []
        data += chunk


def serve(mode: str, listener: socket.socket) -> None:
    waiting = []
    while True:
        client, _ = listener.accept()
        _, uid, gid = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if mode in ("stall", "burn"):
            waiting.append(client)
            continue
        if mode == "jdk8" and (uid, gid) != (os.geteuid(), os.getegid()):
            say("refused", uid, gid)
        elif mode == "reset":
            while len(client.recv(3, socket.MSG_PEEK)) < 3:
                time.sleep(0.001)
        elif mode != "close":
            request = read_request(client)
            say("asked", uid, gid, request)
            try:
                asked_version = request and request[1] == b"getversion"
                if request and (mode in ("trickle", "endless-version") or (mode == "endless" and not asked_version)):
                    client.sendall(b"0\n")
                    while True:
                        client.sendall(b"x" * (1 if mode == "trickle" else 1 << 16))
                        time.sleep(0.01 if mode == "trickle" else 0)
                elif request:
                    client.sendall(answer(mode, request))
            except (BrokenPipeError, ConnectionResetError):
                say("client left")
        client.close()


def listen(mode: str) -> socket.socket:
    path = f"/tmp/.java_pid{os.getpid()}"
    listener = socket.socket(socket.AF_UNIX)
    with contextlib.suppress(FileNotFoundError):  # of another one of this pid, that was killed
        os.unlink(path + ".tmp")
    listener.bind(path + ".tmp")
    listener.listen(0 if mode == "queue" else 5)
    os.chmod(path + ".tmp", 0o600)
    if mode == "queue":  # full before anyone can find it
        for _ in range(3):
            client = socket.socket(socket.AF_UNIX)
            client.setblocking(False)
            try:
                client.connect(path + ".tmp")
            except BlockingIOError:
                pass
            KEPT.append(client)
    os.rename(path + ".tmp", path)
    return listener


KEPT: list[socket.socket] = []


def burn() -> None:
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as comm:
        comm.write("hog-thread")
    while True:
        pass


def main() -> None:
    parent = os.getppid()
    library, mode, *user = sys.argv[1:]
    with open(library, "r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    for uid in map(int, user):  # here, since another user may not be able to run this Python at all
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    triggered = False  # no Event: its lock, taken by the main thread, would block the handler forever

    def on_quit(*_: object) -> None:
        nonlocal triggered
        name = f".attach_pid{os.getpid()}"
        for place in (".", "/tmp"):
            try:
                owner = os.stat(f"{place}/{name}").st_uid
            except FileNotFoundError:
                continue
            say("dump" if triggered else f"quit {owner}")
            triggered = mode != "never"
            return
        say("dump")

    signal.signal(signal.SIGQUIT, on_quit)
    threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()
    if mode == "burn":
        threading.Thread(target=burn, daemon=True).start()
    say("READY")
    while not triggered:
        time.sleep(0.005)
        if os.getppid() != parent:
            return
    listener = listen(mode)
    if mode == "queue":
        time.sleep(1e6)
    serve(mode, listener)
    mapped.close()


main()
