"""How TCP connections are shown: groups and connections (report.py), listening sockets (listen.py)."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Import DOCUMENT, the fields of the JSON object, when it is used: -f text does not."""
    if name != "DOCUMENT":
        raise AttributeError(name)
    from opskit.render.views.tcp.document import DOCUMENT

    return DOCUMENT
