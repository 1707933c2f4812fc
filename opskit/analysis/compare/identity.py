"""What names one machine or process, and so says nothing of its speed: names, numbers, addresses, paths of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_PATTERNS = (
    (re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"), "<uuid>"),
    (re.compile(r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b(?!\.?[0-9])(?::[0-9]{1,5}\b)?"), "<address>"),
    (re.compile(r"\b(?=[0-9]*[a-f])[0-9a-f]{12,64}\b"), "<id>"),
    (re.compile(r"/(?:tmp|var/tmp|dev/shm)/[^\s:,;]+"), "<temporary file>"),
    (re.compile(r"(?<=[\w\])>]):(?:80|443|[0-9]{4,5})\b"), ":<port>"),
)  # fmt: skip
# The last word of a property's name: `server.id`, `serverId`; and after a word that needs no separator: `brokerid`.
_WORDS = (
    "id|ids|name|names|host|hosts|hostname|hostnames|port|ports|addr|address|addresses|node|instance|replica|shard|rack|"
    "zone|region|pod|ip|uuid|pid|user|dir|dirs|directory|home|path|paths|file|files|log|logs|url|urls|uri|endpoint|"
    "endpoints|bind|listen|advertised|label|tag|seed|seeds|peers|members|cookie|started|startup|timestamp|date|config|conf|"
    "properties|base|root|ordinal|partition|broker|cluster|server|identity|password|secret|token|key"
)
_OWNERS = "host|node|server|broker|client|instance|replica|member|worker|shard|pod|cluster|app|service|process|thread|user|log|data|tmp|temp|work|base|home|pid|conf|config|http|https|jmx|rmi|debug|admin|listen|bind"  # fmt: skip
_NAMES = re.compile(
    rf"(?:^|[._-])(?:{_WORDS}|(?:{_OWNERS})(?:id|name|port|dir|path|file|host|addr|address|url|uri|log))$"
    rf"|(?<=[a-z0-9])(?:{_WORDS.title()}|ID|IP|URL|URI|UUID|PID)$"
)
# Words that name nothing, whatever a property is called: logging.level.root=DEBUG.
_SETTINGS = re.compile(
    r"true|false|on|off|yes|no|enabled|disabled|all|trace|debug|info|warn|warning|error|fatal", re.IGNORECASE
)
# A path, URL or host whose digits alone differ: /var/spool/app-4711, kafka-1.prod:9092.
_PLACE = re.compile(r"/.*|[a-z][a-z0-9+]*://.*|[a-z][a-z0-9.-]*(?::<port>.*|\.[a-z]+)", re.DOTALL)
_DIGITS = re.compile(r"[0-9]+")
# An option of an agent: port=8080, nodeName=web-1.
_ARGUMENT = re.compile(r"(?<![\w.-])([A-Za-z][\w.-]{0,60})=([^,;&\s]*)")
_LONGEST = 2000


def is_identity(key: str, *values: object) -> bool:
    """Whether a fact names its machine or JVM by its kind. `values`: of the sides that have it."""
    kind, _, name = key.partition(".")
    if kind != "property" or name == "user.timezone":
        return False
    if values and all(_SETTINGS.fullmatch(str(value)) for value in values):
        return False
    return _names_one(name) or name.startswith(("java.rmi.server", "sun.java.command"))


def _names_one(name: str) -> bool:
    return _NAMES.search(name.lower() if name.isupper() else name) is not None


def without_identity(value: str, words: Sequence[str]) -> str:
    """A text without what names its machine: `words` (host name, PID), addresses, ids, ports, temporary files, numbers in places."""
    text = value[:_LONGEST]
    for word in words:
        if word and (len(word) > 2 or not word.isdigit()):
            text = re.sub(rf"(?<![\w.]){re.escape(word)}(?![\w.])", "<own>", text)
    for pattern, name in _PATTERNS:
        text = pattern.sub(name, text)
    return _DIGITS.sub("<number>", text) if _PLACE.fullmatch(text) else text


def without_own_arguments(value: str) -> str:
    """The options of an agent without the values that name one machine."""
    return _ARGUMENT.sub(lambda found: f"{found[1]}=" if _names_one(found[1]) else found[0], value)
