"""What measures, traces or changes a machine itself refuses a capture, whoever calls it."""

from __future__ import annotations

import pytest

from opskit.actions.drop_caches import check_may_drop
from opskit.actions.trace_lookups import check_may_trace
from opskit.collect.clock.server import ServerReader
from opskit.collect.cswitch import bench
from opskit.collect.irqs import jitter
from opskit.errors import NotPermitted, NotSupported
from opskit.jvm.attach.client import AttachClient
from opskit.proc.recorded.tape import Mark, Origin, Tape
from opskit.recorded_host import RecordedHost

ACTS = {
    "--jitter": lambda host: jitter.collect(host, jitter.Request(frozenset({0}), 0.1)),
    "--bench": lambda host: bench.collect(host, bench.Request(), lambda *_: None),
    "--drop": lambda host: check_may_drop(host, "dentries", in_container=True),
    "--culprit": check_may_trace,
    "--server": lambda host: ServerReader(host, ("127.0.0.1", 123)),
}


@pytest.fixture
def host():
    """A capture with two samples, made by root in its own PID namespace."""
    return RecordedHost(Tape(Origin(), (Mark(0.0, 0.0), Mark(1.0, 1.0))))


@pytest.mark.parametrize("act", ACTS)
def test_it_is_refused(host, act):
    """Before anything is done."""
    with pytest.raises(NotSupported, match=f"{act}: this is a capture; it needs the machine itself"):
        ACTS[act](host)


def test_no_process_of_a_capture_is_here(host):
    """Although it was made where its PIDs were its own."""
    assert host.is_own
    assert not host.is_here
    with pytest.raises(NotPermitted, match="is a capture, and its processes are not here"):
        host.prove_own(1)
    with pytest.raises(NotPermitted, match="this is a capture; 1 is not here"):
        AttachClient(host.fs, 1).execute("properties")
