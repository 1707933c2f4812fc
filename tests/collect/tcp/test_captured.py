"""Connections of a process in another network namespace, from a capture: nobody enters it again."""

from __future__ import annotations

import os
import time

import pytest
import taping
from tcpstage import SOME, START

from opskit.collect.tcp.collect import Collector
from opskit.collect.tcp.facts import Request
from opskit.host import Host
from opskit.proc.fs import ProcFS
from opskit.proc.recorded.call_samples import CallSamples
from opskit.proc.recorded.tape import Mark
from opskit.recorded_host import RecordedHost

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")
GAP_S = 0.2


@pytest.fixture
def captured(spawn):
    """The PID, and a capture with two samples, over which `opskit tcp PID` has run."""
    process = spawn(START + SOME)
    if process.line != "ready":
        pytest.skip("no network namespace can be made here")
    host = Host(ProcFS())
    tape = taping.tape_of(host)
    samples = CallSamples(tape, host.fs, (f"/proc/{process.pid}/ns/net",))
    samples.sample(0)
    time.sleep(GAP_S)
    tape.marks.append(Mark(time.time(), time.monotonic()))
    samples.sample(1)
    samples.keep()
    return process.pid, tape, look(RecordedHost(tape, host.fs), process.pid)


def look(host, pid):
    return Collector(host, Request((pid,), GAP_S)).look()


def test_a_network_namespace_of_a_capture(captured):
    """Both samples, with the rates between them, the counters and the owners: as its maker saw them."""
    pid, tape, seen = captured
    found = look(RecordedHost(tape), pid)
    assert [repr(each) for each in found.connections] == [repr(each) for each in seen.connections]
    assert found.spaces == seen.spaces
    [space] = found.spaces
    assert (space.source, found.missing) == ("sock_diag", ())
    assert space.host.last["Tcp.OutSegs"] > space.host.first["Tcp.OutSegs"]
    assert len(found.connections) == 10
    moved = [each for each in found.connections if each.last.info.bytes_sent > each.first.info.bytes_sent]
    assert len(moved) >= 2
    assert all(len(each.samples) == 2 for each in moved)
