"""How interrupts are shown: the CPUs (report.py), the heat strip (strip.py), the picture (picture.py)."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Import DOCUMENT, the fields of the JSON object, when it is used: -f text does not."""
    if name != "DOCUMENT":
        raise AttributeError(name)
    from opskit.render.views.irqs.document import DOCUMENT

    return DOCUMENT
