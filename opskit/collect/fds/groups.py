"""Sort the fds of a table into groups of one kind and place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.fd_kinds import FILE, FILE_DELETED, kind_of, path_kind, place_of, unmounted_kind_of
from opskit.proc.files.fd import PIPE_PREFIX
from opskit.proc.fs import optional
from opskit.proc.kernel.syscalls import socket_protocol
from opskit.proc.net_sockets import SOCKET_PREFIX, name_sockets
from opskit.proc.process_mounts import ProcessMounts, is_remote
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from opskit.host import Host
    from opskit.proc.net_sockets import NamedSocket

Key = tuple[str, str]  # kind and detail
Fd = tuple[bytes, bytes]  # its number and its target
Parts = tuple[object, ...]  # the directory that has `fd`: (PID,) or (PID, "task", TID)

# Of the files in one directory so many are looked at; where they are all what their names say, so are the others.
_SAMPLED = 64
_MOST_LOOKED_AT, _MOST_DIRECTORIES, _MOST_CHECKED = 20_000, 2_000, 1_000
_MOST_GROUPS, _MOST_CLIENTS = 5_000, 16
_BY_DIRECTORY = frozenset((FILE, FILE_DELETED))
_ELSEWHERE = "elsewhere"
_UNLISTED = "neither connected nor bound, or of another network namespace"


class Members(NamedTuple):
    """The fds of one group, and what one of them leads to."""

    fds: list[Fd]
    example: str


class Grouping(NamedTuple):
    """All groups; `unknown`: sockets of which nothing is known; `unseen`: fds of files that were not looked at, since that may hang.

    `beyond`: files that were not looked at, since they are too many.
    """

    groups: dict[Key, Members]
    unknown: int
    unseen: int
    beyond: int


class Grouper:
    """Groups the fds of one process, look after look: a group that was named in one look keeps its name in the next."""

    def __init__(self, host: Host) -> None:
        self._host, self._fs = host, host.fs
        self._known: set[Key] = set()
        # A port that is listened on -> the hosts that have a group of their own.
        self._clients: dict[int, set[str]] = {}
        self._begin()

    def _begin(self) -> None:
        # Mounts come and go during a watch, and a new one gets the number of an old one.
        self._mounts = ProcessMounts(self._fs)
        self._unknown = self._beyond = 0
        self._left = _MOST_LOOKED_AT
        self._unseen: set[Fd] = set()
        self._may_look: dict[Fd, bool] = {}

    def sort(self, parts: Parts, fds: Sequence[Fd]) -> Grouping:
        """Sort the fds of one table."""
        self._begin()
        sockets: list[Fd] = []
        pipes: list[Fd] = []
        directories: dict[bytes, list[Fd]] = {}
        by_target: dict[bytes, list[Fd]] = {}
        for fd in fds:
            target = fd[1]
            if target.startswith(b"/"):
                directories.setdefault(target.rpartition(b"/")[0], []).append(fd)
            elif target.startswith(SOCKET_PREFIX):
                sockets.append(fd)
            elif target.startswith(PIPE_PREFIX):
                pipes.append(fd)
            else:
                by_target.setdefault(target, []).append(fd)
        found: dict[Key, Members] = {}
        if pipes:
            _add(found, ("pipe", ""), pipes)
        for target, same in by_target.items():
            _add(found, kind_of(target), same)
        for fd in directories.pop(b"", ()):
            unmounted = unmounted_kind_of(fd[1])
            if unmounted is None:
                directories.setdefault(b"/", []).append(fd)
            else:
                _add(found, unmounted, [fd])
        for key, same in self._files(parts, directories):
            _add(found, key, same)
        for key, same in self._sockets(parts, sockets):
            _add(found, key, same)
        return Grouping(self._bounded(found), self._unknown, len(self._unseen), self._beyond)

    def _bounded(self, found: dict[Key, Members]) -> dict[Key, Members]:
        """At most 5,000 groups: the largest of the first look, and what came later while there is room; the rest by kind."""
        if self._known >= found.keys():
            return found
        for key in sorted(found, key=lambda key: -len(found[key].fds)):
            if len(self._known) < _MOST_GROUPS:
                self._known.add(key)
        kept: dict[Key, Members] = {}
        for key, members in found.items():
            _add(kept, key if key in self._known else (key[0], _ELSEWHERE), members.fds, members.example)
        return kept

    def _files(self, parts: Parts, directories: Mapping[bytes, list[Fd]]) -> Iterator[tuple[Key, list[Fd]]]:
        for number, (directory, fds) in enumerate(directories.items()):
            paths = {fd[1]: fd for fd in fds}
            if self._left > 0 and number < _MOST_DIRECTORIES:
                kinds = self._kinds(parts, paths)
            else:
                kinds = {}
                self._beyond += len(paths)
            if self._unseen:
                self._unseen.update(fd for fd in fds if paths[fd[1]] in self._unseen)
            places: dict[tuple[str, bytes], list[Fd]] = {}
            for fd in fds:
                path = fd[1]
                kind = kinds.get(path) or path_kind(path, None, 1)
                places.setdefault((kind, directory if kind in _BY_DIRECTORY else path), []).append(fd)
            for (kind, place), same in places.items():
                yield (kind, place_of(place)), same

    def may_look(self, parts: Parts, fd: Fd) -> bool:
        """Whether the file is on a local file system of a live machine. A stat on another one may wait for ever.

        Each file is asked about: one in the same directory may be a mount of its own, or have been opened before or below one.
        """
        if fd not in self._may_look:
            mount = self._mounts.of_fd(parts, _text(fd[0])) if self._fs.is_live else None
            self._may_look[fd] = mount is not None and not is_remote(mount)
        return self._may_look[fd]

    def _kinds(self, parts: Parts, paths: Mapping[bytes, Fd]) -> dict[bytes, str]:
        """The kinds of the paths: of all, or of some where the others are what their names say."""
        step = max(1, len(paths) // _SAMPLED)
        sample = [*paths.values()][::step]
        kinds = self._look(parts, sample)
        if step == 1:
            return kinds
        if self._unseen.issuperset(sample):  # all of one mount, as it seems
            self._unseen.update(paths.values())
        elif not self._unseen.isdisjoint(sample) or any(
            kind != path_kind(path, None, 1) for path, kind in kinds.items()
        ):
            kinds.update(self._look(parts, [fd for path, fd in paths.items() if path not in kinds]))
        return kinds

    def _look(self, parts: Parts, fds: Sequence[Fd]) -> dict[bytes, str]:
        kinds = {}
        for fd in fds[: self._left]:
            name, path = fd
            if self.may_look(parts, fd):
                found = optional(self._fs.file_id, *parts, "fd", _text(name))
                if found is not None:  # else it was closed meanwhile
                    kinds[path] = path_kind(path, found.mode, found.links)
            else:
                self._unseen.add(fd)
        self._beyond += max(0, len(fds) - self._left)
        self._left = max(0, self._left - len(fds))
        return kinds

    def _sockets(self, parts: Parts, sockets: Sequence[Fd]) -> Iterator[tuple[Key, list[Fd]]]:
        names, place_of_socket = name_sockets(self._fs, parts, [fd[1] for fd in sockets])
        named: list[list[Fd]] = [[] for _ in names]
        unnamed: list[Fd] = []
        for fd in sockets:
            place = place_of_socket.get(fd[1])
            (unnamed if place is None else named[place]).append(fd)
        self._choose_clients(zip(names, map(len, named)))
        for name, fds in zip(names, named):
            yield (name.kind, self._detail(name)), fds
        for number, fd in enumerate(unnamed):
            protocol = self._protocol(parts, fd) if number < _MOST_CHECKED else ""
            if protocol is not None:
                self._unknown += not protocol
                yield _unlisted(protocol), [fd]

    def _protocol(self, parts: Parts, fd: Fd) -> str | None:
        """The protocol of a socket that no table lists, empty where it is unknown; None: it was closed meanwhile."""
        name = _text(fd[0])
        if not self._fs.is_live:
            return ""
        if optional(self._fs.link, *parts, "fd", name) != fd[1]:
            return None
        return (
            optional(self._fs.calls.ask, socket_protocol, self._fs.path(*parts, "fd", name), default="")
            if self._host.is_own
            else ""
        )

    def _choose_clients(self, names: Iterable[tuple[NamedSocket, int]]) -> None:
        """Each port gets groups of its own for the 16 hosts with the most connections; others are one group."""
        counts: dict[tuple[int, str], int] = {}
        for named, number in names:
            if named.client:
                counts[named.port, named.client] = counts.get((named.port, named.client), 0) + number
        for port, client in sorted(counts, key=lambda key: (-counts[key], key)):
            chosen = self._clients.setdefault(port, set())
            if len(chosen) < _MOST_CLIENTS:
                chosen.add(client)

    def _detail(self, named: NamedSocket) -> str:
        if not named.client:
            return named.detail
        client = named.client if named.client in self._clients[named.port] else "other clients"
        return f"{named.detail} from {client} to port {named.port}"


def _add(found: dict[Key, Members], key: Key, fds: list[Fd], example: str = "") -> None:
    known = found.get(key)
    if known is None:
        found[key] = Members([*fds], example or _text(fds[0][1]))
    else:
        known.fds.extend(fds)


def _unlisted(protocol: str) -> Key:
    """A socket that no file of the network namespace lists, by its protocol: `TCP`, `UDPv6`, `UNIX-STREAM`."""
    kind = next((kind for kind in ("tcp", "udp", "unix", "netlink", "packet") if protocol.lower().startswith(kind)), "")
    return (kind, _UNLISTED) if kind else ("socket", protocol)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
