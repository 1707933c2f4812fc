"""A network namespace of a captured machine: what sock_diag and the files of /proc/net and /proc/sys/net said there."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from opskit.proc.fs import LARGEST_BYTES, ProcFS, Refused, largest_bytes
from opskit.proc.inet_diag import INFO, SKMEMINFO, key_of, message_starts
from opskit.proc.kernel.sock_diag import ALL_STATES, extensions
from opskit.proc.network import Network
from opskit.proc.recorded import calls as kept
from opskit.proc.tcp_sockets import LISTEN

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from opskit.proc.recorded.calls import TapeCalls

T = TypeVar("T")
_INFO = extensions(INFO)
_WHOLE = extensions(INFO, SKMEMINFO)  # with the buffers, which looks at single connections show
_NAME = "network."
SAMPLED_FILES = tuple(f"/proc/thread-self/net/{name}" for name in ("snmp", "netstat", "sockstat", "stat/nf_conntrack"))
SAMPLED_DUMPS = ((ALL_STATES, _WHOLE), (1 << LISTEN, extensions(SKMEMINFO)))  # states, attributes: for rates


def dump_key(path: str | None, states: int, asked: int) -> str:
    """The key of a dump on the tape."""
    return kept.key_of(f"{_NAME}dump", (path, states, asked))


def file_key(network_path: str | None, path: str) -> str:
    """The key of a file that was read inside."""
    return kept.key_of(f"{_NAME}read", (network_path, path))


def read_within(network: Network, path: str) -> bytes:
    """A whole file, as a thread inside reads it. Raises OSError."""
    with network.inside():
        return ProcFS().read_path(path)


class TapeNetwork(Network):
    """The answers of a network namespace. Looks at single connections are made in the dump of the same mark."""

    def __init__(self, calls: TapeCalls, path: str | None) -> None:
        """Raises OSError as it was there."""
        super().__init__()
        self._calls, self._path = calls, path
        self._live: Network | None = None
        self._is_connected = False
        self._messages: tuple[int, dict[bytes, bytes]] = -1, {}
        self._answer("enter", "None", (), lambda _: None)

    def inside(self) -> AbstractContextManager[None]:
        """The thread stays where it is."""
        return nullcontext()

    def fs(self, fs: ProcFS) -> ProcFS:
        """The files that were read inside."""
        return fs if self._path is None else InsideFS(fs, self)

    def ask(self, question: Callable[..., T], *arguments: object) -> T:
        """The answer that was given inside."""
        found: T = self._answer(
            kept.name_of(question),
            question.__annotations__["return"],
            arguments,
            lambda live: live.ask(question, *arguments),
        )
        return found

    def read_inside(self, path: str) -> bytes:
        """A whole file, as a thread inside reads it. Raises OSError."""
        found: bytes = self._answer("read", "bytes", (path,), lambda live: read_within(live, path))
        return found

    def connect(self) -> None:
        """Whether there was sock_diag."""

        def connect(live: Network) -> None:
            self._connect(live)

        self._answer("connect", "None", (), connect)

    def dump(self, states: int, asked: int) -> list[bytes]:
        """The chunks of a dump."""
        if (states, asked) == (ALL_STATES, _INFO):
            asked = _WHOLE
        found: list[bytes] = self._answer(
            "dump", "list[bytes]", (states, asked), lambda live: [*self._connect(live).dump(states, asked)]
        )
        return found

    def dump_unix(self) -> list[bytes]:
        """The chunks of a dump of unix sockets."""
        found: list[bytes] = self._answer(
            "dump_unix", "list[bytes]", (), lambda live: [*self._connect(live).dump_unix()]
        )
        return found

    def look(self, keys: list[bytes]) -> list[bytes | None]:
        """Each connection as the dump of this mark has it."""
        mark = self._calls.mark
        if self._messages[0] != mark:
            chunks = self.dump(ALL_STATES, _INFO)
            found = {key_of(chunk, start): chunk[start:end] for chunk in chunks for start, end in message_starts(chunk)}
            self._messages = mark, found
        return [self._messages[1].get(key) for key in keys]

    def close(self) -> None:
        """Let go what the recording held."""
        if self._live is not None:
            self._live.close()
            self._live, self._is_connected = None, False

    def _answer(self, name: str, returns: str, arguments: tuple[object, ...], ask: Callable[[Network], Any]) -> Any:
        return self._calls.answer(
            f"{_NAME}{name}", returns, (self._path, *arguments), lambda source: ask(self._held(source))
        )

    def _held(self, source: ProcFS) -> Network:
        if self._live is None:
            self._live = source.calls.network(self._path)
        return self._live

    def _connect(self, live: Network) -> Network:
        if not self._is_connected:
            live.connect()
            self._is_connected = True
        return live


class InsideFS(ProcFS):
    """The files of PROC as a thread inside of the namespace read them."""

    def __init__(self, fs: ProcFS, network: TapeNetwork) -> None:
        super().__init__(fs.proc, fs.root or "/")
        self.is_live, self.calls = fs.is_live, fs.calls
        self._network = network

    def read_path(self, path: str, limit_bytes: int = LARGEST_BYTES) -> bytes:
        """A whole file."""
        data = self._network.read_inside(path)
        limit_bytes = largest_bytes(path, limit_bytes)
        if len(data) > limit_bytes:
            raise Refused.too_large(path, limit_bytes)
        return data
