"""How JVMs are shown (report.py)."""

from opskit.render.views.jvms.report import DOCUMENT

__all__ = ["DOCUMENT"]
