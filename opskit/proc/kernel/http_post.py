"""Send one HTTP request that the user asked for, and read the whole answer: by a deadline, up to a size, without redirects or proxies."""

from __future__ import annotations

import os
import time
from io import BufferedReader, RawIOBase
from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping
    from http.client import HTTPConnection, HTTPResponse

_CHUNK_BYTES = 1 << 16


class Answer(NamedTuple):
    """`location`: where a redirect points."""

    status: int
    content_type: str
    location: str | None
    body: bytes


class NoAnswer(Exception):  # noqa: N818
    """Why there is no answer, as a clause. `kind`: refused, certificate, tls, name, size, cut, protocol, time or network."""

    def __init__(self, kind: str, why: str) -> None:
        self.kind = kind
        super().__init__(why)


def variable(name: str) -> str | None:
    """A variable of our environment: what must not stand on a command line, which everyone can read."""
    return os.environ.get(name)


def post(
    scheme: str, host: str, port: int, path: str, body: bytes, headers: Mapping[str, str], *, seconds: float, limit_bytes: int,
    address: str | None = None,
) -> Answer:  # fmt: skip
    """POST `body`; the server's certificate, for `host`, is verified. `address`: where it listens. Raises NoAnswer."""
    import ssl
    from http.client import HTTPException

    end = time.monotonic() + seconds
    # glibc waits 5 s for each name server, twice, and Ctrl-C cannot end that.
    os.environ.setdefault("RES_OPTIONS", "timeout:1 attempts:1")
    connection = _connection(scheme, host, port, seconds, address)
    sock = None
    try:
        connection.connect()
        sock = connection.sock
        connection.sock = _ByDeadline(sock, end)
        connection.request("POST", path, body, dict(headers))
        response = connection.getresponse()
        location = response.getheader("Location") if 300 <= response.status < 400 else None
        return Answer(response.status, response.getheader("Content-Type") or "", location, _body(response, limit_bytes))
    except ssl.SSLCertVerificationError as error:
        raise NoAnswer("certificate", f"its certificate is not trusted: {error.verify_message}") from None
    except ssl.SSLError as error:
        raise NoAnswer(
            "tls", f"no TLS connection: {(error.reason or 'unknown error').replace('_', ' ').lower()}"
        ) from None
    except TimeoutError:
        raise NoAnswer("time", f"no answer within {seconds:.3g} s") from None
    except ConnectionRefusedError:
        raise NoAnswer("refused", "connection refused") from None
    except HTTPException as error:
        what = "the answer is cut" if type(error).__name__ == "IncompleteRead" else "no HTTP answer"
        raise NoAnswer("cut" if what.endswith("cut") else "protocol", f"{what} ({type(error).__name__})") from None
    except UnicodeError:
        raise NoAnswer("name", "not a host name") from None
    except OSError as error:
        kind = "name" if type(error).__name__ == "gaierror" else "network"
        raise NoAnswer(kind, error.strerror or str(error) or type(error).__name__) from None
    finally:
        connection.close()
        if sock is not None:
            sock.close()


def _connection(scheme: str, host: str, port: int, seconds: float, address: str | None) -> HTTPConnection:
    from http.client import HTTPConnection, HTTPSConnection

    if scheme != "https":
        return HTTPConnection(address or host, port, timeout=seconds)
    import ssl
    from socket import create_connection

    connection = HTTPSConnection(host, port, timeout=seconds, context=ssl.create_default_context())
    if address is not None:
        connection._create_connection = lambda _, *given: create_connection((address, port), *given)  # type: ignore[attr-defined]  # noqa: SLF001
    return connection


def _body(response: HTTPResponse, limit_bytes: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while chunk := response.read1(_CHUNK_BYTES):
        size += len(chunk)
        if size > limit_bytes:
            raise NoAnswer("size", f"more than {limit_bytes >> 20} MiB in one answer")
        chunks.append(chunk)
    if response.length:  # read1 does not say that the body is shorter than announced
        raise NoAnswer("cut", f"the answer ended after {size} bytes, {response.length} before its end")
    return b"".join(chunks)


class _ByDeadline:
    """A socket whose operations all end by one deadline: a server that sends a byte now and then cannot prolong it."""

    def __init__(self, sock: socket.socket, end: float) -> None:
        self._sock, self._end = sock, end

    def ready(self) -> socket.socket:
        """The socket, with the time that is left. Raises TimeoutError."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        return self._sock

    def sendall(self, data: bytes) -> None:
        """Send everything."""
        self.ready().sendall(data)

    def makefile(self, *_: object) -> BufferedReader:
        """The reading end, as HTTPResponse wants it."""
        return BufferedReader(_Reader(self))

    def close(self) -> None:
        """Keep it open: HTTPConnection lets it go before the answer is read, where the server will close it."""


class _Reader(RawIOBase):
    def __init__(self, sock: _ByDeadline) -> None:
        self._from = sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        return self._from.ready().recv_into(buffer)
