"""How file descriptors are shown: of a process (process.py), of the machine (host.py), of deleted files (deleted.py)."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Import DOCUMENT, the fields of the JSON object, when it is used: -f text does not."""
    if name != "DOCUMENT":
        raise AttributeError(name)
    from opskit.render.views.fds.document import DOCUMENT

    return DOCUMENT
