"""What is said about the machine, and above all what is not."""

from __future__ import annotations

import iofacts
import pytest
from iofacts import device, facts, process, rates, stalled

from opskit.analysis.io.host import judge_host


def codes(*processes, devices=(), **given):
    """(code, severity, subject) of the findings."""
    result = judge_host(facts(processes, devices, **given))
    return [(each.code, each.severity, each.entity.name) for each in result.findings]


def test_the_verdict():
    """The most bytes, the most calls, the busiest device that stands on no other."""
    verdict = " ".join(judge_host(iofacts.BUSY).verdict)
    assert "4242 (java) reads 120 MiB/s (92 % from disk) and writes 2.0 KiB/s" in verdict
    assert "4300 (csv-import) does 1,903,808 reads/s of 1.0 byte" in verdict
    assert "sda, busy 20 %: 100 reads/s (await 2.0 ms)" in verdict


def test_the_first_of_each_kind_is_on_top():
    """Stuck, then the first by bytes, calls and storage."""
    assert [row.process.process.pid for row in judge_host(iofacts.BUSY).processes][:3] == [4500, 4242, 4300]


@pytest.mark.parametrize(
    ("where", "for_s", "kernel", "wanted"),
    [
        ("request_wait_answer", 2.0, False, "warning"), ("rpc_wait_bit_killable", 60.0, False, "error"),
        ("rwsem_down_read_slowpath", 2.0, False, "note"), (None, 2.0, False, "note"), ("usb_kill_urb", 2.0, False, "note"),
        ("__refrigerator", 60.0, False, None), ("kernel_clone", 60.0, False, None),
        ("folio_wait_bit_common", 0.5, False, None), ("folio_wait_bit_common", 60.0, True, None),
    ],
)  # fmt: skip
def test_threads_in_state_d(where, for_s, kernel, wanted):
    """One sleep for the whole window that waits for storage; frozen cgroups, vfork, kernel threads and short sleeps are none."""
    found = codes(process(4242, "cat", stalled=(stalled(where=where, for_s=for_s),), in_d=1.0, is_kernel_thread=kernel))
    assert found == ([("io-stuck", wanted, "4242")] if wanted else [])


def test_a_wait_for_a_lock_of_a_fuse_server():
    """Its answer comes when another program gives back the lock; other calls are named, and wait for storage."""
    for call, severity in (("fcntl", "note"), ("flock", "note"), ("statx", "warning")):
        waits = process(4242, "cat", stalled=(stalled()._replace(call=call),), in_d=1.0)
        (finding,) = judge_host(facts([waits])).findings
        assert finding.severity == severity
        assert finding.summary.endswith(f"waits for a FUSE server (request_wait_answer), in {call}")


def test_a_sync_of_many_dirty_pages():
    """It is one sleep until all are stored: a note as long as some are."""
    waits = process(4242, "sync", stalled=(stalled(where="wb_wait_for_completion", for_s=12.0),), in_d=1.0)
    for stored, severity in ((5000, "note"), (0, "error"), (None, "error")):
        assert codes(waits, stored_pages=stored) == [("io-stuck", severity, "4242")]


SLOW = {"reads": 5.0, "read_await_s": 0.3, "queue": 1.5, "busy": 1.0, "read_bytes": 5 * 4096.0}


@pytest.mark.parametrize(
    ("given", "is_slow"),
    [
        (SLOW, True),
        ({}, False),
        ({"reads": 1000.0, "read_await_s": 0.3, "queue": 300.0, "busy": 1.0}, False),  # a long queue
        ({**SLOW, "read_bytes": 5 * 4.0 * (1 << 20)}, False),  # large requests
        ({**SLOW, "reads": 0.5}, False),  # one request
        ({**SLOW, "name": "sr0"}, False),
        ({"reads": 300000.0, "read_await_s": 0.0001, "busy": 1.0, "queue": 30.0}, False),  # NVMe
        ({"reads": 0.0, "read_await_s": None, "writes": 100.0, "write_await_s": 0.6, "queue": 60.0}, False),  # a copy
    ],
)
def test_slow_devices(given, is_slow):
    """Only a request that takes long by itself is proof."""
    given = dict(given)
    found = codes(devices=[device(given.pop("name", "sdb"), **given)])
    assert [code for code, _, _ in found] == (["io-device-slow"] if is_slow else [])


def test_of_a_stack_the_lowest_is_named():
    """Dm on sda: one finding."""
    found = codes(devices=[device("dm-0", stacked_on=("sda",), **SLOW), device("sda", **SLOW)])
    assert found == [("io-device-slow", "warning", "sda")]


def test_a_slow_device_on_a_fast_one():
    """The disk is not to blame: a limit of a cgroup holds requests between dm and it."""
    (finding,) = judge_host(facts(devices=[device("dm-0", stacked_on=("sda",), **SLOW), device("sda")])).findings
    assert (finding.code, finding.entity.name) == ("io-device-slow", "dm-0")
    assert finding.summary.endswith(
        "; sda below it needs 437 us: a limit of a cgroup (io.max) or the mapping holds requests"
    )
    (alone,) = judge_host(facts(devices=[device("dm-0", stacked_on=("sda",), **SLOW)])).findings
    assert alone.summary.endswith(" at a time")


def test_a_device_that_finishes_nothing():
    """Requests in flight are proof only where a thread waits: some drivers count requests that are none."""
    hung = device(reads=0.0, read_await_s=None, in_flight=3)
    assert codes(devices=[hung]) == []
    waits = process(7, "cp", stalled=(stalled(where="folio_wait_bit_common"),), in_d=1.0)
    assert ("io-device-hung", "warning", "sda") in codes(waits, devices=[hung])
    assert [code for code, _, _ in codes(waits, devices=[hung._replace(writes=1.0)])] == ["io-stuck"]


def test_an_idle_machine():
    """A sentence, and no next command."""
    result = judge_host(facts())
    assert (len(result.verdict), result.findings, result.next) == (1, (), None)
    assert judge_host(facts([process(5, "cat", rates=rates(reads=5, read_bytes=500))])).next is None


def test_page_faults_are_named():
    """A database of mapped files makes no call: it is named beside who calls the most."""
    faults = process(9, "mongod", rates=rates(disk_read_bytes=300 << 20, disk_written_bytes=20 << 20))
    copies = process(5, "cp", rates=rates(reads=90, read_bytes=50 << 20, disk_read_bytes=9 << 20))
    verdict = judge_host(facts([copies, faults])).verdict
    assert verdict[:2] == (
        "Most bytes: 5 (cp) reads 50.0 MiB/s (18 % from disk)",
        "Most storage traffic: 9 (mongod) fetches 300 MiB/s and makes 20.0 MiB/s dirty",
    )
    alone = judge_host(facts([faults]))
    assert alone.verdict[0].startswith("Most storage traffic: 9 (mongod) fetches 300 MiB/s")
    assert alone.next == "opskit io 9"
    empty = process(7, "poller", rates=rates(reads=40.0))
    assert judge_host(facts([empty])).verdict == ("Most calls: 7 (poller) does 40 reads/s of 0.0 bytes",)
    assert len(judge_host(facts([copies])).verdict) == 1


def test_a_process_that_has_ended_is_no_next_command():
    """The first one that still runs is."""
    busy = rates(reads=900, read_bytes=120 << 20)
    ended, runs = process(5, "dd", rates=busy), process(6, "cp", rates=busy)
    ended = ended._replace(process=ended.process._replace(state="X", threads=None))
    assert judge_host(facts([ended])).next is None
    assert judge_host(facts([ended, runs])).next == "opskit io 6"
