"""What was read in this run and does not change within it, so that several collectors read it once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# Files of a process or of the machine without counters; `status` has a few, of which no rate is made.
_STEADY = frozenset({"cgroup", "cmdline", "comm", "limits", "maps", "mountinfo", "status", "uid_map"})


class KeptReads:
    """Parsed files by parser and path. `before_read` is called before each file that is read."""

    def __init__(self, before_read: Callable[[], None] = lambda: None) -> None:
        self.before_read = before_read
        self._values: dict[tuple[object, str], Any] = {}

    def load(self, read: Callable[[Callable[[str], T], str], T], parse: Callable[[str], T], path: str) -> T:
        """What the parser makes of the file: read(parse, path), once for those that hold no counters."""
        if path.rpartition("/")[2] not in _STEADY or "/task/" in path:
            self.before_read()
            return read(parse, path)
        key = parse, path
        if key in self._values:
            return cast("T", self._values[key])
        self.before_read()
        value = self._values[key] = read(parse, path)
        return value

    def once(self, key: object, make: Callable[[], T]) -> T:
        """What `make` returns, made once for this key: a walk that several collectors need."""
        place = key, ""
        if place not in self._values:
            self._values[place] = make()
        return cast("T", self._values[place])
