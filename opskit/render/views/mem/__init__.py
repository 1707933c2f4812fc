"""How memory is shown: of a process, of the machine (host.py), of files (files.py)."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Import DOCUMENT, the fields of the JSON object, when it is used: -f text does not."""
    if name != "DOCUMENT":
        raise AttributeError(name)
    from opskit.render.views.mem.document import DOCUMENT

    return DOCUMENT
