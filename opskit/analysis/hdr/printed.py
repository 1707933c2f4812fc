"""A series of what a load generator printed: it has no counts, so that it can be shown, not added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.hdr.result import PERCENTS, Distribution, Series, Step

if TYPE_CHECKING:
    from opskit.jvm.logs.hdr.spectrum import Spectrum


def series_of(printed: Spectrum) -> Series:
    """The series; its `digits` are 0 and its times are relative, because neither is printed.

    A percentile that the tool names is taken as it is, else the first point of the spectrum that has this share of the values.
    """
    named = dict(printed.percents)
    percentiles = tuple(named.get(percent, _at(printed, percent / 100)) for percent in PERCENTS)
    values = Distribution(printed.total, None, printed.most, printed.mean, printed.deviation, percentiles)
    curve = [Step(value, share, total) for value, share, total in printed.points]
    if not curve:
        curve = [
            Step(value, percent / 100, round(printed.total * percent / 100)) for percent, value in printed.percents
        ]
    seconds = printed.seconds or 0.0
    per_s = printed.total / seconds if seconds else None
    return Series(
        (printed.file,), printed.name, 0, 0, False, 0.0, seconds, seconds, per_s, values, curve, (), printed.unit,
    )  # fmt: skip


def _at(printed: Spectrum, share: float) -> float | None:
    reached = share * printed.total
    return next((value for value, up_to, total in printed.points if up_to >= share or total >= reached), None)
