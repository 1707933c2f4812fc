"""Ask the time server that the user names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.clock.facts import Server
from opskit.errors import UsageError
from opskit.proc.kernel.clock_reads import read_pair
from opskit.proc.kernel.sntp import NoAnswer, ask_server
from opskit.proc.sntp import PORT
from opskit.quantities import integer

if TYPE_CHECKING:
    from opskit.host import Host

_LONGEST_NAME = 253
_AT_LEAST_S = 16.0  # between two questions of a watch: RFC 4330 allows one in 15 s


def parse_server(text: str) -> tuple[str, int]:
    """(host, port) of HOST[:PORT], [IPV6][:PORT] or IPV6. Raises UsageError."""
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        is_right, word = bool(closed) and rest[:1] in ("", ":"), rest[1:] if rest else str(PORT)
    elif text.count(":") == 1:
        host, _, word = text.partition(":")
        is_right = True
    else:
        host, word, is_right = text, str(PORT), True
    port = integer(word)
    if not (is_right and host.isprintable() and 0 < len(host) <= _LONGEST_NAME and " " not in host):
        raise UsageError(f"--server {text[:60]}: not a server; write HOST, HOST:PORT or [IPV6]:PORT")
    if port is None or not 0 < port < 65536:
        raise UsageError(f"--server {text[:60]}: {word[:20]!r} is not a port; write a number from 1 to 65535")
    return host, port


class ServerReader:
    """Asks at most every 16 s; a server that refuses is never asked again."""

    def __init__(self, host: Host, server: tuple[str, int]) -> None:
        host.prove_here("--server")
        self._host, self._server = host, server
        self._last: Server | None = None
        self._asked_s = 0.0
        self._asked_ns = 0  # how far the clock was ahead of CLOCK_BOOTTIME then

    def look(self) -> Server:
        """The last answer, which may be some seconds old. What the clock was set by since then is taken off its offset."""
        now_s, now_ns = self._host.monotonic(), read_pair().real_ns
        last = self._last
        if last is None or (now_s - self._asked_s >= _AT_LEAST_S and not _is_refusal(last)):
            self._asked_s, self._asked_ns = now_s, now_ns
            self._last = self._ask()
            return self._last
        exchange = last.exchange
        if exchange is not None:
            exchange = exchange._replace(offset_s=exchange.offset_s - (now_ns - self._asked_ns) / 1e9)
        return last._replace(exchange=exchange, ago_s=now_s - self._asked_s)

    def _ask(self) -> Server:
        name, port = self._server
        try:
            found = ask_server(name, port)
        except NoAnswer as error:
            return Server(name, port, None, str(error))
        refusal = found.reply.refusal
        if refusal is not None:
            return Server(
                name, port, found, f"it refuses to answer (kiss-o'-death {refusal}); do not ask it again for a while"
            )
        return Server(name, port, found, None)


def _is_refusal(server: Server) -> bool:
    return server.exchange is not None and server.exchange.reply.refusal is not None
