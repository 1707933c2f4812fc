"""`opskit tcp` of real programs: JVMs at either end, hundreds of connections, watches, other users, and namespaces."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import NamedTuple

import jvms
import maven
import netlab
import pytest
from netcases import ANSWERS, REQUESTS, VETH, Case, group_of, look, staged, symmetric

from opskit.analysis.tcp import result as verdicts

SOCKETS = jvms.SOURCE.parent / "Sockets.java"


class Jvms(NamedTuple):
    """A client that asks a server on three connections over a line of 10 ms, and a writer with a reader that does not keep up."""

    line: netlab.Line
    client: jvms.Workload
    server: jvms.Workload
    reader: jvms.Workload


@pytest.fixture(scope="module", params=[11, 25])
def running(request):
    """Programs of tests/java/Sockets.java."""
    started = []

    def start(line, side, *modes):
        java = [jvms.java(request.param), "-Xmx64m", "-cp", maven.classes(SOCKETS, release=11), "Sockets", *modes]
        started.append(jvms.run([*netlab.entering(line.spaces[side]), *java]))
        return started[-1]

    try:
        with netlab.line(**symmetric(5)) as line:
            there = line.addresses[1][0]
            server, reader = start(line, 1, "serve=7000,40"), start(line, 1, "read=7001,2500,50")
            client = start(line, 0, f"ask={there},7000,10,3", f"write={there},7001")
            time.sleep(1)
            yield Jvms(line, client, server, reader)
    finally:
        for each in started:
            each.stop()


def test_nothing_is_sent_to_a_jvm_unasked(running):
    """Without --ask no thread dump is taken: threads have no Java stack, and no attach listener was started."""
    result = look(running.client.pid, window_s=0.3)
    assert [thread for thread in threads_of(result) if thread.frames] == []
    tasks = Path(f"/proc/{running.client.pid}/task")
    assert "Attach Listener" not in {(task / "comm").read_text().strip() for task in tasks.iterdir()}


def test_jvms_that_talk(inprocess, running):
    """With --ask the threads and Java stacks of a JVM own its connections; its client waits, and its slow reader is found."""
    result = look(running.client.pid, running.server.pid, running.reader.pid, ask=True, window_s=1.2)
    (asks,) = (one for one in result.groups if running.client.pid in one.pids and one.port == 7000)
    serves, reads = group_of(result, running.server.pid), group_of(result, running.reader.pid)
    (found,) = (one for one in result.findings if one.severity != "note")
    assert (asks.verdict, serves.verdict) == (verdicts.REQUESTS, verdicts.REQUESTS)
    # Of 60 ms 40, 10 and 10; a thread without CPU takes longer.
    assert asks.shares.peer == max(asks.shares) == pytest.approx(40 / 60, abs=0.25)
    for _ in range(10):  # a dump may come where all three have their answers
        frames = {thread.name: " ".join(thread.frames) for thread in threads_of(result)}
        askers = [name for name in frames if re.fullmatch(r"asker-\d", name)]
        if any("Sockets.question" in frames[name] for name in askers):
            break
        result = look(running.client.pid, ask=True, window_s=0.2)
    assert any("Sockets.question" in frames[name] for name in askers), frames
    assert reads.verdict == verdicts.READER_HERE
    assert (found.code, found.entity.inside.id) == ("tcp-application-does-not-read", running.reader.pid)
    said = inprocess("tcp", running.client.pid, "-i", "0.7", "-f", "text").out
    assert f"-> {running.line.addresses[1][0]}:7000 (3 connections): the peer's application takes " in said


def threads_of(result):
    """The threads of all connections."""
    return [thread for group in result.groups for judged in group.judged for thread in judged.connection.threads]


def test_more_than_200_connections():
    """Among 300 connections the busy ones are sampled, the others are judged by what moved, and none is lost."""
    with netlab.line(**VETH) as line:
        line.there("serve", listen=7001, connections=300, think_ms=400)
        line.there("read", listen=7002, rate=50e3)
        crowd = line.here("ask", connect=7001, connections=300, think_ms=100)
        writer = line.here("write", connect=7002)
        time.sleep(0.7)
        result = look(crowd.pid, writer.pid, window_s=1.5)
    asks = group_of(result, crowd.pid)
    assert len(asks.judged) == 300
    assert asks.verdict == verdicts.REQUESTS
    assert group_of(result, writer.pid).verdict == verdicts.READER_THERE
    assert result.groups[0].pids == (writer.pid,)
    sampled = [judged for group in result.groups for judged in group.judged if judged.sampled]
    assert len(sampled) == 50


@pytest.fixture(scope="module")
def orders():
    """A client with this name that asks a server 10 ms away."""
    with staged(Case(symmetric(5), {**REQUESTS, "name": "orders"}, ANSWERS, set(), set())) as ends:
        time.sleep(0.5)
        yield ends


def test_namespace_of_its_own(inprocess, orders):
    """Without a PID the connections of our own network namespace are read; those of others are pointed to."""
    inside = orders.line.run(0, sys.executable, "-m", "opskit", "tcp", "-i", "0.7", "-f", "json", cwd="/")
    outside = json.loads(inprocess("tcp", "-i", "0.3", "-f", "json").out)
    (group,) = json.loads(inside.stdout)["groups"]
    assert (group["command"], group["verdict"]) == ("orders", verdicts.REQUESTS)
    assert "orders" not in {group["command"] for group in outside["groups"]}
    assert outside["elsewhere"]


def test_watch(inprocess, orders):
    """Each look of a watch is one window; the last decides."""
    done = inprocess("tcp", orders.here.pid, "-w", "-c", "3", "-i", "0.4", "-f", "text")
    assert done.code == 0, done.err
    assert len(re.findall(r"(?m)^orders -> \S+:7000 \(1 connection\): ", done.out)) == 3, done.out


def test_another_user(as_nobody, orders):
    """An unprivileged user sees the connections of the namespace, not whose they are: said so."""
    done = as_nobody("tcp", orders.there.pid, "-i", "0.3")
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1, 2)
    assert "root" in done.stdout + done.stderr
