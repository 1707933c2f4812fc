r"""Jolokia's words: its URL, its property in a JVM, its -javaagent option, and its answers (https://jolokia.org/reference). Pure.

    [{"request":{"mbean":"app:type=Pool","type":"read"},"value":{"Active":3,"Size":"ERROR: closed (class …)"},"status":200}]

The property is escaped as java.util.Properties writes it: `jolokia.agent=http\://127.0.0.1\:8778/jolokia/`.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from opskit.errors import UsageError
from opskit.jvm.mbean_json import integer as json_integer
from opskit.jvm.mbean_json import loaded
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    Json = object

PROPERTY = "jolokia.agent"
DEFAULT_PORT, DEFAULT_PATH = 8778, "/jolokia/"
_PORTS = {"http": 80, "https": 443}
_JAVA_AGENT = "-javaagent:"
_LONGEST_URL, _LONGEST_ERROR = 2048, 500
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# Jolokia 2 writes the hexadecimal digits of control characters from ten on as `:;<=>?`.
_WRONG_DIGIT = re.compile(r"([^\\](?:\\\\)*\\u00[01])([:;<=>?])")


class Url(NamedTuple):
    """Where a Jolokia answers. `user`, `password`: of the URL; they are never shown. `path`: with its query.

    `address`: where it listens, if `host` is but the name in its certificate.
    """

    scheme: str
    host: str
    port: int
    path: str = DEFAULT_PATH
    user: str | None = None
    password: str | None = None
    address: str | None = None

    @property
    def shown(self) -> str:
        """The URL without user, password and query."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path.partition('?')[0]}"


def parse_url(text: str, what: str = "--jolokia") -> Url:
    """The URL of a Jolokia; its path is /jolokia/ where none is given. Raises UsageError, which shows no password."""
    from urllib.parse import quote, unquote, urlsplit

    advice = "write http://HOST:PORT/jolokia"
    try:
        found = urlsplit(text)
        port = found.port
        host = found.hostname
    except ValueError:
        raise UsageError(f"{what}: not a URL; {advice}") from None
    if found.scheme not in _PORTS or not host or len(text) > _LONGEST_URL or not text.isprintable() or " " in text:
        raise UsageError(f"{what}: not the http or https URL of a Jolokia; {advice}")
    path = quote(found.path, safe="/%:@!$&'()*+,;=~-._") or "/"
    path = DEFAULT_PATH if path == "/" else path.rstrip("/") + "/"
    query = f"?{quote(found.query, safe='=&%+/:@!$()*,;~-._?')}" if found.query else ""
    user, password = (None if part is None else unquote(part) for part in (found.username, found.password))
    return Url(found.scheme, host, _PORTS[found.scheme] if port is None else port, path + query, user, password)


def without_secrets(location: str) -> str:
    """A URL of a server without user, password and query, for a message."""
    from urllib.parse import urlsplit

    try:
        found = urlsplit(location)
        host = found.hostname or ""
        port = f":{found.port}" if found.port else ""
    except ValueError:
        return "another place"
    return f"{found.scheme}://{host}{port}{found.path}"[:200] if host else found.path[:200]


def url_in_properties(text: str) -> str | None:
    """The property `jolokia.agent` of the attach command `properties`; None: not there, or still empty."""
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and name.strip() == PROPERTY:
            return _ESCAPED.sub(_unescaped, value).strip() or None
    return None


def _unescaped(found: re.Match[str]) -> str:
    each = found[1]
    return chr(int(each[1:], 16)) if len(each) == 5 else _LETTERS.get(each, each)  # a number: four hexadecimal digits


def url_of_option(words: Iterable[str]) -> Url | None:
    """What `-javaagent:…/jolokia….jar=port=8778,host=127.0.0.1,protocol=https` says, with Jolokia's defaults. None: no such option."""
    for word in words:
        if not word.startswith(_JAVA_AGENT):
            continue
        path, _, options = word.removeprefix(_JAVA_AGENT).partition("=")
        name = posixpath.basename(path)
        if not name.startswith("jolokia") or not name.endswith(".jar"):
            continue
        given = dict(option.partition("=")[::2] for option in options.split(","))
        host = given.get("host") or "127.0.0.1"
        port = integer(given.get("port", str(DEFAULT_PORT)))
        scheme = given.get("protocol", "http")
        context = given.get("agentContext", DEFAULT_PATH).strip("/")
        if port is not None and 0 < port < 65536 and scheme in _PORTS:
            host = "127.0.0.1" if host in ("*", "0.0.0.0", "localhost") else host  # noqa: S104  (not bound to)
            return Url(scheme, host, port, f"/{context}/")
    return None


def parse_answer(body: bytes) -> Json:
    """The JSON of an answer. Raises ValueError where it is none, or cut."""
    text = body.decode("utf-8", "replace")
    try:
        return loaded(text)
    except ValueError:
        if not _WRONG_DIGIT.search(text):
            raise
    return loaded(_WRONG_DIGIT.sub(lambda each: f"{each[1]}{ord(each[2]) - 48:x}", text))


def plain_value(value: Json) -> Json:
    """A value without Jolokia's own wrapping: ObjectNames and large integers are objects with one key."""
    if isinstance(value, list):
        return [plain_value(each) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((key, only),) = value.items()
        if key == "objectName" and isinstance(only, str):
            return only
        if key == "bigint" and isinstance(only, str) and re.fullmatch(r"-?[0-9]{1,400}", only):
            return json_integer(only)
    return {key: plain_value(each) for key, each in value.items()}


def error_of(answer: dict[str, Json]) -> str:
    """Why a request failed: `java.io.IOException: closed`."""
    said = answer.get("error")
    kind = answer.get("error_type")
    text = said if isinstance(said, str) else "no message"
    return (text.replace(f"{kind} : ", f"{kind}: ", 1) if isinstance(kind, str) else text)[:_LONGEST_ERROR]


def list_path(name: str) -> str:
    """The path of a `list` request for the attributes of an MBean: `domain/type=Pool,name=a!/b/attr`."""
    domain, _, properties = name.partition(":")
    return "/".join(part.replace("!", "!!").replace("/", "!/") for part in (domain, properties)) + "/attr"
