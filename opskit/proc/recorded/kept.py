"""Parsed files of a capture, by mark: a file that several commands read is parsed once, and each sees that of its moment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from opskit.proc.files.status import parse_status
from opskit.proc.kept_reads import KeptReads

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.proc.recorded.clock import TapeClock

T = TypeVar("T")
_LAMBDA = "<lambda>"
# Of a process's files only these are small when parsed and read by several commands.
_LARGE = re.compile(r"/[0-9]+/(?!(?:comm|stat|status|syscall)\Z)[^/]+\Z|/[0-9]+\Z")


class KeptByMark(KeptReads):
    """As KeptReads, for each mark of a clock."""

    def __init__(self, clock: TapeClock) -> None:
        super().__init__()
        self._clock = clock
        self._by_mark: dict[int, KeptReads] = {}

    def load(self, read: Callable[[Callable[[str], T], str], T], parse: Callable[[str], T], path: str) -> T:
        """What the parser makes of the file, once: at one mark it does not change. A lambda is another one each time."""
        is_large = parse is parse_status or _LARGE.search(path)
        if is_large or getattr(parse, "__name__", _LAMBDA) == _LAMBDA:
            return self.ask(path, read, parse, path)
        return self.keep((parse, path), path, read, parse, path)

    def keep(self, key: tuple[object, str], path: str, call: Callable[..., T], *arguments: object) -> T:
        """call(*arguments), once for each key and mark."""
        return self._now().keep(key, path, call, *arguments)

    def once(self, key: object, make: Callable[[], T]) -> T:
        """What `make` returns, made once for this key and mark."""
        return self._now().once(key, make)

    def _now(self) -> KeptReads:
        mark = self._clock.mark
        if mark not in self._by_mark:
            self._by_mark[mark] = KeptReads()
        return self._by_mark[mark]
