"""Neighbouring safepoints of a log, as columns or one by one; all times in seconds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.jvm.logs.timestamps import seconds_in
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TIME = rb"(\d{1,10}[.,]\d{1,9})"  # HotSpot prints seconds with seven digits after the point
APPLICATION_MARK = b"Application time: "
APPLICATION = re.compile(APPLICATION_MARK + TIME + rb" seconds")


class Marked(NamedTuple):
    """A text whose safepoints all begin with the same mark."""

    text: bytes
    mark: bytes


class Batch:
    """Neighbouring safepoints, as columns.

    `operations`: None where the log does not name them. `ttsps_s`: None for the whole column or for one of them where
    TTSP is unknown. `late`: which of them (by index) waited for which threads until a SafepointTimeout.
    """

    __slots__ = ("_application", "_heads", "_mark", "_text", "late", "operations", "stops_s", "ttsps_s")

    def __init__(
        self,
        stops_s: list[float],
        ttsps_s: Sequence[float | None] | None,
        operations: Sequence[bytes | None] | None,
        heads: Sequence[bytes] | Marked,
        application: tuple[float, int] | None = None,
        late: Mapping[int, tuple[bytes, ...]] | None = None,
    ) -> None:
        """`heads`: the text before each one on its line, or where to cut it out when wanted.

        `application` as the property says; None: the text's `Application time` lines, when wanted.
        """
        self.stops_s, self.ttsps_s, self.operations = stops_s, ttsps_s, operations
        self.late = late or {}
        self._application = application
        self._text, self._mark = heads if isinstance(heads, Marked) else (b"", b"")
        self._heads = None if isinstance(heads, Marked) else heads

    def __len__(self) -> int:
        return len(self.stops_s)

    @property
    def heads(self) -> Sequence[bytes]:
        """The text before each one on its line: its stamps. Cut out only when asked for."""
        if self._heads is None:
            pieces = self._text.split(self._mark)
            self._heads = [piece[piece.rfind(b"\n") + 1 :] for piece in pieces[:-1]]
        return self._heads

    def head(self, index: int) -> bytes:
        """The same for the first (0) or the last (-1) one, without cutting out the others."""
        if self._heads is not None:
            return self._heads[index]
        at = self._text.find(self._mark) if index == 0 else self._text.rfind(self._mark)
        return self._text[self._text.rfind(b"\n", 0, at) + 1 : at]

    @property
    def application(self) -> tuple[float, int]:
        """The times between safepoints that the log has: their sum, and how many."""
        if self._application is None:
            times = floats(APPLICATION.findall(self._text))
            self._application = sum(times), len(times)
        return self._application

    def select(self, indexes: Sequence[int]) -> Batch:
        """Only these of them, without the time between safepoints."""
        heads = self.heads
        return Batch(
            [self.stops_s[index] for index in indexes],
            None if self.ttsps_s is None else [self.ttsps_s[index] for index in indexes],
            None if self.operations is None else [self.operations[index] for index in indexes],
            [heads[index] for index in indexes],
            (0.0, 0),
            {new: self.late[old] for new, old in enumerate(indexes) if old in self.late},
        )


class Record(NamedTuple):
    """One safepoint as its line has it. `gap_s`: the time since the one before."""

    head: bytes
    operation: bytes | None
    stop_s: float
    ttsp_s: float | None
    gap_s: float | None = None
    late: tuple[bytes, ...] = ()


def batch_of(records: Sequence[Record], application_s: float, application_count: int) -> Batch:
    """Records as columns."""
    ttsps = [record.ttsp_s for record in records]
    operations = [record.operation for record in records]
    return Batch(
        [record.stop_s for record in records],
        ttsps if any(ttsp is not None for ttsp in ttsps) else None,
        operations if any(operations) else None,
        [record.head for record in records],
        (application_s, application_count),
        {index: record.late for index, record in enumerate(records) if record.late},
    )


def floats(texts: Sequence[bytes]) -> list[float]:
    """The times that a pattern of few digits has found."""
    try:
        return list(map(float, texts))
    except ValueError:  # decimal commas
        return [seconds_in(text) for text in texts]
