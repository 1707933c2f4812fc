"""How crash reports are shown: one in detail (report.py), several by cause, the places that were looked at."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Import DOCUMENT, the fields of the JSON object, when it is used: -f text does not."""
    if name != "DOCUMENT":
        raise AttributeError(name)
    from opskit.render.views.crash.document import DOCUMENT

    return DOCUMENT
