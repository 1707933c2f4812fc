"""`opskit jpmp` on real pools: exhausted ones, those that wait for themselves, and busy ones without a finding."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
from pathlib import Path

import jvms
import maven
import pytest
from nextsteps import try_next
from schemafiles import keeps_to_schema
from servers import TOMCAT, kafka, tomcat
from terminal import on_terminal

ROOT = Path(__file__).resolve().parents[2]
SOURCE = jvms.SOURCE.parent / "Pools.java"
TIMEOUT = ["--timeout", "120"]  # the machine may be loaded
SOON = ("-c", "3", "-i", "0.2")


@contextlib.contextmanager
def pools(*modes, version=17):
    """Run tests/java/Pools.java with HikariCP and H2."""
    path = maven.jars(*TOMCAT)
    running = jvms.run([jvms.java(version), "-Xmx256m", "-cp", f"{maven.classes(SOURCE)}:{path}", "Pools", *modes])
    try:
        yield running
    finally:
        running.stop()


@contextlib.contextmanager
def silent(address):
    """A server that accepts connections and never answers; its port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as server:
        server.bind((address, 0))
        server.listen(300)
        kept = []

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    kept.append(server.accept())

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        for each, _ in kept:
            each.close()


def said(done):
    """The findings by code: (severity, summary)."""
    return {one["code"]: (one["severity"], one["summary"]) for one in json.loads(done.out)["findings"]}


def test_an_exhausted_connection_pool_is_named(inprocess, tmp_path):
    """200 of 250 request threads wait for a connection, 50 for a Redis: with and without SO_TIMEOUT, over IPv4 and IPv6."""
    with contextlib.ExitStack() as stack:
        port, port6 = (stack.enter_context(silent(address)) for address in ("127.0.0.1", "::1"))
        jvm = stack.enter_context(
            pools("source=hikari", f"server=250:50:{port}", f"redis=127.0.0.1@{port}@900000:__1@{port6}@0")
        )
        sentence = (
            "http-nio-8080-exec (250 threads): 200 wait for a connection in HikariPool.getConnection (from OrderDao.load); "
            f"50 for an answer of 127.0.0.1:{port} in SocketInputStream.read (from JedisClient.get)"
        )
        folder = tmp_path / "raw"
        done = inprocess("jpmp", jvm.pid, "-c", 4, "-i", 0.2, "-f", "json", "--save", folder, *TIMEOUT)
        assert done.code == 1
        document = json.loads(done.out)
        keeps_to_schema(document, "jpmp")
        assert document["verdict"][:2] == ["what the threads of each pool wait for (median of 4 dumps):", sentence]
        request, readers = document["pools"][:2]
        assert (request["name"], request["threads"], request["idle"]) == ("http-nio-8080-exec", 250, 0)
        assert [each["still"] for each in request["waits"]] == [200, 50]
        assert sorted(each["peer"] for each in readers["waits"]) == [f"127.0.0.1:{port}", f"[::1]:{port6}"]
        assert said(done)["connections-exhausted"] == (
            "warning",
            "pool HikariPool is exhausted: 200 threads wait for a connection (from OrderDao.load); "
            "no thread is in a call of one: they are held during something else, or were not given back",
        )
        free = "pool http-nio-8080-exec is exhausted: none of its 250 threads is free; 200 wait for a connection"
        assert said(done)["pool-exhausted"] == ("warning", free)
        try_next(document["findings"], "connections-exhausted")
        try_next(document["findings"], "pool-exhausted")
        for format_ in ("table", "markdown"):
            out = inprocess("jpmp", jvm.pid, *SOON, "-f", format_, *TIMEOUT).out.replace("\\", "")
            assert out.index(sentence) < out.index("warning connections-exhausted")
        # Off a terminal stdout is the lines of the script, and the sentences go to stderr.
        text = inprocess("jpmp", jvm.pid, *SOON, *TIMEOUT)
        assert (sentence in text.err, sentence in text.out, text.code) == (True, False, 1)
        locks = inprocess("jpmp", jvm.pid, "--locks", "-c", 1, *TIMEOUT).out
        assert locks.index("no thread waits for a lock") < locks.index("200 wait for a connection")
        code, screen = on_terminal("jpmp", str(jvm.pid), *SOON, *TIMEOUT, env={"NO_COLOR": "1"})
        shown = re.sub(r"\x1b\[[0-9;]*[A-Za-z]|[^\n]*\r(?!\n)", "", screen).splitlines()
        assert code == 1
        assert sum(-(-len(line) // 80) or 1 for line in shown) <= 24, shown
    # A file has no peers, and one dump shows no progress.
    one = inprocess("jpmp", sorted(folder.iterdir())[0], "-f", "json")
    assert "50 for an answer in SocketInputStream.read (from JedisClient.get)" in json.loads(one.out)["verdict"][1]
    assert [*said(one)] == ["connections-exhausted"]
    assert "in the only dump" in json.loads(one.out)["findings"][0]["evidence"]


def test_pools_that_stand_still_are_named(inprocess):
    """One that waits for itself: an error. One without a free worker: a warning. Recursion is one line."""
    with pools("selfwait=future", "bounded", "recursion") as jvm:
        done = inprocess("jpmp", jvm.pid, "-c", 4, "-i", 0.2, "-f", "json", *TIMEOUT)
        found = said(done)
        assert found["pool-waits-for-itself"] == (
            "error",
            "pool report waits for itself: all 4 threads wait in FutureTask.get (from Reports.get) for tasks that only this pool can run",
        )
        free = "pool mail is exhausted: none of its 4 threads is free; 4 wait for a permit"
        assert found["pool-exhausted"] == ("warning", free)
        table = inprocess("jpmp", jvm.pid, *SOON, "-f", "table", "-n", 3, *TIMEOUT).out
        assert "Swallow.depth x183\n" in table
        assert "(2 frames above x60)" in table or "(2 frames above x61)" in table
        # By samples alone the largest group comes last; -n does not hide it.
        assert "Reports.get" in table or "Mailer.send" in table


@pytest.mark.parametrize(
    ("mode", "version", "severity", "place"),
    [("join", 25, "error", "CompletableFuture.join"), ("forkjoin", 21, "warning", "CountDownLatch.await")],
)
def test_a_pool_waits_for_itself_in_other_ways(inprocess, mode, version, severity, place):
    """A CompletableFuture of its own tasks, and a latch in a ForkJoinPool, which others could count down."""
    with pools(f"selfwait={mode}", version=version) as jvm:
        done = inprocess("jpmp", jvm.pid, "-c", 3, "-i", 0.2, "-f", "json", *TIMEOUT)
        assert (said(done)["pool-waits-for-itself"][0], done.code) == (severity, 1)
        assert f"all 4 threads wait in {place} " in said(done)["pool-waits-for-itself"][1]


def test_busy_and_idle_pools_have_no_finding(inprocess):
    """Fan-out, parallel streams, consumers, a timer, and connections in demand that change hands."""
    with pools("idle", "busy", "source=hikari", "moving=12:5") as jvm:
        done = inprocess("jpmp", jvm.pid, "-c", 8, "-i", 0.2, "-f", "json", *TIMEOUT)
        document = json.loads(done.out)
        # The test's own machine may be short of CPUs.
        assert [finding["code"] for finding in document["findings"] if finding["code"] != "jvm-cpu-wait"] == []
        waiting = {pool["name"]: pool["waits"] for pool in document["pools"]}
        assert not any(waiting[name] for name in ("idle", "tick", "timer", "consumer", "main"))


@pytest.mark.parametrize("server", [tomcat, kafka])
def test_busy_servers_have_no_finding(inprocess, server):
    """Real ones under load."""
    with server() as jvm:
        for options in ((), ("--locks",)):
            done = inprocess("jpmp", jvm.pid, "-c", 5, "-i", 0.2, "-f", "json", *options, *TIMEOUT)
            findings = json.loads(done.out)["findings"]
            # Beside other tests it is true that other processes use the CPUs.
            assert [each for each in findings if "other processes use" not in each["summary"]] == []
            assert done.code == (1 if findings else 0)
