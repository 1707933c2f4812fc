"""NamedTuple for modules that every start imports: typing's compiles the text of each annotation, this one does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from collections import namedtuple

    class _Meta(type):
        """Makes a named tuple of a class's annotations and defaults, and adds the class's methods."""

        def __new__(cls, name: str, bases: tuple, body: dict) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            annotations = body.pop("__annotations__", {})
            fields = tuple(annotations)
            defaults = tuple(body.pop(field) for field in fields if field in body)
            made = namedtuple(  # noqa: PYI024
                name, fields, defaults=defaults, module=body["__module__"]
            )
            made.__annotations__ = annotations
            for key, value in body.items():
                if key not in ("__module__", "__dict__", "__weakref__"):
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Meta):
        """As typing.NamedTuple; fields with defaults come last."""


__all__ = ["NamedTuple"]
