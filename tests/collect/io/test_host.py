"""The machine over a window: processes that end, and PIDs that are another process's by then."""

from __future__ import annotations

import iotrees
import pytest

from opskit.collect.io.facts import Request
from opskit.collect.io.host import HostReader
from opskit.host import Host
from opskit.proc.fs import ProcFS


@pytest.mark.parametrize("starts", [None, 99], ids=["ended", "reused"])
def test_a_process_that_ends_at_the_end_of_the_window(tree, monkeypatch, starts):
    """Its name is that of its counters, never that of a process which has its PID now."""
    root = tree({**iotrees.thread(7, 7, "R", "0"), "proc/7/io": iotrees.io(0), "proc/uptime": "100.0 100.0\n"})
    host = Host(ProcFS(f"{root}/proc", str(root)))
    monkeypatch.setattr(host, "prove_moving", lambda _: None)
    reader = HostReader(host, Request(None, 0.01))
    reader.begin()
    tree({"proc/7/io": iotrees.io(5000)})
    read = host.process

    def late(pid):
        found = read(pid)
        return found._replace(command="other", uid=5, user="other", start_ticks=starts)

    monkeypatch.setattr(host, "process", late)
    (found,) = reader.end().processes
    assert found.rates.read_bytes > 0
    assert (found.process.command, found.process.uid, found.process.has_ended) == ("a) S (b)", None, True)
