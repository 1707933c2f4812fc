"""How the clock is shown: lines of what was read (report.py), the JSON object and metrics (document.py)."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Import DOCUMENT, the fields of the JSON object, when it is used: -f text does not."""
    if name != "DOCUMENT":
        raise AttributeError(name)
    from opskit.render.views.clock.document import DOCUMENT

    return DOCUMENT
