"""Storage in the quick form: limits of cgroups for real, pressure by built records."""

from __future__ import annotations

import os
import subprocess
import time

import iofacts
import pytest
from cgroups import new_cgroup
from nextsteps import try_next

from opskit.analysis.finding import Entity
from opskit.analysis.io.quick import is_pressed, judge_quick, looked_at
from opskit.checks.io import check
from opskit.checks.look import Look
from opskit.collect.io.facts import IoLimit
from opskit.collect.io.quick import QuickIo, Waiter
from opskit.host import Host
from opskit.proc.files.pressure import Averages
from opskit.proc.process import Process

MIB = 1 << 20
LASTING = Averages(0.5, 0.4, 0.1)


def waiter(pid, *cgroups, where="folio_wait_bit_common"):
    return Waiter(Process(pid, f"p{pid}", start_ticks=7), frozenset(cgroups), (where,))


def codes(quick):
    return [(finding.code, finding.severity) for finding in judge_quick(quick)]


def pressed(*waiters, some=0.8, averages=LASTING, **given):
    return QuickIo(
        iofacts.facts(devices=(iofacts.device(busy=0.99, queue=3.0),), host_full=0.2)._replace(host_some=some),
        (),
        {},
        waiters,
        averages,
        **given,
    )


def test_pressure_is_a_finding_where_several_cgroups_wait():
    """A backup waits for the disk that it keeps busy; short bursts and waits for locks are none."""
    assert codes(pressed(waiter(1, "/backup"))) == []
    assert codes(pressed(*(waiter(pid, "/backup") for pid in (1, 2, 3)))) == [("io-pressure", "note")]
    both = pressed(waiter(1, "/backup"), waiter(2, "/backup"), waiter(3, "/db"))
    assert codes(both) == [("io-pressure", "warning")]
    assert try_next(judge_quick(both), "io-pressure") == "opskit io"
    assert codes(both._replace(averages=Averages(0.1, 0.1, 0.1))) == []
    assert codes(pressed(*(waiter(pid, f"/{pid}", where="rwsem_down_write_slowpath") for pid in (1, 2, 3)))) == []
    assert not is_pressed(0.4, LASTING)
    assert not is_pressed(0.9, None)


def test_a_slow_device_explains_pressure():
    """One cause, one finding."""
    slow = iofacts.device(reads=5.0, read_bytes=5 * 4096.0, read_await_s=0.2, queue=1.0)
    quick = pressed(waiter(1, "/a"), waiter(2, "/b"), waiter(3, "/c"))
    assert codes(quick._replace(facts=quick.facts._replace(devices=(slow,)))) == [("io-device-slow", "warning")]


def limits(*used, path="/app"):
    return tuple(IoLimit(path, f"8:{number}", "wbps", 2.0 * MIB, each) for number, each in enumerate(used))


def test_limits_that_are_used_up():
    """The fullest one of a cgroup; a warning where somebody waits for it."""
    calm = QuickIo(iofacts.facts(), limits(MIB, None))
    assert codes(calm) == []
    assert looked_at(calm)[2] == "2 I/O limits"
    full = QuickIo(iofacts.facts(), limits(1.9 * MIB, 2.0 * MIB))
    assert codes(full) == [("io-cgroup-throttled", "note")]
    [found] = judge_quick(full._replace(waiters=(waiter(9, "/app/x"),)))
    assert (found.severity, found.entity, found.next) == ("warning", Entity("cgroup", "/app"), "opskit io 9")
    assert (
        found.summary
        == "/app is throttled by its I/O limit: 2.0 MiB/s of 2.0 MiB/s (writes on 8:1); 9 (p9) waits for it"
    )
    assert codes(full._replace(pressed={"/app": 0.6})) == [("io-cgroup-throttled", "warning")]
    missed = QuickIo(iofacts.facts(), limits(1.6 * MIB))  # of two seconds: one request of 1 MiB
    assert codes(missed) == []
    assert codes(missed._replace(pressed={"/app": 0.6})) == [("io-cgroup-throttled", "warning")]


@pytest.mark.parametrize(("is_live", "why"), [(False, "a copy has no rates"), (True, "one sample has no rates")])
def test_one_look_has_no_rates(is_live, why):
    """It is said."""
    host = Host.at(None, None)
    host.fs.is_live = is_live
    outcome = check(Look(host, window_s=0.0))
    assert [gap.reason for gap in outcome.gaps] == [why]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_writer_at_the_limit_of_its_cgroup(tmp_path):
    """blkio.throttle or io.max; also where the writer alone is asked about."""
    with new_cgroup("blkio", f"opskit-test-quick-io-{os.getpid()}", "blkio.throttle.write_bps_device io.max") as place:
        device = f"{os.major(tmp_path.stat().st_dev)}:{os.minor(tmp_path.stat().st_dev)}"
        old = (place / "blkio.throttle.write_bps_device").exists()
        try:
            (place / ("blkio.throttle.write_bps_device" if old else "io.max")).write_text(
                f"{device} 1048576" if old else f"{device} wbps=1048576"
            )
        except OSError:
            pytest.skip("the file system is on no device that can be limited")
        command = (
            f"echo $$ > {place}/cgroup.procs; exec dd if=/dev/zero of={tmp_path}/file bs=128k oflag=direct count=400"
        )
        with subprocess.Popen(["sh", "-c", command], stderr=subprocess.DEVNULL) as writer:
            try:
                time.sleep(0.3)
                outcome = check(Look(Host.at(None, None), window_s=0.6))
                own = check(Look(Host.at(None, None), (writer.pid,), window_s=0.6))
                assert try_next(own.findings, "io-cgroup-throttled") == f"opskit io {writer.pid}"
            finally:
                writer.kill()
    for each in (outcome, own):
        [found] = [finding for finding in each.findings if finding.code == "io-cgroup-throttled"]
        assert (found.severity, found.entity.id) == ("warning", f"/{place.name}")
