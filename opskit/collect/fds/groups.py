"""Sort the fds of a table into groups of one kind and place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.proc.fd_kinds import FILE, FILE_DELETED, kind_of, path_kind, place_of, unmounted_kind_of
from opskit.proc.fd_mounts import FdMounts
from opskit.proc.files.mountinfo import REMOTE
from opskit.proc.fs import optional
from opskit.proc.kernel.syscalls import socket_protocol
from opskit.proc.net_sockets import name_sockets
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.host import Host
    from opskit.proc.net_sockets import NamedSocket

Key = tuple[str, str]  # kind and detail
Fd = tuple[bytes, bytes]  # its number and its target
Parts = tuple[object, ...]  # the directory that has `fd`: (PID,) or (PID, "task", TID)

SOCKET_PREFIX, PIPE_PREFIX = b"socket:[", b"pipe:["
# Of the files in one directory so many are looked at; where they are all regular files, the others count as such.
_SAMPLED = 64
_MOST_LOOKED_AT, _MOST_DIRECTORIES, _MOST_CHECKED = 20_000, 2_000, 1_000
_MOST_GROUPS, _MOST_CLIENTS = 5_000, 16
_ELSEWHERE = "elsewhere"


class Members(NamedTuple):
    """The fds of one group, and what one of them leads to."""

    fds: list[Fd]
    example: str


class Grouping(NamedTuple):
    """All groups; `unknown`: sockets of which nothing is known; `unseen`: fds whose file was not looked at, since that may hang."""

    groups: dict[Key, Members]
    unknown: int
    unseen: int


class Grouper:
    """Groups the fds of one process, look after look: a group that was named in one look keeps its name in the next."""

    def __init__(self, host: Host) -> None:
        self._host, self._fs = host, host.fs
        self._mounts = FdMounts(host.fs)
        self._known: set[Key] = set()
        self._clients: dict[
            int, set[str]
        ] = {}  # a port that is listened on -> the hosts that have a group of their own
        self._unknown = self._unseen = 0

    def sort(self, parts: Parts, fds: Sequence[Fd]) -> Grouping:
        """Sort the fds of one table."""
        self._unknown = self._unseen = 0
        sockets: list[Fd] = []
        pipes: list[Fd] = []
        by_path: dict[bytes, list[Fd]] = {}
        by_target: dict[bytes, list[Fd]] = {}
        for fd in fds:
            target = fd[1]
            if target.startswith(b"/"):
                by_path.setdefault(target, []).append(fd)
            elif target.startswith(SOCKET_PREFIX):
                sockets.append(fd)
            elif target.startswith(PIPE_PREFIX):
                pipes.append(fd)
            else:
                by_target.setdefault(target, []).append(fd)
        found: dict[Key, Members] = {}
        if pipes:
            _add(found, ("pipe", ""), pipes, _text(pipes[0][1]))
        for target, same in by_target.items():
            _add(found, kind_of(target), same, _text(target))
        for key, path in self._paths(parts, by_path):
            _add(found, key, by_path[path], _text(path))
        for key, fd, example in self._sockets(parts, sockets):
            _add(found, key, [fd], example)
        return Grouping(self._bounded(found), self._unknown, self._unseen)

    def _bounded(self, found: dict[Key, Members]) -> dict[Key, Members]:
        """At most 5,000 groups, the largest of the first look and what came later; the rest by kind."""
        for key in sorted(found, key=lambda key: -len(found[key].fds)):
            if len(self._known) < _MOST_GROUPS:
                self._known.add(key)
        if self._known >= found.keys():
            return found
        kept: dict[Key, Members] = {}
        for key, members in found.items():
            _add(kept, key if key in self._known else (key[0], _ELSEWHERE), members.fds, members.example)
        return kept

    def _paths(self, parts: Parts, by_path: Mapping[bytes, list[Fd]]) -> Iterator[tuple[Key, bytes]]:
        directories: dict[bytes, list[bytes]] = {}
        for path in by_path:
            unmounted = unmounted_kind_of(path)
            if unmounted is not None:
                yield unmounted, path
            else:
                directories.setdefault(path.rpartition(b"/")[0], []).append(path)
        left = _MOST_LOOKED_AT
        for number, paths in enumerate(directories.values()):
            names = [_text(by_path[path][0][0]) for path in paths]
            if left > 0 and number < _MOST_DIRECTORIES and self._may_look(parts, names[0]):
                looked = self._look(parts, paths, names)
            else:
                looked = [(path, None, 1) for path in paths]
                self._unseen += sum(len(by_path[path]) for path in paths)
            left -= len(paths)
            for path, mode, links in looked:
                kind = path_kind(path, mode, links)
                yield (kind, place_of(path, kind)), path

    def _may_look(self, parts: Parts, fd: str) -> bool:
        """Whether the file is on a local file system of a live machine. A stat on another one may wait for ever."""
        if not self._fs.is_live:
            return False
        try:
            fs_type = self._mounts.type_of(parts, fd)
        except (OSError, BadInput):
            return False
        return bool(fs_type) and not fs_type.startswith(REMOTE)

    def _look(self, parts: Parts, paths: list[bytes], names: list[str]) -> list[tuple[bytes, int | None, int]]:
        """(path, mode, links) of each; mode None: closed meanwhile, or like the regular files beside it."""
        step = max(1, len(paths) // _SAMPLED)
        chosen = {path: self._stat(parts, name) for path, name in zip(paths[::step], names[::step])}
        kinds = {path_kind(path, *found) for path, found in chosen.items()}
        if step > 1 and not kinds <= {FILE, FILE_DELETED}:
            chosen = {path: self._stat(parts, name) for path, name in zip(paths, names)}
        return [(path, *chosen.get(path, (None, 1))) for path in paths]

    def _stat(self, parts: Parts, fd: str) -> tuple[int | None, int]:
        found = optional(self._fs.file_id, *parts, "fd", fd)
        return (None, 1) if found is None else (found.mode, found.links)

    def _sockets(self, parts: Parts, sockets: Sequence[Fd]) -> Iterator[tuple[Key, Fd, str]]:
        names = name_sockets(self._fs, parts, (target[len(SOCKET_PREFIX) : -1] for _, target in sockets))
        self._choose_clients(names)
        unnamed = []
        for fd in sockets:
            named = names.get(fd[1][len(SOCKET_PREFIX) : -1])
            if named is None:
                unnamed.append(fd)
            else:
                yield (named.kind, self._detail(named)), fd, _ends(named) or _text(fd[1])
        for number, fd in enumerate(unnamed):
            protocol = self._protocol(parts, fd) if number < _MOST_CHECKED else ""
            if protocol is not None:
                self._unknown += not protocol
                yield _unnamed(protocol), fd, _text(fd[1])

    def _protocol(self, parts: Parts, fd: Fd) -> str | None:
        """The protocol of a socket that no table lists, empty where it is unknown; None: it was closed meanwhile."""
        name = _text(fd[0])
        if not self._fs.is_live:
            return ""
        if optional(self._fs.link, *parts, "fd", name) != fd[1]:
            return None
        return optional(socket_protocol, self._fs.path(*parts, "fd", name), default="") if self._fs.is_own() else ""

    def _choose_clients(self, names: Mapping[bytes, NamedSocket]) -> None:
        """Each port gets groups of its own for the 16 hosts with the most connections; others are one group."""
        counts: dict[tuple[int, str], int] = {}
        for named in names.values():
            if named.client:
                counts[named.port, named.client] = counts.get((named.port, named.client), 0) + 1
        for port, client in sorted(counts, key=lambda key: -counts[key]):
            chosen = self._clients.setdefault(port, set())
            if len(chosen) < _MOST_CLIENTS:
                chosen.add(client)

    def _detail(self, named: NamedSocket) -> str:
        if not named.client:
            return named.detail
        client = named.client if named.client in self._clients[named.port] else "other clients"
        return f"{named.detail} from {client} to port {named.port}"


def _add(found: dict[Key, Members], key: Key, fds: list[Fd], example: str) -> None:
    known = found.get(key)
    if known is None:
        found[key] = Members([*fds], example)
    else:
        known.fds.extend(fds)


def _ends(named: NamedSocket) -> str:
    if named.client:
        return f"{named.peer} -> {named.local}"
    return f"{named.local} -> {named.peer}" if named.peer else named.local


def _unnamed(protocol: str) -> Key:
    """A socket that no file of the network namespace lists, by its protocol: `TCP`, `UDPv6`, `UNIX-STREAM`."""
    for kind in ("tcp", "udp", "unix", "netlink", "packet"):
        if protocol.lower().startswith(kind):
            return kind, "neither connected nor bound, or of another network namespace"
    return "socket", protocol


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
