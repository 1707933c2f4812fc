"""Healthy busy servers under load get no finding: Tomcat with H2, Jetty with virtual threads, Kafka."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import netlab
import pytest
import servers

CROWDED = {"runnable-above-cpus", "cpu-starved"}  # findings about the machine that the test runs on
BY_OTHERS = {
    ("clock-unsynchronised", "note"),
    ("memory-pressure", "note"),
    ("tcp-drops-counted", "note"),
}  # what other tests did to the machine
LOOKS = (
    ("jmap-diff", "PID", "-c", "3", "-i", "0.6", "--yes"),  # on a crowded machine the pause is expected to be long
    ("jmap-diff", "PID", "--live", "-c", "3", "-i", "0.6", "--yes"),
    ("jpmp", "PID", "5", "0.3"),
    ("jpmp", "PID", "5", "0.3", "--locks"),
    ("hsperf-check", "PID"),
    ("safepoints", "PID", "-c", "3", "-i", "0.6"),
    ("jvms", "PID"),
    ("clock", "PID"),
    ("mem", "PID"),
    ("mem", "PID", "-w", "-c", "7", "-i", "0.4"),
    ("tcp", "PID", "-w", "-c", "3", "-i", "0.7"),
    ("cswitch", "PID", "-w", "-c", "3", "-i", "0.7"),
    ("fds", "PID", "-w", "-c", "7", "-i", "0.4"),
    ("fds", "PID", "--deleted"),
    ("io", "PID", "-i", "0.7"),
)


@pytest.fixture(scope="module", params=["tomcat", "jetty", "kafka"])
def server(request):
    """A server that has had its load for a while: its caches are filled, its code is compiled."""
    with netlab.own_network() as wrapper, getattr(servers, request.param)("-Xmx256m", wrapper=wrapper) as workload:
        time.sleep(4)
        yield workload


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_no_finding(inprocess, server, words):
    """Exit code 0, no finding; a machine that is itself crowded by other tests may be named."""
    before = _stalled_s()
    begun = time.monotonic()
    done = inprocess(*(server.pid if word == "PID" else word for word in words), "-f", "json")
    crowded = _stalled_s() - before > 0.4 * (time.monotonic() - begun)
    assert done.code in (0, 1), done.err
    found = json.loads(done.out)["findings"]
    mine = [one for one in found if (one["code"], one["severity"]) not in BY_OTHERS]
    assert [one for one in mine if not (crowded and one["code"] in CROWDED)] == []
    assert found or done.code == 0, done.err
    assert os.path.exists(f"/proc/{server.pid}")


@pytest.mark.parametrize("server", ["jetty"], indirect=True)
def test_no_finding_about_virtual_threads(inprocess, server):
    """Its virtual threads wait for requests, and for other servers."""
    test_no_finding(inprocess, server, ("jpmp", "PID", "2", "0.3", "--virtual"))


def _stalled_s() -> float:
    """How long some task of the machine has waited for a CPU."""
    try:
        return int(Path("/proc/pressure/cpu").read_text().split("total=")[1].split()[0]) / 1e6
    except OSError:
        return 0.0
