"""The threads that sleep on connections: of the processes that are asked for, of JVMs with --ask."""

from __future__ import annotations

from opskit.collect.tcp.collect import Collector
from opskit.collect.tcp.facts import Request
from opskit.host import Host
from opskit.proc.fs import ProcFS

WAITS = """
import socket, sys, threading, time
listener = socket.create_server(("127.0.0.1", 0))
clients = [socket.create_connection(listener.getsockname()) for _ in range(2)]
servers = [listener.accept()[0] for _ in clients]
for client in clients:
    threading.Thread(target=client.recv, args=(1,), daemon=True).start()
time.sleep(0.2)
print(*(client.fileno() for client in clients), flush=True)
time.sleep(600)
"""


def look(**asked):
    return Collector(Host(ProcFS()), Request(window_s=0.2, **asked)).look()


def threads_of(facts, pid):
    """By the fd of the connection."""
    mine = [each for each in facts.connections if each.owner is not None and each.owner.pid == pid]
    return {each.owner.fd: each.threads for each in mine if each.threads}


def test_threads_of_a_process(spawn):
    """Each reader is on its own connection; the connections at the other ends have none."""
    process = spawn(WAITS)
    found = threads_of(look(pids=(process.pid,)), process.pid)
    assert sorted(found) == sorted(int(fd) for fd in process.line.split())
    assert {(thread.fd == fd, thread.call, thread.frames) for fd, threads in found.items() for thread in threads} == {
        (True, "recvfrom", ())
    }


def test_only_who_is_asked_for(spawn):
    """Without a PID the threads of no process are read; --ask is about JVMs."""
    process = spawn(WAITS)
    peer = (b"\x7f\0\0\0", 8, None)
    assert threads_of(look(peer=peer), process.pid) == {}
    assert threads_of(look(peer=peer, ask=True), process.pid) == {}


def test_java_stacks(workload):
    """With --ask, with or without the PID."""
    jvm = workload("socket=2")
    known = look(pids=(jvm.pid,), ask=True)
    port = next(each.last.peer_port for each in known.connections if not each.inbound)
    for facts in (known, look(peer=(b"\x7f\0\0\1", 32, port), ask=True)):
        names = {thread.name: thread for threads in threads_of(facts, jvm.pid).values() for thread in threads}
        assert {"socket-0", "socket-1"} <= names.keys()
        assert any(frame.startswith("Workload") for frame in names["socket-0"].frames)
