"""How MBeans are shown: a summary, or their attributes (report.py), the JSON object (document.py), metrics (metrics.py)."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Import DOCUMENT, the fields of the JSON object, when it is used: -f text does not."""
    if name != "DOCUMENT":
        raise AttributeError(name)
    from opskit.render.views.jmx.document import DOCUMENT

    return DOCUMENT
