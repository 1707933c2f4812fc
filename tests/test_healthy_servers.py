"""Healthy busy servers under load get no finding: Tomcat with H2, Jetty with virtual threads, Kafka."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import NamedTuple

import netlab
import pytest
import servers

CROWDED = {"runnable-above-cpus", "cpu-starved"}  # findings about the machine that the test runs on
BY_OTHERS = {
    ("clock-unsynchronised", "note"),
    ("memory-pressure", "note"),
    ("tcp-drops-counted", "note"),
}  # what other tests did to the machine
# From the start of the server on. On a crowded machine the pause is expected to be long.
GROWTH = (
    ("jmap-diff", "PID", "-i", "0.6", "--yes"),
    ("jmap-diff", "PID", "-c", "3", "-i", "0.6", "--yes"),
    ("jmap-diff", "PID", "-c", "4", "--live", "-i", "0.6", "--yes"),
)
LOOKS = (
    ("jpmp", "PID", "5", "0.3"),
    ("jpmp", "PID", "5", "0.3", "--locks"),
    ("hsperf-check", "PID"),
    ("safepoints", "PID", "-c", "3", "-i", "0.4"),
    ("jvms", "PID"),
    ("jmx", "PID"),
    ("clock", "PID"),
    ("mem", "PID"),
    ("mem", "PID", "-w", "-c", "7", "-i", "0.25"),
    ("tcp", "PID", "-w", "-c", "3", "-i", "0.4"),
    ("cswitch", "PID", "-w", "-c", "3", "-i", "0.4"),
    ("fds", "PID", "-w", "-c", "7", "-i", "0.25"),
    ("fds", "PID", "--deleted"),
    ("io", "PID", "-i", "0.7"),
)
_WARM_S = 4.0


class Server(NamedTuple):
    """A server that has had its load for a while, and what jmap-diff said of its growth meanwhile."""

    name: str
    pid: int
    growth: dict


@pytest.fixture(scope="module", params=["tomcat", "jetty", "kafka"])
def server(request, inprocess):
    """Its caches are filled, its code is compiled. The module's tests of a server share it: they name no parameter but `words`."""
    with netlab.own_network() as wrapper, getattr(servers, request.param)("-Xmx256m", wrapper=wrapper) as workload:
        ready = time.monotonic() + _WARM_S
        growth = {words: inprocess(*_with_pid(words, workload.pid)) for words in GROWTH}
        time.sleep(max(0.0, ready - time.monotonic()))
        yield Server(request.param, workload.pid, growth)


@pytest.mark.parametrize("words", [*GROWTH, *LOOKS], ids=" ".join)
def test_no_finding(inprocess, server, words):
    """Exit code 0, no finding; a machine that is itself crowded by other tests may be named."""
    before = _stalled_s()
    begun = time.monotonic()
    done = server.growth.get(words) or inprocess(*_with_pid(words, server.pid))
    crowded = _stalled_s() - before > 0.4 * (time.monotonic() - begun)
    assert done.code in (0, 1), done.err
    document = json.loads(done.out)
    found = document["findings"]
    if words in GROWTH:
        assert (document["suspects"], document["forecasts"]) == ([], [])
    mine = [one for one in found if (one["code"], one["severity"]) not in BY_OTHERS]
    assert [one for one in mine if not (crowded and one["code"] in CROWDED)] == []
    assert found or done.code == 0, done.err
    assert os.path.exists(f"/proc/{server.pid}")


def test_no_finding_about_virtual_threads(inprocess, server):
    """They wait for requests, and for other servers."""
    if server.name != "jetty":
        pytest.skip("has no virtual threads")
    test_no_finding(inprocess, server, ("jpmp", "PID", "2", "0.3", "--virtual"))


def _with_pid(words, pid):
    return (*(pid if word == "PID" else word for word in words), "-f", "json")


def _stalled_s() -> float:
    """How long some task of the machine has waited for a CPU."""
    try:
        return int(Path("/proc/pressure/cpu").read_text().split("total=")[1].split()[0]) / 1e6
    except OSError:
        return 0.0
