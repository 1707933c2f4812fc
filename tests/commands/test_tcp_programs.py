"""`opskit tcp` of real programs: JVMs at either end, hundreds of connections, watches, other users, and namespaces."""

from __future__ import annotations

import json
import re
import sys
import time

import jvms
import maven
import netlab
import pytest
from netcases import ANSWERS, READS, REQUESTS, VETH, WRITES, Case, group_of, look, staged, symmetric

from opskit.analysis.tcp import result as verdicts

SOCKETS = jvms.SOURCE.parent / "Sockets.java"


@pytest.fixture
def java():
    """Start tests/java/Sockets.java with these modes at a side of a line; all are killed at the end."""
    started = []

    def start(line, side, *modes, version=17):
        command = [jvms.java(version), "-Xmx64m", "-cp", maven.classes(SOCKETS, release=11), "Sockets", *modes]
        started.append(jvms.run([*netlab.entering(line.spaces[side]), *command]))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture(params=[11, 25])
def requests(request, java):
    """A JVM that asks another JVM on three connections, over a line of 10 ms: (line, client, server)."""
    with netlab.line(**symmetric(5)) as line:
        server = java(line, 1, "serve=7000,40", version=request.param)
        client = java(line, 0, f"ask={line.addresses[1][0]},7000,10,3", version=request.param)
        time.sleep(1)
        yield line, client, server


def test_jvms_that_talk(inprocess, requests):
    """The client waits for the server's application; with --ask its threads and their Java stacks own the connections."""
    line, client, server = requests
    result = look(client.pid, server.pid, ask=True)
    asks, serves = group_of(result, client.pid), group_of(result, server.pid)
    assert (asks.verdict, serves.verdict) == (verdicts.REQUESTS, verdicts.REQUESTS)
    assert tuple(asks.shares) == pytest.approx((40 / 60, 10 / 60, 10 / 60), abs=0.08)
    owners = {thread.name: thread for judged in asks.judged for thread in judged.connection.threads}
    waiting = {name for name in owners if re.fullmatch(r"asker-\d", name)}
    assert waiting, owners
    assert any("Sockets.question" in frame for name in waiting for frame in owners[name].frames)
    done = inprocess("tcp", client.pid, "-i", "1", "-f", "text")
    assert f"-> {line.addresses[1][0]}:7000 (3 connections): " in done.out, done.out


def test_nothing_is_sent_to_a_jvm_unasked(requests):
    """Without --ask no thread dump is taken: threads have no Java stack."""
    _, client, _ = requests
    result = look(client.pid, window_s=0.5)
    threads = [thread for judged in group_of(result, client.pid).judged for thread in judged.connection.threads]
    assert [thread for thread in threads if thread.frames] == []
    assert "Attach Listener" not in {
        (jvms.Path(f"/proc/{client.pid}/task/{tid}/comm")).read_text().strip()
        for tid in jvms.os.listdir(f"/proc/{client.pid}/task")
    }


def test_jvm_that_does_not_read(java):
    """A slow consumer is found with its thread and where it sleeps instead of reading."""
    with netlab.line(**VETH) as line:
        consumer = java(line, 1, "read=7000,2500,50")
        java(line, 0, f"write={line.addresses[1][0]},7000")
        time.sleep(1)
        result = look(consumer.pid, ask=True)
    group = group_of(result, consumer.pid)
    assert group.verdict == verdicts.READER_HERE
    (found,) = (one for one in result.findings if one.severity != "note")
    assert found.entity.kind in ("socket", "process")


def test_more_than_200_connections():
    """Among 300 connections the busy ones are sampled, the others are judged by what moved, and none is lost."""
    with netlab.line(**VETH) as line:
        line.there("serve", listen=7001, connections=300, think_ms=400)
        line.there("read", listen=7002, rate=50e3)
        crowd = line.here("ask", connect=7001, connections=300, think_ms=100)
        writer = line.here("write", connect=7002)
        time.sleep(1)
        result = look(crowd.pid, writer.pid)
    asks = group_of(result, crowd.pid)
    assert len(asks.judged) == 300
    assert asks.verdict == verdicts.REQUESTS
    assert group_of(result, writer.pid).verdict == verdicts.READER_THERE
    assert result.groups[0].pids == (writer.pid,)
    sampled = [judged for group in result.groups for judged in group.judged if judged.sampled]
    assert len(sampled) == 50


def test_namespace_of_its_own(opskit):
    """Without a PID the connections of our own network namespace are read; those of others are pointed to."""
    with staged(Case(symmetric(5), {**REQUESTS, "name": "orders"}, ANSWERS, set(), set())) as ends:
        time.sleep(0.5)
        inside = ends.line.run(0, sys.executable, "-m", "opskit", "tcp", "-i", "1", "-f", "json", cwd="/")
        outside = json.loads(opskit("tcp", "-i", "0.3", "-f", "json").out)
    (group,) = json.loads(inside.stdout)["groups"]
    assert (group["command"], group["verdict"]) == ("orders", verdicts.REQUESTS)
    assert "orders" not in {group["command"] for group in outside["groups"]}
    assert outside["elsewhere"]


def test_watch(inprocess):
    """Each look of a watch is one window; the last decides."""
    with staged(Case(symmetric(5), {**REQUESTS, "name": "orders"}, ANSWERS, set(), set())) as ends:
        done = inprocess("tcp", ends.here.pid, "-w", "-c", "3", "-i", "0.7", "-f", "text")
    assert done.code == 0, done.err
    assert len(re.findall(r"(?m)^orders -> \S+:7000 \(1 connection\): ", done.out)) == 3, done.out


def test_another_user(as_nobody):
    """An unprivileged user sees the connections of the namespace, not whose they are: said so."""
    with staged(Case(VETH, WRITES, {**READS, "rate": 50e3}, set(), set())) as ends:
        time.sleep(0.5)
        done = as_nobody("tcp", ends.there.pid, "-i", "0.5")
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1, 2)
    assert "root" in done.stdout + done.stderr
