"""How the answer of `opskit doctor` is shown. Each format imports what it needs: the run is short, and imports count."""

from __future__ import annotations


def __getattr__(name: str) -> object:
    """The fields of the JSON object, for its schema."""
    if name != "DOCUMENT":
        raise AttributeError(name)
    from opskit.render.views.doctor.document import DOCUMENT

    return DOCUMENT
