"""Whether a process listens on an attach socket, by the lists of unix sockets: nothing is connected to.

A JVM binds `/tmp/.java_pid42.tmp` and renames the file: the list keeps the first name. Each network namespace has a list of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.fs import optional
from opskit.proc.unix_sockets import LISTENING, parse_net_unix

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.jvm.discover import Jvm
    from opskit.proc.fs import ProcFS

_MARK = b"/.java_pid"


class ListeningSockets:
    """The attach sockets of the network namespaces of these JVMs, and of ours."""

    def __init__(self, fs: ProcFS, jvms: Iterable[Jvm]) -> None:
        self.fs = fs
        self._lists: dict[bytes | None, frozenset[bytes] | None] = {}
        self._places: dict[int, bytes | None] = {}
        for who in ("self", *(jvm.pid for jvm in jvms)):
            place = optional(fs.link, who, "ns", "net")
            if place not in self._lists or self._lists[place] is None:
                self._lists[place] = optional(_names, fs, who)
            if isinstance(who, int):
                self._places[who] = place

    def of_jvm(self, jvm: Jvm, name: str) -> tuple[bool | None, int | None]:
        """(whether a process listens on the JVM's socket, None: unknown; its PID, where only that JVM can have that name)."""
        here = self._lists.get(self._places.get(jvm.pid))
        if here is None:
            return None, None
        if name.encode() in here:
            return True, jvm.pid if jvm.ns_pid == jvm.pid else None
        return (None if self.is_anywhere(name) is not False else False), None

    def is_anywhere(self, name: str) -> bool | None:
        """Whether a process listens on a socket of that name in any of the namespaces; None: some could not be read."""
        if any(name.encode() in names for names in self._lists.values() if names):
            return True
        return None if None in self._lists.values() else False


def _names(fs: ProcFS, who: int | str) -> frozenset[bytes]:
    """The names, without the directory, of the listening attach sockets."""
    lines = b"\n".join(line for line in fs.read(who, "net", "unix").split(b"\n") if _MARK in line)
    return frozenset(
        each.name.rpartition(b"/")[2].removesuffix(b".tmp") for each in parse_net_unix(lines) if each.state == LISTENING
    )
