"""How the answer of `opskit doctor` is shown."""

from __future__ import annotations

from opskit.render.views.doctor.document import DOCUMENT

__all__ = ["DOCUMENT"]
