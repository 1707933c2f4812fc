"""Reads that hang, for who cannot wait for them: what may hang is read in a thread beside, which is left there where it does.

What hangs: what leads to a dead network mount; the memory of a process (cmdline, environ, maps) that is locked meanwhile. The
file then counts as denied, and with it all else of that process's memory.
"""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from opskit.proc.blocked import is_blocked
from opskit.proc.kept_reads import Hangs, KeptReads, keys_of

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_HANGS_S = 0.5
_LOCKING = ("/cmdline", "/environ")  # reading these takes the lock on every kernel
_KERNELS = ("/proc/", "/sys/")
_LED_ELSEWHERE = ("/root/", "/cwd/")  # below /proc/PID


class PatientReads(KeptReads):
    """Keeps nothing but which files hang."""

    def __init__(self) -> None:
        super().__init__()
        self.hung: list[str] = []
        self._reader: _Reader | None = None
        self._readable: set[str] = set()  # `/proc/PID`, whose memory was read

    def load(self, read: Callable[[Callable[[str], T], str], T], parse: Callable[[str], T], path: str) -> T:
        """read(parse, path), each time."""
        return self.ask(path, read, parse, path)

    def keep(self, key: tuple[object, str], path: str, call: Callable[..., T], *arguments: object) -> T:  # noqa: ARG002
        """call(*arguments), each time."""
        return self.ask(path, call, *arguments)

    def once(self, key: object, make: Callable[[], T]) -> T:  # noqa: ARG002
        """make(), each time."""
        return make()

    def ask(self, path: str, call: Callable[..., T], *arguments: object, follows: bool = False) -> T:
        """call(*arguments), which reads this path now. Raises Hangs. `follows`: it follows a link at the end of the path."""
        keys = keys_of(path)
        if self._refused and not self._refused.isdisjoint(keys):
            raise Hangs(path)
        is_memory = len(keys) > 1
        is_safe = keys[-1] in self._readable or not (is_memory or follows or _leads_elsewhere(path))
        if is_safe or isinstance(threading.current_thread(), _Reader):
            return call(*arguments)
        value: T = self._beside(path, lambda: call(*arguments))
        if is_memory and path.endswith(_LOCKING):
            self._readable.add(keys[-1])
        return value

    def _beside(self, path: str, call: Callable[[], Any]) -> Any:
        try:
            reader, self._reader = self._reader or _Reader(), None
        except (RuntimeError, MemoryError):  # no thread can be started
            return call()
        reader.calls.put(call)
        while True:
            try:
                value, error = reader.answers.get(timeout=_HANGS_S)
            except Empty:
                if is_blocked(reader.native_id or 0):
                    self.refuse(path)
                    self.hung.append(path)
                    raise Hangs(path) from None
                continue
            self._reader = reader
            if error is not None:
                raise error
            return value

    def close(self) -> None:
        """End the thread."""
        if self._reader is not None:
            self._reader.calls.put(None)
            self._reader = None


def _leads_elsewhere(path: str) -> bool:
    """Whether it may lead to any file system."""
    return not path.startswith(_KERNELS) or any(part in path for part in _LED_ELSEWHERE)


class _Reader(threading.Thread):
    """A thread that reads. Raises RuntimeError, MemoryError where none can be started."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.calls: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self.answers: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self.start()

    def run(self) -> None:
        """Call what comes, until None does."""
        while (call := self.calls.get()) is not None:
            try:
                self.answers.put((call(), None))
            except BaseException as error:  # noqa: BLE001  (raised where it was asked for)
                self.answers.put((None, error))
