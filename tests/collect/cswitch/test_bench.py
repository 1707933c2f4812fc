"""Which CPUs `opskit cswitch --bench` uses, and the sizes that --ws takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.collect.cswitch.bench import (
    NOT_PINNED,
    ONE_CPU,
    OTHER_SOCKET,
    SAME_SOCKET,
    SMT_SIBLING,
    TWO_CPUS,
    Pairing,
    choose,
    parse_working_sets,
)
from opskit.errors import NotSupported, UsageError
from opskit.proc.cpu_topology import Place, Topology


def topology(sockets, cores, threads, isolated=(), known=True):
    """CPUs as x86 numbers them: the second threads of all cores after the first ones of all sockets."""
    places = {}
    for thread in range(threads):
        for core in range(sockets * cores):
            siblings = frozenset(core + each * sockets * cores for each in range(threads))
            places[core + thread * sockets * cores] = Place(siblings, core // cores if known else None)
    return Topology(tuple(sorted(places)), places, frozenset(isolated))


def chosen(machine, allowed=None, pin=None):
    """The CPUs of each kind."""
    return {pair.kind: pair.cpus for pair in choose(machine, frozenset(allowed or machine.online), pin)}


def test_two_sockets_with_smt():
    """Each kind of pair that there is."""
    machine = topology(2, 4, 2)
    assert chosen(machine) == {
        ONE_CPU: (0,), SMT_SIBLING: (0, 8), SAME_SOCKET: (0, 1), OTHER_SOCKET: (0, 4), NOT_PINNED: (),
    }  # fmt: skip
    assert chosen(machine, pin="one") == {ONE_CPU: (0,)}
    assert [*chosen(machine, pin="two")] == [SMT_SIBLING, SAME_SOCKET, OTHER_SOCKET]


def test_one_core_of_two_threads():
    """No other core, no other socket."""
    assert [*chosen(topology(1, 1, 2))] == [ONE_CPU, SMT_SIBLING, NOT_PINNED]


def test_sockets_that_are_unknown():
    """Two CPUs are then neither of one socket nor of two."""
    assert chosen(topology(1, 4, 1, known=False)) == {ONE_CPU: (0,), TWO_CPUS: (0, 1), NOT_PINNED: ()}


def test_only_cpus_that_we_may_use():
    """Those of taskset and the cpuset; with one of them there are no pairs, and pinning changes nothing."""
    machine = topology(2, 4, 2)
    assert chosen(machine, {3, 7}) == {ONE_CPU: (3,), OTHER_SOCKET: (3, 7), NOT_PINNED: ()}
    assert chosen(machine, {5}) == {ONE_CPU: (5,)}
    with pytest.raises(NotSupported, match=r"--pin two: only CPU 5 may be used here"):
        choose(machine, frozenset({5}), "two")


def test_isolated_cpus_come_last():
    """They are measured where there are no others."""
    assert chosen(topology(1, 4, 1, isolated=(0, 1)))[SAME_SOCKET] == (2, 3)
    assert chosen(topology(1, 4, 1, isolated=(0, 1)), {0, 1, 3})[SAME_SOCKET] == (3, 0)


@given(
    st.integers(1, 4), st.integers(1, 4), st.integers(1, 2), st.booleans(), st.sets(st.integers(0, 31)),
    st.sets(st.integers(0, 31)), st.sampled_from([None, "one"]),
)  # fmt: skip
def test_any_machine(sockets, cores, threads, known, allowed, isolated, pin):
    """Pairs are two CPUs that are allowed, or any online ones where none of those is; each kind once, one CPU first."""
    machine = topology(sockets, cores, threads, isolated, known)
    found = choose(machine, frozenset(allowed), pin)
    usable = {*machine.online} & allowed or {*machine.online}
    assert found[0].kind == ONE_CPU
    assert len({pair.kind for pair in found}) == len(found)
    for pair in found:
        assert {*pair.cpus} <= usable
        assert len({*pair.cpus}) == len(pair.cpus) == {ONE_CPU: 1, NOT_PINNED: 0}.get(pair.kind, 2)
    assert (Pairing(NOT_PINNED, ()) in found) == (pin is None and len(usable) > 1)


def test_working_sets():
    """In ascending order, each once."""
    assert parse_working_sets("1M,64K,1024K") == (65536, 1 << 20)
    assert parse_working_sets("4096") == (4096,)


@pytest.mark.parametrize(
    "text", ["", ",", "0", "64K,", "512", "257M", "1T", "x", "-1", "64K;1M", "9" * 5000, "1K," * 8 + "1K"]
)
def test_bad_working_sets(text):
    """A line that says what to write, and is short."""
    with pytest.raises(UsageError, match=r"write up to 8 sizes from 1K to 256M: --ws 64K,1M,16M") as caught:
        parse_working_sets(text)
    assert len(str(caught.value)) < 150
