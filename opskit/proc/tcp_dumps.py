"""All TCP sockets of a network namespace at one time, as sock_diag(7) or /proc/PID/net/tcp has them: rows, and records of some."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import chain
from typing import TYPE_CHECKING, Any

from opskit.proc.inet_diag import as_end, as_row, key_of, parse_socket
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from opskit.proc.inet_diag import End, Reader, Row
    from opskit.proc.tcp_sockets import Socket


class Place(NamedTuple):
    """A socket in a dump: when it was read, the key for sock_diag (empty in /proc), and its record, parsed when it is asked for."""

    at_s: float
    key: bytes
    socket: Callable[[], Socket]


class Dump(ABC):
    """One dump, in chunks. `at_s`: when its last one was read."""

    def __init__(self, chunks: Iterable[Any], clock: Callable[[], float]) -> None:
        self._chunks = [(clock(), chunk) for chunk in chunks]
        self.at_s = self._chunks[-1][0] if self._chunks else clock()

    @abstractmethod
    def _rows(self, chunk: Any) -> Iterable[tuple[int, Row]]:
        """Each socket's start in a chunk, and its row."""

    @abstractmethod
    def _ends(self, chunk: Any) -> Iterable[End]:
        """The ends of the sockets in a chunk."""

    @abstractmethod
    def place(self, chunk: tuple[float, Any], start: int) -> Place:
        """The place of a row."""

    def chunks(self) -> Iterator[tuple[tuple[float, Any], Iterable[tuple[int, Row]]]]:
        """Each chunk with its rows and their starts, for place(). A loop over these takes half the time of one over all rows."""
        return ((chunk, self._rows(chunk[1])) for chunk in self._chunks)

    def __iter__(self) -> Iterator[tuple[tuple[float, Any], int, Row]]:
        """Each row, and the arguments of place()."""
        return ((chunk, start, row) for chunk, rows in self.chunks() for start, row in rows)

    def ends(self) -> Iterator[End]:
        """Each socket's state, local port and destination."""
        return chain.from_iterable(self._ends(chunk) for _, chunk in self._chunks)

    def find(self, cookies: Collection[bytes]) -> dict[bytes, Place]:
        """Where these sockets are."""
        return {row[4]: self.place(chunk, start) for chunk, start, row in self if row[4] in cookies} if cookies else {}


class MessageDump(Dump):
    """Messages of sock_diag. What is kept is what the kernel sent: rows and records are parsed when they are asked for."""

    def __init__(self, messages: Iterable[bytes], reader: Reader, clock: Callable[[], float]) -> None:
        super().__init__(messages, clock)
        self._reader = reader

    def _rows(self, chunk: bytes) -> Iterable[tuple[int, Row]]:
        return self._reader.rows(chunk)

    def _ends(self, chunk: bytes) -> Iterable[End]:
        return self._reader.ends(chunk)

    def place(self, chunk: tuple[float, bytes], start: int) -> Place:
        """The place of a row."""
        at_s, messages = chunk
        return Place(at_s, key_of(messages, start), lambda: parse_socket(messages, start))


class ListedDump(Dump):
    """The sockets of /proc/PID/net/tcp. A cookie is the addresses and ports; nothing tells when data was sent or received."""

    def __init__(self, sockets: Sequence[Socket], clock: Callable[[], float]) -> None:
        super().__init__([sockets], clock)

    def _rows(self, chunk: Sequence[Socket]) -> Iterable[tuple[int, Row]]:
        return enumerate(map(as_row, chunk))

    def _ends(self, chunk: Sequence[Socket]) -> Iterable[End]:
        return map(as_end, chunk)

    def place(self, chunk: tuple[float, Sequence[Socket]], start: int) -> Place:
        """The place of a row."""
        socket = chunk[1][start]
        return Place(chunk[0], b"", lambda: socket)
