"""The answers to questions that no file answers, as they were given when the capture was made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.calls import Calls

if TYPE_CHECKING:
    from opskit.proc.recorded.fs import TapeFS


class TapeCalls(Calls):
    """The answers that were given when the capture was made."""

    def __init__(self, fs: TapeFS) -> None:
        self._fs = fs
