"""The records of a window: connections, groups of idle ones, listening sockets, and CLOSE-WAIT by process and peer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.tcp.facts import Closing, Idle, Listener, Watched
from opskit.proc.inet_diag import NEVER_MS, packed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from opskit.collect.tcp.facts import Owner, Sample
    from opskit.collect.tcp.gather import Begun, Gathered, Key
    from opskit.collect.tcp.owners import Owners
    from opskit.collect.tcp.sampling import Sampler
    from opskit.proc.inet_diag import Row
    from opskit.proc.tcp_dumps import Dump, Place

_MOST_FDS = 20  # that a record lists


class Records:
    """The records of all network namespaces. `unowned`: some socket that a process has is nobody's of those that were read."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self.connections: list[Watched] = []
        self.idle: list[Idle] = []
        self.listeners: list[Listener] = []
        self.closing: list[Closing] = []
        self.unowned = False
        self._space = -1

    def add(self, first: Dump, begun: Begun, sampler: Sampler, found: Gathered) -> None:
        """Add those of one network namespace: at the begin, in between, and at the end."""
        self._space += 1
        self._add_connections(first, sampler, found, begun.ports)
        for key, (number, place) in found.idle.items():
            _, inbound, state, family, peer, port = key
            owner = self._owner(place.socket().inode)
            self.idle.append(Idle(owner, packed(family, peer), _number(port), inbound, state, number, self._space))
        for cookie, last in found.listening.items():
            before, after, most = begun.listening.get(cookie, last).socket(), last.socket(), 0
            if cookie in sampler.listening:  # these looks have the drops, which a dump of all sockets has not
                early, late, most = sampler.listening[cookie]
                before, after = (
                    each._replace(memory=look.socket().memory) for each, look in ((before, early), (after, late))
                )
            most = max(before.recv_queue, after.recv_queue, most)
            self.listeners.append(Listener(before, after, self._owner(after.inode), most))
        self._add_closing(begun.closing, found.closing)

    def _owner(self, inode: int) -> Owner | None:
        owner = self._owners.owner(inode)
        self.unowned = self.unowned or (owner is None and inode != 0)
        return owner

    def _add_connections(self, first: Dump, sampler: Sampler, found: Gathered, ports: set[bytes]) -> None:
        tracks = {cookie: track for cookie, track in sampler.tracks.items() if track.samples}  # /proc has none
        begins = first.find(found.single.keys() - tracks.keys())
        for cookie, (key, last) in found.single.items():
            track = tracks.get(cookie)
            if track is not None:
                self._add_connection(track.first, track.last, key[1], tuple(track.samples))
            else:
                self._add_connection(begins.get(cookie, last), last, key[1])
        for cookie in tracks.keys() - found.single.keys():
            track = tracks[cookie]
            if track.is_gone:  # it was closed within the window
                port = track.last.socket().local_port.to_bytes(2, "big")
                self._add_connection(track.first, track.last, port in ports, tuple(track.samples))

    def _add_connection(self, first: Place, last: Place, inbound: bool, samples: tuple[Sample, ...] = ()) -> None:
        after = last.socket()
        before = after if first is last else first.socket()
        elapsed_s = last.at_s - first.at_s
        owner = self._owner(after.inode)
        self.connections.append(Watched(before, after, elapsed_s, inbound, owner, samples, space=self._space))

    def _add_closing(self, begun: list[Row], found: Mapping[Key, list[Row]]) -> None:
        before = {row[4] for row in begun}
        now = {row[4] for rows in found.values() for row in rows}
        ended: dict[Key, int] = {}
        for row in begun:
            if row[4] not in now:
                key = self._group_of(row, found)
                if key is not None:
                    ended[key] = ended.get(key, 0) + 1
        for key, rows in found.items():
            _, inbound, _, family, peer, port = key
            oldest = sorted(rows, key=lambda row: -row[11] if row[11] != NEVER_MS else 0)
            holders = [self._owners.owner(row[8]) for row in oldest[:_MOST_FDS]]
            lasting = sum(row[4] in before for row in rows)
            age_ms = oldest[0][11]
            self.closing.append(
                Closing(
                    self._owner(oldest[0][8]), packed(family, peer), _number(port), inbound, lasting + ended.get(key, 0),
                    len(rows), lasting, None if age_ms == NEVER_MS else age_ms,
                    tuple(sorted(owner.fd for owner in holders if owner is not None)),
                )
            )  # fmt: skip

    def _group_of(self, row: Row, groups: Iterable[Key]) -> Key | None:
        """The group of a connection that was closed within the window. Its process is unknown where it was read at the end alone."""
        pid_of = self._owners.pid_of
        pid = None if pid_of is None else pid_of(row[8])
        same = [
            key
            for key in groups
            if key[4] == row[3] and key[5] == (row[2][:2] if key[1] else row[2][2:]) and pid in (None, key[0])
        ]
        return same[0] if len(same) == 1 else None


def _number(port: bytes) -> int:
    return int.from_bytes(port, "big")
