"""The fields of `opskit profile`: those of `opskit jpmp`."""

from opskit.render.views.jpmp.document import DOCUMENT

__all__ = ["DOCUMENT"]
