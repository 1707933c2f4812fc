"""What threads add to their I/O counters between two readings."""

from __future__ import annotations

import os
import threading

from hypothesis import given
from hypothesis import strategies as st

from opskit.collect.io.counters import Counted, Reading, changes, ended_rates, read_counters, total_rates
from opskit.host import Host
from opskit.proc.fs import ProcFS

KEYS = ("rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes")


def counted(at_s, *numbers):
    numbers += (0,) * (len(KEYS) - len(numbers))
    return Counted(at_s, "".join(f"{key}: {number}\n" for key, number in zip(KEYS, numbers)).encode())


def reading(at_s, process, **threads):
    return Reading(at_s, counted(at_s, *process), {int(tid[1:]): counted(at_s, *each) for tid, each in threads.items()})


def test_threads_that_did_nothing_are_left_out():
    """Rates are of the time between the readings of each thread."""
    before = reading(10.0, (5, 5), t1=(100, 0, 10), t2=(7, 7))
    after = reading(12.0, (105, 5, 10), t1=(200, 0, 20), t2=(7, 7))
    found = changes(before, after)
    assert list(found) == [1]
    assert (found[1].rates.reads, found[1].rates.read_bytes, found[1].rates.bytes_per_read) == (5.0, 50.0, 10.0)
    assert (found[1].started, found[1].rates.bytes_per_write) == (False, None)
    assert total_rates(found).reads == 5.0


def test_a_thread_that_starts_and_a_tid_that_is_used_again():
    """Both have begun at 0 within the window, which is what their rates are of."""
    before = reading(10.0, (500, 0), t1=(400, 0, 40))
    after = reading(12.0, (700, 0), t1=(100, 0, 10), t2=(60, 0, 6))
    found = changes(before, after)
    assert {tid: (each.started, each.io.read_bytes, each.elapsed_s) for tid, each in found.items()} == {
        1: (True, 100, 2.0), 2: (True, 60, 2.0),
    }  # fmt: skip


def test_a_thread_that_ends_is_in_the_process():
    """What is left of the process's own counters; nothing where the living account for them, but for what happens between two reads."""
    before = reading(10.0, (0, 0), t1=(0, 0), t2=(0, 0))

    def ended(after):
        return ended_rates(before, after, changes(before, after))

    assert ended(reading(12.0, (1000, 0, 100), t1=(200, 0, 20))).reads == 40.0
    assert ended(reading(12.0, (1000, 0, 100), t1=(995, 0, 99))) is None
    assert ended(reading(12.0, (0, 0))) is None


def test_counters_that_cannot_be_read():
    """Text that is cut short, or that runs backwards, is unknown and no number."""
    before = Reading(1.0, Counted(1.0, b""), {1: Counted(1.0, b"rchar: 5\n"), 2: counted(1.0, 5)})
    after = Reading(2.0, Counted(2.0, b"rchar"), {1: Counted(2.0, b"rchar: 6\n"), 2: Counted(2.0, b"x")})
    assert changes(before, after) == {}
    assert ended_rates(before, after, {}) is None


@given(st.lists(st.tuples(st.binary(max_size=60), st.binary(max_size=60)), max_size=4))
def test_any_text(texts):
    """Never an exception, never a negative number."""
    before = Reading(1.0, Counted(1.0, b""), {tid: Counted(1.0, text) for tid, (text, _) in enumerate(texts)})
    after = Reading(2.0, Counted(2.0, b""), {tid: Counted(2.0, text) for tid, (_, text) in enumerate(texts)})
    for change in changes(before, after).values():
        assert min(change.io) >= 0


def test_this_process(tmp_path):
    """A thread of ours writes, and then only that one has changed among those that wait."""
    go, done, end = threading.Event(), threading.Event(), threading.Event()

    def write():
        go.wait()
        for _ in range(50):
            with open(tmp_path / "file", "wb", buffering=0) as file:
                file.write(b"x" * 1000)
        done.set()
        end.wait()

    threads = [threading.Thread(target=write)] + [threading.Thread(target=end.wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    host = Host(ProcFS())
    before = read_counters(host, os.getpid())
    go.set()
    done.wait()
    after = read_counters(host, os.getpid())
    end.set()
    for thread in threads:
        thread.join()
    found = changes(before, after)
    written = found[threads[0].native_id].io
    assert (written.written_bytes, written.writes) == (50_000, 50)
    assert not {thread.native_id for thread in threads[1:]} & found.keys()
