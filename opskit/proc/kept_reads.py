"""What was read in one run and does not change within it, so that several collectors read it once; and the files that hang."""

from __future__ import annotations

import errno
import re
import threading
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# Files of a process or of the machine without counters; `status` has a few, of which no rate is made.
_STEADY = frozenset(
    {"cgroup", "cmdline", "comm", "limits", "maps", "mountinfo", "passwd", "group", "status", "uid_map"}
)
_OF_MEMORY = ("cmdline", "environ", "maps", "numa_maps", "smaps", "smaps_rollup")
_OF_PROCESS = re.compile(r"(.*?/[0-9]+)/(?:task/[0-9]+/)?(?:map_files|" + "|".join(_OF_MEMORY) + r")(?:/.*)?\Z")
_LONGEST_TEXT = 4096  # the maps of a thousand processes are many times that
_KEPT_ERRORS = (PermissionError, FileNotFoundError, ProcessLookupError)


class Hangs(PermissionError):  # noqa: N818
    """A file that is not read, since a read of it, or of the same process's memory, hangs. It counts as denied."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ETIMEDOUT, "reading it hangs", path)


class KeptReads:
    """Parsed files by parser and path. `before_read` is called before each file that is read."""

    def __init__(self, before_read: Callable[[], None] = lambda: None) -> None:
        self.before_read = before_read
        self._values: dict[tuple[object, str], Any] = {}  # by parser and path
        self._errors: dict[str, OSError] = {}
        self._asked: dict[int, str] = {}  # thread -> the path that it reads now
        self._refused: set[str] = set()  # paths, and `/proc/PID` for the memory of a process

    def load(self, read: Callable[[Callable[[str], T], str], T], parse: Callable[[str], T], path: str) -> T:
        """What the parser makes of the file: read(parse, path), once for those that hold no counters."""
        if not _is_steady(path):
            return self.ask(path, read, parse, path)
        return self.keep((parse, path), path, read, parse, path)

    def keep(self, key: tuple[object, str], path: str, call: Callable[..., T], *arguments: object) -> T:
        """call(*arguments), which reads this path, once for each key. Missing rights are kept, too."""
        if key in self._values:
            return cast("T", self._values[key])
        if path in self._errors:
            known = self._errors[path]
            raise type(known)(known.errno, known.strerror, path)
        try:
            value = self.ask(path, call, *arguments)
        except OSError as error:
            if type(error) in _KEPT_ERRORS:
                self._errors[path] = error.with_traceback(None)
            raise
        if not isinstance(value, str) or len(value) <= _LONGEST_TEXT:
            self._values[key] = value
        return value

    def once(self, key: object, make: Callable[[], T]) -> T:
        """What `make` returns, made once for this key: a walk that several collectors need."""
        place = key, ""
        if place not in self._values:
            self._values[place] = make()
        return cast("T", self._values[place])

    def ask(self, path: str, call: Callable[..., T], *arguments: object) -> T:
        """call(*arguments), which reads this path now. Raises Hangs where another thread hangs in it."""
        if self._refused and not self._refused.isdisjoint(keys_of(path)):
            raise Hangs(path)
        self.before_read()
        thread = threading.get_ident()
        self._asked[thread] = path
        try:
            return call(*arguments)
        finally:
            self._asked.pop(thread, None)

    def asked_by(self, thread: int) -> str | None:
        """The path that this thread reads now, None if it reads nothing."""
        return self._asked.get(thread)

    def refuse(self, path: str) -> None:
        """Let nobody read this path any more, nor the memory of the same process."""
        self._refused.add(keys_of(path)[-1])


def _is_steady(path: str) -> bool:
    return path[path.rfind("/") + 1 :] in _STEADY and "/task/" not in path


def keys_of(path: str) -> list[str]:
    """The path; of a process's memory also `/proc/PID`."""
    found = _OF_PROCESS.match(path)
    return [path, found[1]] if found else [path]
