"""Work that Ctrl-C must end even while it hangs in a read of a file, which no signal interrupts."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_LOOK_S = 1.0


def in_thread(work: Callable[[], T]) -> T:
    """work() in a thread of its own, which ends with opskit: Ctrl-C raises here, not in the midst of the work."""
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:  # noqa: BLE001  (raised below)
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    streams = sys.stdout, sys.stderr
    try:
        try:
            thread.start()
        except (RuntimeError, MemoryError):  # no thread can be started
            return work()
        while thread.is_alive():
            thread.join(_LOOK_S)
    finally:
        sys.stdout, sys.stderr = streams  # the work may have others
    if failed:
        raise failed[0]
    return done[0]
