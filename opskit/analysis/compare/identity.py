"""What names one machine or process, and so says nothing of its speed: names, numbers, addresses, paths of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_PATTERNS = (
    (re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"), "<uuid>"),
    (re.compile(r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b(?!\.?[0-9])(?::[0-9]{1,5}\b)?"), "<address>"),
    (re.compile(r"\b[0-9a-f]{12,64}\b"), "<id>"),
    (re.compile(r"/(?:tmp|var/tmp|dev/shm)/[^\s:,;]+"), "<temporary file>"),
    (re.compile(r"(?<=[\w\])]):[0-9]{2,5}\b"), ":<port>"),
)  # fmt: skip
# The last word of a property's name, or one that ends so.
_NAMES = re.compile(
    r"(?:^|[._-]|(?<=[a-z]))(?:id|ids|name|names|host|hosts|hostname|port|ports|addr|address|addresses|node|instance|replica|shard|rack|zone|region|pod|ip|"
    r"uuid|pid|user|dir|dirs|directory|home|path|paths|file|files|log|logs|logdir|tmpdir|workdir|url|urls|uri|endpoint|endpoints|bind|listen|advertised|"
    r"label|tag|seed|seeds|peers|members|cookie|started|startup|timestamp|date|config|conf|properties|base|root|ordinal|partition|broker|cluster|server|identity|"
    r"password|secret|token|key|Id|Name|Host|Port|Dir|Path|File|Url|Uri|Address|Node|Instance)$"
)
_LONGEST = 2000


def is_identity(key: str) -> bool:
    """Whether a fact names its machine or JVM by its kind, whatever it holds."""
    kind, _, name = key.partition(".")
    if kind == "property" and name != "user.timezone":
        return _NAMES.search(name) is not None or name.startswith(("java.rmi.server", "sun.java.command"))
    return False


def without_identity(value: str, words: Sequence[str]) -> str:
    """A text without what names its machine: `words` (host name, PID), addresses, ids, ports, temporary files."""
    text = value[:_LONGEST]
    for word in words:
        if word and (len(word) > 2 or not word.isdigit()):
            text = re.sub(rf"(?<![\w.]){re.escape(word)}(?![\w.])", "<own>", text)
    for pattern, name in _PATTERNS:
        text = pattern.sub(name, text)
    return text
