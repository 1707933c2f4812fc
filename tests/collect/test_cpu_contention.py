"""What delays the work of a paused JVM: the threads of other processes, and a CPU quota."""

from __future__ import annotations

import pytest

from opskit.collect.cpu_contention import Contention, read_contention
from opskit.host import Host


@pytest.mark.parametrize(("contention", "stretch"), [
    (Contention(0, 2), 1),
    (Contention(0.4, 2), 1),
    (Contention(2, 2), 2),
    (Contention(12, 2), 7),
    (Contention(0, 4, 0.5), 8),
    (Contention(12, 2, 1.0), 7),
    (Contention(0, 2, 4.0), 1),
])  # fmt: skip
def test_how_much_longer_it_takes(contention, stretch):
    """The larger of both; a quota above the machine's CPUs changes nothing."""
    assert contention.stretch == stretch


def test_the_run_queues_are_looked_at_some_times(spawn):
    """Busy processes are counted, those of the JVM's own process are not."""
    host = Host.at(None, None)
    idle = spawn("import time\nprint()\ntime.sleep(300)")
    busy = spawn("print()\nwhile True: pass")
    others = read_contention(host, idle.pid)
    assert others.others >= 0.8
    assert read_contention(host, busy.pid).others <= others.others + 3
    assert others.cpus >= 1
