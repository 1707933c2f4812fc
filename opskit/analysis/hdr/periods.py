"""The periods of a series in little memory."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from opskit.analysis.hdr.result import PERCENTS, Distribution, Period
from opskit.analysis.hdr.values import NOTHING

_FIGURES = 3 + len(PERCENTS)  # total, least, most and the percentiles


class Rows(Sequence[Period]):
    """Periods in little memory: made when they are asked for."""

    def __init__(self, *, decimal: bool) -> None:
        self._kind = Struct(f"<4dq{_FIGURES - 1}{'d' if decimal else 'q'}")
        self._rows = bytearray()

    def append(self, row: Period) -> None:
        """Keep it."""
        values = row.values
        figures = (values.least, values.most, *values.percentiles) if values.total else (0,) * (_FIGURES - 1)
        times = (row.begin_s, row.covered_s, values.mean or 0.0, values.deviation or 0.0)
        self._rows += self._kind.pack(*times, values.total, *figures)

    def __len__(self) -> int:
        return len(self._rows) // self._kind.size

    def __getitem__(self, place):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204
        """A period, or a list of them for a slice."""
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        begin_s, covered_s, mean, deviation, total, least, most, *percentiles = self._kind.unpack_from(
            self._rows, place % len(self) * self._kind.size
        )
        values = Distribution(total, least, most, mean, deviation, tuple(percentiles)) if total else NOTHING
        return Period(begin_s, covered_s, values)
