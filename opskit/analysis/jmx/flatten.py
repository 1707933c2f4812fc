"""The values of an attribute as lines: `HeapMemoryUsage` is init, used, committed and max."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.collect.jmx.facts import Value


def leaves(path: str, value: Value) -> Iterator[tuple[str, Value]]:
    """Each scalar with its path: `HeapMemoryUsage.used`, `Rows[0].name`. An array of scalars, and what is empty, is whole."""
    parts = _parts(value)
    if parts is None:
        yield path, value
        return
    for below, each in parts:
        yield from leaves(path + below, each)


def kept(path: str, value: Value, is_wanted: Callable[[str], bool]) -> tuple[bool, Value]:
    """Whether a part of the value is wanted by its path, and the value with those parts alone. Arrays are kept whole."""
    if is_wanted(path):
        return True, value
    if not isinstance(value, Mapping):
        return False, None
    parts = {key: kept(f"{path}.{key}", each, is_wanted) for key, each in value.items()}
    wanted = {key: each for key, (is_kept, each) in parts.items() if is_kept}
    return bool(wanted), wanted


def _parts(value: Value) -> Sequence[tuple[str, Value]] | None:
    """What stands behind the path and the value of each part; None: it is shown whole."""
    if isinstance(value, Mapping):
        return [(f".{key}", each) for key, each in value.items()] or None
    if value is None or isinstance(value, (str, bool, int, float)):
        return None
    if all(each is None or isinstance(each, (str, bool, int, float)) for each in value):
        return None
    return [(f"[{number}]", each) for number, each in enumerate(value)]
