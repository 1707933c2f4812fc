"""The values of an attribute as lines: `HeapMemoryUsage` is init, used, committed and max."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.collect.jmx.facts import Value

_DEEPEST = 32  # a document of a foreign server may be deeper than Python's stack
TOO_DEEP = "…"


def leaves(path: str, value: Value) -> Iterator[tuple[str, Value]]:
    """Each scalar with its path: `HeapMemoryUsage.used`, `Rows[0].name`. An array of scalars, and what is empty, is whole."""
    return _leaves(path, value, 0)


def _leaves(path: str, value: Value, depth: int) -> Iterator[tuple[str, Value]]:
    parts = _parts(value)
    if parts is None:
        yield path, value
    elif depth == _DEEPEST:
        yield path, TOO_DEEP
    else:
        for below, _, each in parts:
            yield from _leaves(path + below, each, depth + 1)


def kept(path: str, value: Value, is_wanted: Callable[[str], bool]) -> tuple[bool, Value]:
    """Whether a part of the value is wanted by its path, and the value with those parts alone. Arrays are kept whole."""
    return _kept(path, value, is_wanted, 0)


def _kept(path: str, value: Value, is_wanted: Callable[[str], bool], depth: int) -> tuple[bool, Value]:
    if is_wanted(path):
        return True, _shallow(value, depth)
    if not isinstance(value, Mapping) or depth == _DEEPEST:
        return False, None
    parts = {key: _kept(f"{path}.{key}", each, is_wanted, depth + 1) for key, each in value.items()}
    wanted = {key: each for key, (is_kept, each) in parts.items() if is_kept}
    return bool(wanted), wanted


def _shallow(value: Value, depth: int) -> Value:
    """The value down to the deepest level that is shown."""
    if depth == _DEEPEST:
        return TOO_DEEP if _parts(value) is not None else value
    if isinstance(value, Mapping):
        return {key: _shallow(each, depth + 1) for key, each in value.items()}
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return [_shallow(each, depth + 1) for each in value]


def _parts(value: Value) -> Sequence[tuple[str, object, Value]] | None:
    """What stands behind the path, key and value of each part; None: it is shown whole."""
    if isinstance(value, Mapping):
        return [(f".{key}", key, each) for key, each in value.items()] or None
    if value is None or isinstance(value, (str, bool, int, float)):
        return None
    if all(each is None or isinstance(each, (str, bool, int, float)) for each in value):
        return None
    return [(f"[{number}]", number, each) for number, each in enumerate(value)]
