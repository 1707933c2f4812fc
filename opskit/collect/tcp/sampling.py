"""Look at single connections 20 to 50 times a second, by their cookies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.tcp.facts import Sample
from opskit.proc.inet_diag import Reader, parse_socket
from opskit.proc.tcp_dumps import Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.collect.tcp.space import NetworkSpace
    from opskit.host import Host

MOST_SAMPLED = 200  # of more connections, those are sampled that do the most
MOST_ACTIVE = 50
_LOOKS_A_S = 2500
_FEWEST_HZ, _MOST_HZ = 20, 50
LISTENING_HZ = 4
QUICK_HZ, MOST_QUICK = 10, 30


def rate_hz(connections: int) -> float:
    """How often to look at so many connections; without any, only at listening sockets."""
    return min(_MOST_HZ, max(_FEWEST_HZ, _LOOKS_A_S / connections)) if connections else LISTENING_HZ


class Track:
    """One connection: its first and last look, and what changed in between. `is_gone`: it was closed."""

    def __init__(self, place: Place) -> None:
        self.is_gone = False
        self.first = self.last = place
        self.samples: list[Sample] = []

    def add(self, at_s: float, since_s: float, message: bytes, reader: Reader) -> None:
        """Add a look. `since_s`: when the sampling began."""
        found = reader.look(message)
        if found is None:
            return
        receive, send, unacked, sent_ms, received_ms, ssthresh, rtt_us, window = found
        self.last = Place(at_s, self.first.key, lambda: parse_socket(message))
        if not self.samples:  # a look has the sizes of the buffers, which a dump has not
            self.first = self.last
        self.samples.append(
            Sample(at_s - since_s, receive, send, sent_ms, received_ms, ssthresh, window, unacked, rtt_us)
        )


class Sampler:
    """Looks at connections of one network namespace; `tracks` by their cookies.

    `listening`: each listening socket at the first and the last look, and the most that waited for accept(2).
    """

    def __init__(self, host: Host, space: NetworkSpace) -> None:
        self._host, self._space = host, space
        self._reader = Reader()
        self._begun_s = host.monotonic()
        self.tracks: dict[bytes, Track] = {}
        self.listening: dict[bytes, tuple[Place, Place, int]] = {}

    def begin(self, places: Sequence[tuple[bytes, Place]]) -> None:
        """Choose the connections: cookies, and where each socket is in the dump."""
        self.tracks = {cookie: Track(place) for cookie, place in places}

    def keep_most_active(self, most: int) -> None:
        """Forget all but those with the longest queues, and those that moved the most bytes since the first look."""
        if len(self.tracks) <= most:
            return
        by_queue = sorted(self.tracks, key=lambda cookie: -_queued(self.tracks[cookie]))[: most // 2]
        queued = [cookie for cookie in by_queue if _queued(self.tracks[cookie])]
        moved = {cookie: _moved(track) for cookie, track in self.tracks.items()}
        active = sorted(set(self.tracks).difference(queued), key=lambda cookie: (-moved[cookie], cookie))
        kept = {*queued, *active[: most - len(queued)]}
        self.tracks = {cookie: track for cookie, track in self.tracks.items() if cookie in kept}

    def look(self) -> None:
        """Look once at each connection."""
        tracks = [track for track in self.tracks.values() if track.first.key and not track.is_gone]
        for track, message in zip(tracks, self._space.looks([track.first.key for track in tracks])):
            if message is None:
                track.is_gone = True
            else:
                track.add(self._host.monotonic(), self._begun_s, message, self._reader)

    def look_at_listening(self) -> None:
        """Look once at the queue of each listening socket, and at what it has dropped."""
        dump = self._space.listening()
        if dump is None:
            return
        for chunk, start, row in dump:
            cookie, waiting, place = row[4], row[5], dump.place(chunk, start)
            first, _, most = self.listening.get(cookie, (place, place, 0))
            self.listening[cookie] = first, place, max(most, waiting)


def _queued(track: Track) -> int:
    return max((sample.recv_queue + sample.send_queue for sample in track.samples), default=0)


def _moved(track: Track) -> int:
    """Bytes, and segments for those that exchange little, between the first look and the last."""
    before, after = track.first.socket().info, track.last.socket().info
    if before is None or after is None:
        return 0
    names = ("bytes_acked", "bytes_received", "segs_in", "segs_out")
    pairs = [(getattr(before, name), getattr(after, name)) for name in names]
    return sum(last - first for first, last in pairs if first is not None and last is not None)
