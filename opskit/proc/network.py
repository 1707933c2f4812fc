"""A network namespace that questions are put to: that of this thread, or of another process (`fs.calls.network(path)`)."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, TypeVar

from opskit.errors import NotSupported
from opskit.proc.fs import ProcFS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from opskit.proc.kernel.network_namespace import NetworkNamespace
    from opskit.proc.kernel.sock_diag import SockDiag

T = TypeVar("T")


class Network:
    """A network namespace, held open: it lasts when the process ends."""

    def __init__(self, path: str | None = None) -> None:
        """Enter the one at a path once, `/proc/4242/ns/net`. Raises OSError: ENOENT, EACCES, EPERM without CAP_SYS_ADMIN."""
        self._diag: SockDiag | None = None
        self._namespace: NetworkNamespace | None = None
        if path is None:
            return
        from opskit.proc.kernel.network_namespace import NetworkNamespace

        self._namespace = NetworkNamespace(path)
        try:
            with self._namespace.inside():
                pass
        except OSError:
            self._namespace.close()
            raise

    def inside(self) -> AbstractContextManager[None]:
        """Move this thread there, and back. Raises OSError."""
        return nullcontext() if self._namespace is None else self._namespace.inside()

    def fs(self, fs: ProcFS) -> ProcFS:
        """A tree whose thread-self/net and sys/net are those of the namespace, for reads while this thread is inside."""
        return fs

    def ask(self, question: Callable[..., T], *arguments: object) -> T:
        """question(*arguments), put inside; see Calls.ask for what it may be."""
        with self.inside():
            return question(*arguments)

    def connect(self) -> None:
        """Make the netlink socket. Raises OSError: EPERM, EACCES, EPROTONOSUPPORT."""
        from opskit.proc.kernel.sock_diag import SockDiag

        with self.inside():
            self._diag = SockDiag()

    def dump(self, states: int, asked: int) -> Iterable[bytes]:
        """As SockDiag.dump."""
        return self._connected().dump(states, asked)

    def dump_unix(self) -> Iterable[bytes]:
        """As SockDiag.dump_unix."""
        return self._connected().dump_unix()

    def look(self, keys: list[bytes]) -> Iterable[bytes | None]:
        """As SockDiag.look."""
        return self._connected().look(keys)

    def _connected(self) -> SockDiag:
        if self._diag is None:
            raise NotSupported("sock_diag is not connected")
        return self._diag

    def close(self) -> None:
        """Let the namespace and the netlink socket go."""
        if self._namespace is not None:
            self._namespace.close()
        if self._diag is not None:
            self._diag.close()


def our_network() -> bytes | None:
    """The network namespace of this thread, `net:[4026531840]`."""
    try:
        return ProcFS().link("thread-self", "ns", "net")
    except OSError:
        return None
