"""How HdrHistogram logs are shown: tables (report.py), the JSON object (document.py), pictures (picture.py)."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Import DOCUMENT, the fields of the JSON object, when it is used: -f text does not."""
    if name != "DOCUMENT":
        raise AttributeError(name)
    from opskit.render.views.hdr.document import DOCUMENT

    return DOCUMENT
