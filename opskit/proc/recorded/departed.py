"""Processes and threads that a capture's first samples have and a later one has not: from then on none of their files is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.recorded.tape import NAMES, Failure
from opskit.quantities import integer

if TYPE_CHECKING:
    from opskit.proc.recorded.tape import Tape


class Departed:
    """Which of them have ended, by mark. The samples are complete when it is first asked about a later mark than the first."""

    def __init__(self, tape: Tape, proc: str) -> None:
        self._tape, self._proc, self._begin = tape, proc, f"{proc}/"
        self._by_mark: dict[int, frozenset[str]] = {}  # `4242`, `4242/task/4243`

    def has(self, path: str, mark: int) -> bool:
        """Whether a path is of one that has ended before this mark."""
        ended = self._by_mark.get(mark)
        if ended is None:
            ended = self._by_mark[mark] = self._ended(mark)
        if not ended or not path.startswith(self._begin):
            return False
        pid, _, below = path[len(self._begin) :].partition("/")
        if pid in ended:
            return True
        return below.startswith("task/") and f"{pid}/task/{below[5:].partition('/')[0]}" in ended

    def _ended(self, mark: int) -> frozenset[str]:
        names = self._tape.answers[NAMES]
        ended: set[str] = set()
        for place in range(1, min(mark, len(names) - 1) + 1):
            for path in names[place]:
                if path != self._proc and not (path.startswith(self._begin) and path.endswith("/task")):
                    continue
                prefix = path[len(self._begin) :]
                now = {f"{prefix}/{name}" if prefix else name for name in _ids(names[place][path])}
                before = {
                    f"{prefix}/{name}" if prefix else name
                    for earlier in names[:place]
                    for name in _ids(earlier.get(path, ()))
                }
                ended = (ended - now) | (before - now)
        return frozenset(ended)


def _ids(names: object) -> list[str]:
    known = names if isinstance(names, tuple) and not isinstance(names, Failure) else ()
    return [name for name in known if integer(name) is not None]
