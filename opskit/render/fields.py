"""A value named once: from a view's fields come the table, text, CSV and markdown columns, the JSON object, its schema, metrics."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from opskit import quantities

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from opskit.render.report import Sheet

R = TypeVar("R")


class Kind:
    """What a value is: its JSON type, its human-readable form, and how it becomes JSON (None: as it is)."""

    __slots__ = ("dump", "right", "schema", "show")

    def __init__(
        self, schema: Mapping[str, Any], show: Callable[[Any], str] | None = None, *, right: bool = False,
        dump: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        self.schema, self.show, self.right, self.dump = schema, show, right, dump


TEXT = Kind({"type": "string"})
FLAG = Kind({"type": "boolean"})
ID = Kind({"type": "integer"}, right=True)  # a pid, an inode: no thousands separators
COUNT = Kind({"type": "integer"}, quantities.whole, right=True)
TOTAL = Kind({"type": "integer"}, quantities.whole, right=True)  # a count that only rises, since a start
SIZE = Kind({"type": "integer"}, quantities.size, right=True)  # bytes
SECONDS = Kind({"type": "number"}, quantities.duration, right=True)
SHARE = Kind({"type": "number"}, quantities.percent, right=True)  # 0 to 1
NUMBER = Kind({"type": "number"}, right=True)
SUMMED = Kind({"type": "number"}, right=True)  # a metric: NAME_sum or NAME_count of the summary NAME
UNTYPED = Kind({"type": "number"}, right=True)  # a metric: a number of which nothing is known


def list_of(kind: Kind) -> Kind:
    """An array of such values."""
    dump = kind.dump
    return Kind({"type": "array", "items": kind.schema}, dump=None if dump is None else lambda row: [*map(dump, row)])


def map_of(kind: Kind) -> Kind:
    """An object with names from the machine as its keys."""
    return Kind({"type": "object", "additionalProperties": _or_null(kind.schema)})


def record(fields: Sequence[Field[Any]]) -> Kind:
    """An object with these fields."""
    return Kind(object_schema(fields), dump=lambda row: to_object(fields, row))


def records(fields: Sequence[Field[Any]]) -> Kind:
    """An array of objects with these fields."""
    return list_of(record(fields))


class Field(Generic[R]):
    """One value of a row: `name` is its JSON key and CSV header, `title` its column ("": JSON only; `json=False`: column only).

    `value` is the attribute `name` unless given; `show` overrides the kind's. `below` names a row of a column of commands or
    sentences: on a terminal, where a cell may be wrapped, they are printed below the table, a line each.
    In a Block of one line per row, `shrinks` is the width to which names may be shortened (0: never), and columns with the highest
    `rank` are left out first (0: never).
    """

    __slots__ = ("below", "help", "json", "kind", "name", "rank", "right", "show", "shrinks", "title", "value")

    def __init__(
        self,
        name: str,
        kind: Kind = TEXT,
        title: str = "",
        value: Callable[[R], object] | None = None,
        *,
        help: str = "",  # noqa: A002
        show: Callable[[Any], str] | None = None,
        right: bool | None = None,
        json: bool = True,
        below: Callable[[R], str] | None = None,
        rank: int = 0,
        shrinks: int = 0,
    ) -> None:
        self.name, self.kind, self.title, self.help, self.json, self.below = name, kind, title, help, json, below
        self.rank, self.shrinks = rank, shrinks
        self.value: Callable[[R], object] = value or attrgetter(name)
        self.show = show or kind.show
        self.right = kind.right if right is None else right

    def human(self, row: R) -> str:
        """The human-readable cell, on one line."""
        return " ".join(self.lines(row))

    def lines(self, row: R) -> tuple[str, ...]:
        """The human-readable cell, line by line: a tuple of strings has several."""
        value = self.value(row)
        if self.show is not None:
            return (self.show(value),)
        if isinstance(value, tuple):
            return value
        return ("",) if value is None else (str(value),)


def to_object(fields: Sequence[Field[Any]], row: Any) -> dict[str, Any] | None:
    """The row as a JSON object; None stays None."""
    if row is None:
        return None
    pairs = ((field, field.value(row)) for field in fields if field.json)
    dumped = ((field, value, None if value is None else field.kind.dump) for field, value in pairs)
    return {field.name: dump(value) if dump else value for field, value, dump in dumped}


def object_schema(fields: Sequence[Field[Any]]) -> dict[str, Any]:
    """JSON Schema of to_object(): every key is there, null stands for what is unknown or was not asked for."""
    properties = {
        field.name: {**_or_null(field.kind.schema), **({"description": field.help} if field.help else {})}
        for field in fields
        if field.json
    }
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {**schema, "type": [schema["type"], "null"]} if "type" in schema else dict(schema)


def of_part(name: str, fields: Iterable[Field[Any]]) -> Iterator[Field[Any]]:
    """The fields of a part of an answer, which is its attribute `name`; their values are null where that is None."""
    from copy import copy

    for field in fields:
        wrapped = copy(field)
        wrapped.value = partial(_value_of_part, attrgetter(name), field.value)
        yield wrapped


def _value_of_part(part_of: Callable[[Any], Any], read: Callable[[Any], object], answer: Any) -> object:
    part = part_of(answer)
    return None if part is None else read(part)


def sheet(fields: Sequence[Field[R]], rows: Iterable[R]) -> Sheet:
    """The rows as CSV."""
    from opskit.render.report import Sheet

    kept = [field for field in fields if field.json]
    return Sheet([field.name for field in kept], ([field.value(row) for field in kept] for row in rows))
