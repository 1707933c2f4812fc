"""Local ports in use."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tcphostfacts import address, tcp_socket

from opskit.collect.tcp.host_facts import Destination
from opskit.collect.tcp.ports import PortUse, port_use
from opskit.proc.inet_diag import as_end
from opskit.proc.tcp_sockets import ESTABLISHED, LISTEN, SYN_RECV, TIME_WAIT

STATES = st.sampled_from([ESTABLISHED, TIME_WAIT, SYN_RECV, LISTEN, 12])
SOCKETS = st.lists(
    st.builds(
        lambda state, port, peer, peer_port, ms: tcp_socket(
            state, local_port=port, peer=peer, peer_port=peer_port, expires_ms=ms
        ),
        STATES,
        st.integers(98, 112),
        st.sampled_from(["10.0.0.7", "2001:db8::7"]),
        st.integers(1, 3),
        st.integers(58_000, 60_000),
    ),
    max_size=60,
)


def test_ports_of_a_destination():
    """Each counts once, in any state; those that are reserved or listened on are not free for it, nor are half-open connections it."""
    sockets = [
        *(tcp_socket(local_port=port) for port in (100, 101, 102, 99, 111)),
        tcp_socket(TIME_WAIT, local_port=103, expires_ms=59_500),
        tcp_socket(TIME_WAIT, local_port=104, expires_ms=30_000),
        tcp_socket(local_port=100, peer_port=80),
        tcp_socket(SYN_RECV, local_port=105),
        tcp_socket(LISTEN, local_port=102, peer_port=0),
    ]
    local, peer = address("10.0.0.1"), address("10.0.0.7")
    assert port_use(map(as_end, sockets), 100, 110, {109, 5000}) == PortUse(
        2,
        2,
        (Destination(local, peer, 5432, 4, {ESTABLISHED: 2, TIME_WAIT: 2}, 1), Destination(local, peer, 80, 1, {1: 1})),
    )
    mapped = [tcp_socket(local_port=100, family=10), tcp_socket(local_port=101)]
    assert [each.used for each in port_use(map(as_end, mapped), 100, 110).destinations] == [2]
    assert port_use([], 1, 2) == PortUse(0, 0, ())


@given(SOCKETS, st.sets(st.integers(98, 112)))
def test_as_counted_one_by_one(sockets, reserved):
    """For any sockets the sums are those of a plain count."""
    found = port_use(map(as_end, sockets), 100, 110, reserved)
    inside = [each for each in sockets if 100 <= each.local_port <= 110]
    taken = {each.local_port for each in inside if each.state == LISTEN} | {
        port for port in reserved if 100 <= port <= 110
    }
    free = [each for each in inside if each.local_port not in taken and each.state in (ESTABLISHED, TIME_WAIT)]
    places = {(each.peer, each.peer_port) for each in free}
    expected = {
        place: len({each.local_port for each in free if (each.peer, each.peer_port) == place}) for place in places
    }
    assert {(each.peer, each.port): each.used for each in found.destinations} == expected
    assert [each.used for each in found.destinations] == sorted(expected.values(), reverse=True)
    assert all(sum(each.states.values()) == each.used >= each.young for each in found.destinations)
    assert (found.taken, found.used) == (
        len(taken),
        len({each.local_port for each in free if each.state == ESTABLISHED}),
    )
