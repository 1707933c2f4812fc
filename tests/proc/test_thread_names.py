"""Names of threads as patterns, and those of a real process."""

from __future__ import annotations

import os

import pytest

from opskit.proc.fs import ProcFS
from opskit.proc.thread_names import pattern_of, thread_names


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        (b"leak-17", "leak-*"),
        (b"pool-1-thread-3", "pool-*-thread-*"),
        (b"pool-12-thread-", "pool-*-thread-*"),
        (b"http-nio-8080-e", "http-nio-*-e*"),
        (b"GC Thread#0", "GC Thread#*"),
        (b"java", "java"),
        (b"17", "*"),
        (b"", ""),
        (b"\xff1", "\udcff*"),
    ],
)
def test_numbers_and_what_is_cut_off_become_stars(name, pattern):
    assert pattern_of(name) == pattern


def test_the_threads_of_a_process(spawn):
    """Most first; a process that has ended has none."""
    code = """
import ctypes, threading, time
libc = ctypes.CDLL(None)
def named(number):
    libc.prctl(15, b"worker-%d" % number); ready.wait(); time.sleep(600)
ready = threading.Barrier(8)
for number in range(7): threading.Thread(target=named, args=(number,), daemon=True).start()
ready.wait(); print(flush=True); time.sleep(600)
"""
    found = thread_names(ProcFS(), spawn(code).pid)
    assert next(iter(found.items())) == ("worker-*", 7)
    assert sum(found.values()) == 8
    assert thread_names(ProcFS(), 2**22 + os.getpid()) == {}
