"""`opskit tcp`: real connections of a process in every format, listening sockets, peers, users, watches, copies, bad words."""

from __future__ import annotations

import csv
import io
import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack

import promtext
import pytest
from answers import answer
from shells import NOBODY
from terminal import on_terminal

TALK = """
import select, socket, sys, threading, time
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
listener = socket.create_server((sys.argv[1], 0), family=family, backlog=64)
pairs = []
for _ in range(int(sys.argv[2])):
    client = socket.create_connection(listener.getsockname()[:2])
    pairs.append((client, listener.accept()[0]))
print(listener.getsockname()[1], flush=True)
while True:
    for client, server in pairs:  # one thread has both ends: a request, and its answer after 20 ms
        client.send(b"q" * 100)
        server.recv(4096)
        time.sleep(0.02)
        server.send(b"a" * 1000)
        client.recv(4096)
"""
HOLD = """
import socket, sys, time
listener = socket.create_server(("127.0.0.1", 0), backlog=int(sys.argv[1]))
clients = [socket.socket() for _ in range(int(sys.argv[2]))]
for client in clients:
    client.setblocking(False)
    client.connect_ex(listener.getsockname())
print(listener.getsockname()[1], flush=True)
time.sleep(600)
"""
SLOW = """
import socket, threading, time
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server, _ = listener.accept()
threading.Thread(target=client.sendall, args=(bytes(1 << 28),), daemon=True).start()
print(listener.getsockname()[1], flush=True)
while server.recv(4096):
    time.sleep(0.05)
"""
BRIEF = ("-i", "0.5")


def found(run, *arguments):
    """The JSON object, valid by its schema."""
    return answer(run, "tcp", *arguments)


@pytest.fixture
def talker(spawn):
    """A process with three connections to itself; `.line` is the port of the service."""
    return spawn(TALK, "127.0.0.1", 3)


def test_connections_of_a_process(inprocess, talker):
    """Both ends, grouped by the port of the service, with the fd and the process of each."""
    document = found(inprocess, talker.pid, *BRIEF)
    groups = {group["inbound"]: group for group in document["groups"]}
    assert groups.keys() == {True, False}
    for inbound, group in groups.items():
        assert (group["host"], group["port"], group["connections"]) == ("127.0.0.1", int(talker.line), 3)
        assert group["pids"] == [talker.pid]
        assert group["command"].startswith("python")
        assert group["verdict"] == "request-response"
        assert group["sent_bytes_per_s"] > 100
        assert sum(group["shares"].values()) == pytest.approx(1, abs=0.001)
        assert group["shares"]["here" if inbound else "peer"] > 0.2  # of the 60 ms of a round the answer takes 20
        for connection in group["judged"]:
            assert connection["owner"]["pid"] == talker.pid
            target = os.readlink(f"/proc/{talker.pid}/fd/{connection['owner']['fd']}")
            assert target == f"socket:[{connection['inode']}]"
            port = connection["local" if inbound else "peer"].rpartition(":")[2]
            assert (connection["state"], port) == ("ESTAB", talker.line)
            assert connection["sampled"]
    assert document["spaces"][0]["source"] == "sock_diag"
    assert not document["missing"]
    assert document["target"] == {"pid": str(talker.pid), "peer": None}


def test_every_format(inprocess, talker):
    """The same groups as text, table, Markdown, CSV and metrics."""
    done = inprocess("tcp", talker.pid, *BRIEF)
    assert (done.code, done.err) == (0, "")
    lines = [line for line in done.out.splitlines() if talker.line in line and "request-response" in line]
    assert len(lines) == 2
    assert all(" % of the time (request/response: peer's application " in line for line in lines)
    for form in ("table", "markdown"):
        out = inprocess("tcp", talker.pid, *BRIEF, "-f", form).out
        assert out.count("(3 connections)") >= 2, form
    rows = [*csv.DictReader(io.StringIO(inprocess("tcp", talker.pid, *BRIEF, "-f", "csv").out))]
    assert [(row["port"], row["connections"]) for row in rows] == [(talker.line, "3")] * 2
    samples = promtext.parse(inprocess("tcp", talker.pid, *BRIEF, "-f", "prometheus").out)
    assert promtext.value(samples, "opskit_tcp_group_connections", direction="in", port=talker.line) == 3


def test_every_connection(inprocess, talker):
    """-v has a row for each, in text and in the CSV file."""
    out = inprocess("tcp", talker.pid, *BRIEF, "-v").out
    assert sum(line.split()[:1] == [str(talker.pid)] and "ESTAB" in line for line in out.splitlines()) == 6
    rows = [*csv.DictReader(io.StringIO(inprocess("tcp", talker.pid, *BRIEF, "-v", "-f", "csv").out))]
    assert len(rows) == 6
    assert {row["pid"] for row in rows} == {str(talker.pid)}


@pytest.mark.parametrize("peer", ["127.0.0.1:{}", "127.0.0.0/8:{}", "0.0.0.0/0:{}", "[::ffff:127.0.0.1]:{}"])
def test_peers(inprocess, talker, peer):
    """--peer with a port: the connections to it, of any process."""
    document = found(inprocess, "--peer", peer.format(talker.line), *BRIEF)
    assert [(group["inbound"], group["connections"]) for group in document["groups"]] == [(False, 3)]


def test_ipv6(inprocess, spawn):
    """Addresses in brackets where a port follows."""
    talker = spawn(TALK, "::1", 1)
    document = found(inprocess, "--peer", f"[::1]:{talker.line}", *BRIEF)
    [group] = document["groups"]
    assert (group["host"], group["connections"]) == ("::1", 1)
    assert f"[::1]:{talker.line}" in group["sentence"]


def test_no_connection(inprocess, spawn):
    """It says so, and what else there is: never an empty table."""
    holder = spawn(HOLD, 8, 0)
    done = inprocess("tcp", holder.pid, *BRIEF)
    assert done.code == 0
    assert f"No TCP connection of {holder.pid}" in done.out
    assert "1 listening socket (--listen)" in done.out


def test_a_slow_reader_of_the_loopback_device(inprocess, spawn):
    """Its segments have 64 KiB: the queue falls to nothing again and again."""
    groups = {group["inbound"]: group for group in found(inprocess, spawn(SLOW).pid, "-i", "1")["groups"]}
    assert groups[True]["verdict"] == "application-does-not-read"


def test_a_full_listen_queue(inprocess, spawn):
    """Six clients of a backlog of 4: five wait for accept(2), the sixth is dropped again and again."""
    holder = spawn(HOLD, 4, 6)
    document = found(inprocess, holder.pid, "--listen", "-i", "1500ms")
    [listener] = document["listeners"]
    assert (listener["port"], listener["backlog"], listener["waiting"], listener["most_waiting"]) == (
        int(holder.line),
        4,
        5,
        5,
    )
    assert listener["owner"]["pid"] == holder.pid
    assert listener["dropped_since_start"] >= 1
    text = inprocess("tcp", holder.pid, "--listen", *BRIEF)
    assert (
        f"The queue of 127.0.0.1:{holder.line} is full: 5 connections wait for accept(2), its backlog is 4" in text.out
    )
    assert text.code == 1


def test_listening_sockets_that_are_in_order(inprocess, spawn):
    """No queue is full: exit code 0."""
    holder = spawn(HOLD, 8, 3)
    done = inprocess("tcp", holder.pid, "--listen", *BRIEF)
    assert done.code == 0
    assert f"at most 3 of 8 wait for accept(2) on 127.0.0.1:{holder.line}" in done.out


def test_a_watch(inprocess, talker):
    """A block for each sample; JSON is the last one."""
    done = inprocess("tcp", talker.pid, "-w", "-i", "0.5", "-c", "3")
    assert done.code == 0
    assert done.out.count("PROCESS ") == 3
    assert len(found(inprocess, talker.pid, "-w", "-i", "0.3", "-c", "2")["groups"]) == 2


def test_a_watch_ends_with_its_process(spawn):
    """With what it has seen."""
    talker = spawn(TALK, "127.0.0.1", 1)
    words = [sys.executable, "-m", "opskit", "tcp", str(talker.pid), "-w", "-i", "0.4", "-c", "500"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/") as watch:
        assert "127.0.0.1" in watch.stdout.readline()
        talker.kill()
        talker.wait()
        _, err = watch.communicate(timeout=60)
    assert f"no process {talker.pid}" in err
    assert watch.returncode == 0


def test_on_a_terminal(talker):
    """The verdict and the groups are seen without scrolling."""
    code, out = on_terminal("tcp", str(talker.pid), *BRIEF, rows=24, columns=80)[:2]
    assert code == 0
    assert len(out.splitlines()) <= 24
    assert "(3 connections)" in out


def test_a_user(inprocess, talker):
    """-u shows the sockets of a user."""
    assert found(inprocess, talker.pid, "-u", str(os.getuid()), *BRIEF)["groups"]
    document = found(inprocess, talker.pid, "-u", str(NOBODY), *BRIEF)
    assert document["groups"] == []


def test_without_rights(as_nobody, talker):
    """Connections and verdicts are those of root; whose they are is not known, and that is said."""
    done = as_nobody("tcp", "--peer", f"127.0.0.1:{talker.line}", *BRIEF, "-f", "json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    [group] = document["groups"]
    assert (group["connections"], group["command"], group["verdict"]) == (3, None, "request-response")
    assert any("root" in line or "CAP_" in line for line in document["missing"] + document["notes"])


BAD = {
    "no PID of a process": (("999999999",), "no process 999999999"),
    "no name": (("nosuchprogram",), "tcp: 'nosuchprogram' is not a PID"),
    "no address": (
        ("--peer", "db.example.com"),
        "--peer db.example.com: 'db.example.com' is not an IP address or network",
    ),
    "no port": (("--peer", "10.0.0.7:http"), "--peer 10.0.0.7:http: 'http' is not a port"),
    "an empty peer": (("--peer", ""), "--peer : the address is missing"),
    "a peer that listens": (("--listen", "--peer", "10.0.0.7"), "--listen and --peer exclude each other"),
    "a dump of listening sockets": (("--listen", "--ask"), "--listen and --ask exclude each other"),
    "no user": (("-u", "nosuchuser"), "-u nosuchuser: no such user"),
    "a count without a watch": (("-c", "3"), "goes with -w/--watch"),
    "no duration": (("-i", "soon"), "'soon' is not a duration"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_words(inprocess, name):
    """One line, exit code 2, nothing on stdout."""
    words, said = BAD[name]
    done = inprocess("tcp", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    if name not in ("no duration",):  # click shows the usage first
        assert len(done.err.splitlines()) == 1, done.err


@pytest.mark.parametrize("options", [("-w",), ("-i", "1s")])
def test_a_copy_has_no_rates(inprocess, tree, options):
    """-w and -i need a machine that runs."""
    root = tree({"proc/1/stat": "", "proc/net/tcp": "", "proc/uptime": "1.0 1.0\n"})
    done = inprocess("tcp", "--root", root, *options)
    assert done.code == 2
    assert len(done.err.splitlines()) == 1


HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def test_a_copy(inprocess, tree):
    """/proc/net/tcp of another machine: who is connected and what waits, without verdicts."""
    rows = (
        "   0: 00000000:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000  1001        0 499000 1 0 100 0 0 10 0\n"
        "   1: 0200000A:A028 0700000A:1538 01 00000000:00002710 00:00000000 00000000  1001        0 541000 1 0 20 4 30 10 -1\n"
    )
    root = tree({
        "proc/uptime": "100.0 100.0\n", "proc/1/net/tcp": HEAD + rows, "proc/net/tcp": HEAD + rows, "proc/1/comm": "orders\n",
        "proc/1/stat": "1 (orders) S 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 8675309 0 0\n",
    })  # fmt: skip
    document = found(inprocess, "--root", root)
    assert document["is_still"] is True
    [group] = document["groups"]
    assert (group["host"], group["port"], group["receive_queue_bytes"]) == ("10.0.0.7", 5432, 10000)
    assert group["loss"] is None
    [listener] = document["listeners"]
    assert (listener["local"], listener["waiting"]) == ("0.0.0.0:8080", 3)


def test_where_another_process_listens_and_none_is_asked(inprocess, talker):
    """Without a PID: all processes of the network namespace."""
    document = found(inprocess, *BRIEF)
    assert any(group["port"] == int(talker.line) for group in document["groups"])
    assert any(listener["port"] == int(talker.line) for listener in document["listeners"])


def test_a_port_that_nobody_owns_any_more(inprocess):
    """A connection that its process has closed has no owner: it is shown without a name."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = listener.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        stack.enter_context(listener.accept()[0])
        client.send(b"x" * 10)
        client.close()  # FIN-WAIT-2: the other side keeps its end open
        document = found(inprocess, "--peer", f"127.0.0.1:{port}", *BRIEF)
    assert all(connection["owner"] is None for group in document["groups"] for connection in group["judged"])
