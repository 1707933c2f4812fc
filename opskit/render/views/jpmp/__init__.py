from opskit.render.views.jpmp.document import DOCUMENT

__all__ = ["DOCUMENT"]
