"""How many stacks fit: arenas, alignment, caches, mappings."""

from __future__ import annotations

import os
import resource
import subprocess

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from limitcases import PYTHON

from opskit.analysis.limits.stack_space import ThreadCost, threads_in_address_space, threads_in_maps
from opskit.proc.files.maps import HEAP_BYTES, parse_maps

MIB = 1 << 20
STACK = ThreadCost(8 * MIB, 4096, 2, 0)
EVERYWHERE = ((0x10000, 1 << 46),)


def test_without_arenas_it_is_a_division():
    """Stack and guard."""
    assert threads_in_address_space(800 * MIB, EVERYWHERE, STACK) == 800 * MIB // (8 * MIB + 4096)


def test_each_of_the_first_threads_takes_an_arena():
    """64 MiB each, until there are as many as there may be."""
    cost = ThreadCost(8 * MIB, 4096, 2, 15)
    budget = 15 * HEAP_BYTES + 100 * (8 * MIB + 4096) + 3 * HEAP_BYTES
    assert threads_in_address_space(budget, EVERYWHERE, cost) == 100 + 3 * HEAP_BYTES // (8 * MIB + 4096)


def test_where_128_mib_do_not_fit_64_are_kept_only_if_aligned():
    """The same budget, other free ranges."""
    cost = ThreadCost(MIB, 0, 2, 1)
    budget = 100 * MIB
    aligned = ((1 << 40, (1 << 40) + MIB), (1 << 32, (1 << 32) + 66 * MIB))
    assert threads_in_address_space(budget, ((1 << 40, (1 << 40) + MIB), (1 << 32, (1 << 32) + HEAP_BYTES)), cost) == 36
    assert threads_in_address_space(budget, (*aligned[:1], (0x1000, 0x1000 + HEAP_BYTES + 5 * MIB)), cost) == 100


def test_stacks_of_ended_threads_cost_nothing():
    """Glibc hands them out first."""
    cached = ThreadCost(8 * MIB, 4096, 2, 0, cached=3)
    assert threads_in_address_space(17 * MIB, EVERYWHERE, cached) == 3 + 2
    assert threads_in_maps(10, cached) == 3 + 5


def test_arenas_of_ended_threads_go_first_and_the_others_are_made_all_the_same():
    """A thread takes a free arena before it makes one; how many can be made does not depend on it."""
    free = ThreadCost(8 * MIB, 4096, 2, 2, arenas_free=3)
    budget = 5 * (8 * MIB + 4096) + 2 * HEAP_BYTES
    assert threads_in_address_space(budget - HEAP_BYTES // 2, EVERYWHERE, free) >= 4
    assert threads_in_address_space(budget + HEAP_BYTES, EVERYWHERE, free) == 5 + HEAP_BYTES // (8 * MIB + 4096)


def test_mappings_of_stacks_and_arenas():
    """Two each."""
    assert threads_in_maps(100, STACK) == 50
    assert threads_in_maps(100, ThreadCost(8 * MIB, 4096, 2, 15)) == 15 + (100 - 60) // 2
    assert threads_in_maps(-5, STACK) == 0


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
@given(st.integers(0, 1 << 40), st.integers(16 << 10, 1 << 33), st.integers(0, 64), st.integers(0, 5))
def test_never_far_fewer_and_never_more_than_the_division(room, stack, arenas, cached):
    """Bounds that hold for every budget."""
    cost = ThreadCost(stack // 4096 * 4096, 4096, 2, arenas, cached)
    count = threads_in_address_space(room, EVERYWHERE, cost)
    assert 0 <= count <= cached + room // cost.mapped_bytes
    least = max(0, room - arenas * HEAP_BYTES) // cost.mapped_bytes
    assert count >= least
    assert threads_in_maps(room % 65530, cost) <= cached + room % 65530 // 2


# Its threads map nothing but their stack and their arena: a Python thread would map some pages more, and so move what comes
# next. Each runs fgetc() on an empty pipe, which calls malloc() for a buffer and then waits.
LAYOUT = """
import ctypes, os
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
pipe, thread = os.pipe()[0], ctypes.c_ulong()
files = [ctypes.c_void_p(libc.fdopen(pipe, b"r")) for _ in range(100)]
buffers = [ctypes.c_void_p.from_address(file.value + 56) for file in files]  # _IO_buf_base
maps = open("/proc/self/maps").read()
vm = int(open("/proc/self/statm").read().split()[0]) * 4096
started = 0
while libc.pthread_create(ctypes.byref(thread), None, libc.fgetc, files[started]) == 0:
    while not buffers[started].value:
        pass
    started += 1
print(vm, started)
print(maps, flush=True)
os._exit(0)
"""


def test_every_layout_of_a_real_process():
    """Ten processes, laid out at random by the kernel: in each as many threads start as its maps predict."""
    for _ in range(10):
        out = subprocess.run(
            [PYTHON, "-c", LAYOUT],
            capture_output=True,
            text=True,
            check=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (700 * MIB, 700 * MIB)),
        ).stdout
        head, _, maps = out.partition("\n")
        vm, started = map(int, head.split())
        space = parse_maps(maps.strip())
        arenas = 8 * len(os.sched_getaffinity(0)) - 1
        predicted = threads_in_address_space(700 * MIB - vm, space.gaps, ThreadCost(8 * MIB, 4096, 2, arenas))
        assert abs(predicted - started) <= 1
