"""typing.NamedTuple, made in a third of the time: typing compiles each annotation, which costs 15 µs a field at every start."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple"]

if TYPE_CHECKING:
    from typing import NamedTuple
else:

    class _Maker(type):
        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            """A named tuple of the annotated names, with the rest of the class body on top."""
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = body["__annotations__"]
            defaults = [body.pop(field) for field in fields if field in body]
            base = namedtuple(name, fields, defaults=defaults)  # noqa: PYI024
            return type(name, (base,), {"__slots__": (), **body})

    class NamedTuple(metaclass=_Maker):
        """The base class of a record."""
