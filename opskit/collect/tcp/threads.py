"""Adds the threads that sleep on connections: of the processes that are asked for, and with --ask of JVMs, whose stacks one dump gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.collect.fd_threads import FdThread
    from opskit.collect.tcp.facts import Closing, Owner, Request, Watched
    from opskit.host import Host

R = TypeVar("R", "Watched", "Closing")
_MOST_PROCESSES = 8  # those with the most connections


class ConnectionThreads:
    """Finds them, in a watch with --ask once for each process: a dump pauses the JVM."""

    def __init__(self, host: Host, ask: Request) -> None:
        self._host, self._ask = host, ask
        self._dumped: dict[tuple[int, int | None], tuple[FdThread, ...]] = {}

    def add(
        self, connections: Sequence[Watched], closing: Sequence[Closing], problems: list[str]
    ) -> tuple[tuple[Watched, ...], tuple[Closing, ...]]:
        """The same records with threads. `problems` gets the reasons why a JVM gave no dump."""
        found: dict[tuple[int, int], list[FdThread]] = {}
        for owner, fds in self._fds(connections, closing):
            for thread in self._threads(owner, fds, problems):
                found.setdefault((owner.pid, thread.fd), []).append(thread)
        if not found:
            return tuple(connections), tuple(closing)
        return (
            tuple(_with(each, found, () if each.owner is None else (each.owner.fd,)) for each in connections),
            tuple(_with(each, found, each.fds) for each in closing),
        )

    def _fds(self, connections: Sequence[Watched], closing: Sequence[Closing]) -> Iterator[tuple[Owner, set[int]]]:
        """The fds to look for, by the process: of connections that were sampled, and of one that is to be closed."""
        asked = self._ask.pids
        if not self._host.is_own or not (asked or self._ask.ask):
            return
        fds: dict[int, tuple[Owner, set[int]]] = {}
        for connection in connections:
            if connection.owner is not None and connection.samples:
                fds.setdefault(connection.owner.pid, (connection.owner, set()))[1].add(connection.owner.fd)
        for pile in closing:
            if pile.owner is not None:
                fds.setdefault(pile.owner.pid, (pile.owner, set()))[1].update(pile.fds[:1])
        wanted = [one for one in fds.values() if asked or one[0].is_jvm]
        yield from sorted(wanted, key=lambda one: -len(one[1]))[:_MOST_PROCESSES]

    def _threads(self, owner: Owner, fds: set[int], problems: list[str]) -> tuple[FdThread, ...]:
        from opskit.collect.fd_threads import waiting_threads

        if not self._ask.ask or not owner.is_jvm:
            return waiting_threads(self._host, owner.pid, fds, ask=False)
        key = owner.pid, owner.start_ticks
        if key not in self._dumped:
            self._dumped[key] = waiting_threads(self._host, owner.pid, fds, ask=True, problems=problems)
        return tuple(thread for thread in self._dumped[key] if thread.fd in fds)


def _with(record: R, found: Mapping[tuple[int, int], Sequence[FdThread]], fds: Sequence[int]) -> R:
    if record.owner is None:
        return record
    threads = tuple(thread for fd in fds for thread in found.get((record.owner.pid, fd), ()))
    return record._replace(threads=threads) if threads else record
