"""Sort the sockets of a dump: connections that did something, idle ones by the number, listening ones, and CLOSE-WAIT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.proc.inet_diag import packed
from opskit.proc.tcp_sockets import CLOSE_WAIT, ESTABLISHED, LISTEN, SYN_RECV, TIME_WAIT
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from opskit.collect.tcp.facts import Request
    from opskit.proc.inet_diag import Row
    from opskit.proc.socket_owners import SocketOwners
    from opskit.proc.tcp_dumps import Dump, Place

_NEW_SYN_RECV = 12
_NOT_CONNECTED = frozenset(
    {LISTEN, TIME_WAIT, SYN_RECV, _NEW_SYN_RECV}
)  # no process has the last three: they are counted alone
MOST_SINGLE = 200  # connections that are all told of one by one, whether they did anything or not

# A group of connections: PID of the owner or None, inbound, state, family, the peer's address, the service's port (two bytes)
Key = tuple["int | None", bool, int, int, bytes, bytes]


class Gathered(NamedTuple):
    """The sockets at the end of a window. `single`: by cookie those that are told of one by one. `idle`: of each group the others, one as an example.

    `closing`: CLOSE-WAIT, by groups.
    """

    states: dict[int, int]
    single: dict[bytes, tuple[Key, Place]]
    idle: dict[Key, tuple[int, Place]]
    listening: dict[bytes, Place]
    closing: dict[Key, list[Row]]


class Begun(NamedTuple):
    """The sockets at the begin of a window. `connections`: how many; `places` of the few, or of those that did something lately, the longest queues first."""

    connections: int
    places: list[tuple[bytes, Place]]
    listening: dict[bytes, Place]
    ports: set[bytes]  # that are listened on
    closing: list[Row]


def wanted(ask: Request, owners: SocketOwners | None) -> Callable[[Row], bool] | None:
    """Which sockets are asked for; None: all."""
    tests: list[Callable[[Row], bool]] = []
    if ask.pids and owners is not None:
        pid_of = owners.pid_of
        tests.append(lambda row: pid_of(row[8]) is not None)
    if ask.uids:
        uids = ask.uids
        tests.append(lambda row: row[7] in uids)
    if ask.peer is not None:
        tests.append(_of_peer(*ask.peer))
    if not tests:
        return None
    return tests[0] if len(tests) == 1 else lambda row: all(test(row) for test in tests)


def _of_peer(network: bytes, prefix: int, port: int | None) -> Callable[[Row], bool]:
    size, shift = len(network), 8 * len(network) - prefix
    first = int.from_bytes(network, "big") >> shift
    of_port = None if port is None else port.to_bytes(2, "big")

    def test(row: Row) -> bool:
        address = packed(row[0], row[3])
        if len(address) != size or int.from_bytes(address, "big") >> shift != first:
            return False
        return of_port is None or row[2][2:] == of_port

    return test


def begin(dump: Dump, is_wanted: Callable[[Row], bool] | None, recent_ms: int, most_single: int = MOST_SINGLE) -> Begun:
    """The connections of the first dump that are worth sampling: all, or of many those with data in the last `recent_ms` or in a queue."""
    few: list[tuple[bytes, Place]] = []
    active: list[tuple[int, int, bytes, Place]] = []
    found = Begun(0, few, {}, set(), [])
    connections, place = 0, dump.place
    for chunk, rows in dump.chunks():
        for start, row in rows:
            _, state, ports, _, cookie, receive, send, _, _, sent_ms, received_ms, _ = row
            if state != ESTABLISHED:
                if state == LISTEN:
                    found.ports.add(ports[:2])
                    if is_wanted is None or is_wanted(row):
                        found.listening[cookie] = place(chunk, start)
                if state in _NOT_CONNECTED:
                    continue
            if is_wanted is not None and not is_wanted(row):
                continue
            connections += 1
            if connections <= most_single:
                few.append((cookie, place(chunk, start)))
            if receive or send or sent_ms < recent_ms or received_ms < recent_ms:
                active.append((-receive - send, min(sent_ms, received_ms), cookie, place(chunk, start)))
            if state == CLOSE_WAIT:
                found.closing.append(row)
    if connections > most_single:
        active.sort(key=lambda one: one[:3])
        few = [one[2:] for one in active]
    return found._replace(connections=connections, places=few)


def gather(
    dump: Dump, is_wanted: Callable[[Row], bool] | None, pid_of: Callable[[int], int | None] | None,
    listened: set[bytes], active_ms: int, most_single: int = MOST_SINGLE,
) -> Gathered:  # fmt: skip
    """Sort the last dump. `listened`: local ports that were listened on before; `active_ms`: the window, -1: only queues count."""
    found = Gathered({}, {}, {}, {}, {})
    single, listening, closing = found.single, found.listening, found.closing
    few: list[tuple[bytes, tuple[Key, Place]]] = []
    counts: dict[Key, list[Any]] = {}  # how many, and the place of the first one
    left = most_single + 1
    of_state = [0] * 256  # a state is one byte
    ports, place = set(listened), dump.place
    for chunk, rows in dump.chunks():
        for start, row in rows:
            family, state, both, peer, cookie, receive, send, _, inode, sent_ms, received_ms, _ = row
            of_state[state] += 1
            if state != ESTABLISHED:
                if state == LISTEN:
                    ports.add(both[:2])
                    if is_wanted is None or is_wanted(row):
                        listening[cookie] = place(chunk, start)
                if state in _NOT_CONNECTED:
                    continue
            if is_wanted is not None and not is_wanted(row):
                continue
            port = both[:2]
            pid = None if pid_of is None else pid_of(inode)
            key = (
                (pid, True, state, family, peer, port) if port in ports else (pid, False, state, family, peer, both[2:])
            )
            if state == CLOSE_WAIT:
                closing.setdefault(key, []).append(row)
            if receive or send or sent_ms <= active_ms or received_ms <= active_ms:
                single[cookie] = key, place(chunk, start)
                continue
            group = counts.get(key)
            if group is None:
                counts[key] = [1, chunk, start]
            else:
                group[0] += 1
            if left:
                left -= 1
                few.append((cookie, (key, place(chunk, start))))
    found.states.update((state, number) for state, number in enumerate(of_state) if number)
    if len(single) + sum(group[0] for group in counts.values()) <= most_single:
        single.update(few)
    else:
        found.idle.update((key, (group[0], place(*group[1:]))) for key, group in counts.items())
    return found


def bounded(found: Gathered, sampled: Collection[bytes]) -> Gathered:
    """The same with at most 200 single connections: the sampled ones, then others."""
    if len(found.single) <= MOST_SINGLE:
        return found
    chosen = [*(cookie for cookie in found.single if cookie in sampled), *found.single]
    kept = dict.fromkeys(chosen[:MOST_SINGLE])
    return found._replace(single={cookie: found.single[cookie] for cookie in kept})
