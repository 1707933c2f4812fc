"""All TCP sockets of a network namespace at one time, as sock_diag(7) or /proc/PID/net/tcp has them: rows, and records of some."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from opskit.proc.inet_diag import as_row, key_of, parse_socket
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from opskit.proc.inet_diag import Reader, Row
    from opskit.proc.tcp_sockets import Socket

T = TypeVar("T")


class Place(NamedTuple):
    """A socket in a dump: when it was read, the key for sock_diag (empty in /proc), and its record, parsed when it is asked for."""

    at_s: float
    key: bytes
    socket: Callable[[], Socket]


class Dump(Generic[T]):
    """One dump, in chunks. `rows`: each socket's start in a chunk, and its row; `parse` and `key`: its record and its key there."""

    def __init__(
        self, chunks: Iterable[T], rows: Callable[[T], Iterable[tuple[int, Row]]], parse: Callable[[T, int], Socket],
        key: Callable[[T, int], bytes], clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self._chunks = [(clock(), chunk) for chunk in chunks]
        self._rows, self._parse, self._key = rows, parse, key
        self.at_s = self._chunks[-1][0] if self._chunks else clock()

    def __iter__(self) -> Iterator[tuple[tuple[float, T], int, Row]]:
        """Each row, and the arguments of place()."""
        for chunk in self._chunks:
            for start, row in self._rows(chunk[1]):
                yield chunk, start, row

    def place(self, chunk: tuple[float, T], start: int) -> Place:
        """The place of a row."""
        return Place(chunk[0], self._key(chunk[1], start), lambda: self._parse(chunk[1], start))

    def places(self) -> Iterator[Place]:
        """Where every socket is."""
        return (self.place(chunk, start) for chunk, start, _ in self)

    def find(self, cookies: Collection[bytes]) -> dict[bytes, Place]:
        """Where these sockets are."""
        return {row[4]: self.place(chunk, start) for chunk, start, row in self if row[4] in cookies} if cookies else {}


def read_dump(messages: Iterable[bytes], reader: Reader, clock: Callable[[], float]) -> Dump[bytes]:
    """The messages of sock_diag."""
    return Dump(messages, reader.rows, parse_socket, key_of, clock)


def listed_dump(sockets: Sequence[Socket], clock: Callable[[], float]) -> Dump[Sequence[Socket]]:
    """The sockets of /proc/PID/net/tcp. A cookie is the addresses and ports; nothing tells when data was sent or received."""
    return Dump(
        [sockets], lambda some: enumerate(map(as_row, some)), lambda some, number: some[number], lambda *_: b"", clock
    )
