"""How input and output are shown: a process, or the machine (report.py)."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Import DOCUMENT, the fields of the JSON object, when it is used: -f text does not."""
    if name != "DOCUMENT":
        raise AttributeError(name)
    from opskit.render.views.io.document import DOCUMENT

    return DOCUMENT
