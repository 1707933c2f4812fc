"""How safepoints are shown: of logs (logs.py) and of a live JVM (live.py)."""

from opskit.render.views.safepoints.fields import DOCUMENT

__all__ = ["DOCUMENT"]
