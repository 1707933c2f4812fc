"""Deadlocks and held monitors, by who waits for whom."""

from __future__ import annotations

import pytest

from opskit.analysis.finding import Entity
from opskit.analysis.jvm_monitors import cycles_of, find_waits
from opskit.collect.jvm_monitors import Party, Waits
from opskit.jvm.discover import HOTSPOT, Jvm
from opskit.jvm.memory.monitors import Wait

PROCESS = Entity("process", 7, 5)


def waits(holders, seconds=1.0, calls=(), names=()):
    """By thread the one that holds what it waits for; a monitor for each holder."""
    threads = {*holders, *holders.values()} - {0}
    parties = {each: Party(each, dict(names).get(each, f"t{each}"), dict(calls).get(each)) for each in threads}
    found = {thread: Wait(1000 + holder, holder) for thread, holder in holders.items()}
    return Waits(Jvm(7, 7, HOTSPOT, 0, 5, "orders"), seconds, found, parties)


def found(*arguments, **options):
    return [(each.code, each.severity, each.summary) for each in find_waits(waits(*arguments, **options), PROCESS)]


@pytest.mark.parametrize(
    ("holders", "cycles"),
    [
        ({1: 2, 2: 1}, [[1, 2]]),
        ({1: 2, 2: 3}, []),
        ({1: 2, 2: 3, 3: 2}, [[2, 3]]),
        ({1: 1}, [[1]]),
        ({1: 2, 2: 1, 3: 4, 4: 5, 5: 3}, [[1, 2], [3, 4, 5]]),
        ({1: 0, 2: 1}, []),
        ({}, []),
    ],
)
def test_cycles(holders, cycles):
    assert cycles_of(holders) == cycles


def test_a_deadlock_is_an_error_that_names_threads_and_process():
    said = 'deadlock of 2 threads in 7 (orders): "t1" waits for a monitor held by "t2"'
    assert found({2: 1, 1: 2}) == [("jvm-deadlock", "error", said)]


def test_a_long_name_leaves_room_for_the_others():
    [(_, _, said)] = found({2: 1, 1: 2}, names={1: "a" * 300})
    assert said.endswith(f': "{"a" * 79}…" waits for a monitor held by "t2"')


def test_who_waits_behind_a_deadlock_is_counted_and_no_finding_of_its_own():
    [finding] = find_waits(waits({1: 2, 2: 1, 3: 1, 4: 3, 5: 1, 6: 1, 7: 1, 8: 9, 9: 8}), PROCESS)
    assert finding.evidence.startswith("1 more deadlock; 5 other threads wait for their monitors; ")
    assert finding.next == "opskit jpmp 7 --locks"


def test_a_monitor_that_is_held_all_the_time():
    """By the thread at the end of the chain, for all that wait for it."""
    held = {1: 9, 2: 9, 3: 9, 4: 3, 5: 4}
    said = '5 threads of 7 (orders) wait for a monitor held by "t9"'
    assert found(held) == [("lock-contended", "note", said)], "it runs, and may have let go of it meanwhile"
    assert found(held, calls={9: "futex"}) == [("lock-contended", "warning", f"{said}, which sleeps in futex")]


def test_a_holder_that_was_awake_may_have_let_go():
    """Two samples of a capture may show the same holder of a busy monitor; a deadlock stays one."""
    held = waits(dict.fromkeys(range(1, 9), 9), calls={9: "futex"})
    assert list(find_waits(held._replace(awake=frozenset({9})), PROCESS)) == []
    dead = waits({1: 2, 2: 1})._replace(awake=frozenset({1, 2}))
    assert [each.code for each in find_waits(dead, PROCESS)] == ["jvm-deadlock"]


@pytest.mark.parametrize("call", ["accept", "epoll_wait", "recvfrom"])
def test_idle_threads_of_a_server_wait_for_the_one_that_accepts(call):
    [(_, severity, _)] = found(dict.fromkeys(range(1, 9), 9), calls={9: call})
    assert severity == "note"


def test_few_waits_or_short_looks_say_nothing():
    assert found({1: 9, 2: 9, 3: 9, 4: 9}) == []
    assert found(dict.fromkeys(range(1, 9), 0)) == []
    assert found({1: 2, 2: 1}, seconds=0.05) == []


def test_names_are_those_of_the_kernel_where_a_dump_has_them_in_full():
    """So that a look at the memory and a dump make one finding."""
    held = dict.fromkeys(range(1, 9), 9)
    entities = [
        next(find_waits(waits(held, names={9: name}), PROCESS)).entity
        for name in ("pool-1-thread-12345", "pool-1-thread-1")
    ]
    assert entities == [Entity("lock", "held by pool-1-thread-1", inside=PROCESS)] * 2
