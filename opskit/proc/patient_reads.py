"""Reads that hang, for who cannot wait for them: what may hang is read in a thread beside, which is left there where it does.

What hangs: what leads to a dead network mount; the memory of a process (cmdline, environ, maps) that is locked meanwhile. The
file then counts as denied, and with it all else of that process's memory. A thread beside costs ten times a read, so it reads
only what is suspect: memory of a process with a thread in uninterruptible sleep, as who locks it is; links in a mount
namespace that has remote file systems.
"""

from __future__ import annotations

import re
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from opskit.proc.blocked import Suspects, is_blocked
from opskit.proc.kept_reads import Hangs, KeptReads, keys_of

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_HANGS_S = 0.5
_LOCKING = ("/cmdline", "/environ")  # reading these takes the lock on every kernel
_KERNELS = ("/proc/", "/sys/")
_LED_ELSEWHERE = ("/root/", "/cwd/")  # below /proc/PID
_LINK = re.compile(r"(.*/[0-9]+)/(?:task/[0-9]+/)?(?:exe|cwd|root|fd/[0-9]+|map_files/[^/]+)\Z")


class PatientReads(KeptReads):
    """Keeps nothing but which files hang. `suspects` tells what may; None: everything may."""

    def __init__(self, suspects: Suspects | None = None) -> None:
        super().__init__()
        self._suspects = suspects
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
        if not self._may_hang(path, keys[-1], is_memory=is_memory, follows=follows) or isinstance(
            threading.current_thread(), _Reader
        ):
            return call(*arguments)
        value: T = self._beside(path, lambda: call(*arguments))
        if is_memory and path.endswith(_LOCKING):
            self._readable.add(keys[-1])
        return value

    def _may_hang(self, path: str, process: str, *, is_memory: bool, follows: bool) -> bool:
        if is_memory:
            if process in self._readable:
                return False
            if self._suspects is None or self._suspects.has_locked_memory(process):
                return True
            self._readable.add(process)
            return False
        if _leads_elsewhere(path):
            return True
        link = _LINK.match(path) if follows else None
        return link is not None and (self._suspects is None or self._suspects.sees_remote_files(link[1]))

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
