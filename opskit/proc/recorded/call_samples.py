"""What is asked of the kernel at each mark of a capture, beside the files of counters: sockets of network namespaces, the clock."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from opskit.proc.kernel.adjtimex import read_kernel_clock
from opskit.proc.kernel.clock_reads import read_pair
from opskit.proc.recorded.calls import kept_of, key_of, name_of
from opskit.proc.recorded.network import SAMPLED_DUMPS, SAMPLED_FILES, dump_key, file_key, read_within
from opskit.proc.recorded.tape import CALL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opskit.proc.fs import ProcFS
    from opskit.proc.network import Network
    from opskit.proc.recorded.tape import Tape

_CLOCK = (read_kernel_clock, read_pair)


class CallSamples:
    """Asks again and again, and keeps the answers when the samples are complete: so a sample takes little time."""

    def __init__(self, tape: Tape, source: ProcFS, paths: Iterable[str] = ()) -> None:
        """`paths`: other network namespaces than ours, `/proc/4242/ns/net`. Those that cannot be entered are left out."""
        self._tape, self._source = tape, source
        self._found: list[tuple[int, str, Any]] = []
        self._networks: list[tuple[str | None, Network]] = []
        for path in (None, *paths):
            with suppress(OSError):
                network = source.calls.network(path)
                self._networks.append((path, network))
                network.connect()

    def sample(self, mark: int) -> None:
        """Ask now."""
        for question in _CLOCK:
            self._put(mark, key_of(name_of(question), ()), self._source.calls.ask, question)
        for path, network in self._networks:
            for states, asked in SAMPLED_DUMPS:
                key = dump_key(path, states, asked)
                self._put(mark, key, _dumped, network, states, asked)
            for file in SAMPLED_FILES if path is not None else ():
                self._put(mark, file_key(path, file), read_within, network, file)

    def _put(self, mark: int, key: str, ask: Callable[..., Any], *arguments: object) -> None:
        try:
            self._found.append((mark, key, ask(*arguments)))
        except OSError as error:
            self._found.append((mark, key, error))

    def keep(self) -> None:
        """Put the samples on the tape, and let the network namespaces go."""
        for mark, key, answer in self._found:
            self._tape.keep_change(CALL, key, kept_of(answer), mark)
        self._found.clear()
        for _, network in self._networks:
            network.close()
        self._networks.clear()


def _dumped(network: Network, states: int, asked: int) -> list[bytes]:
    return [*network.dump(states, asked)]
