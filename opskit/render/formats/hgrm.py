"""Percentile distributions (`.hgrm`), as HdrHistogram's outputPercentileDistribution() writes them, for its plotters.

The same bytes as version 2.2.2 with five ticks per half distance: AbstractHistogram.java, PercentileIterator.java there.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING

from opskit.analysis.hdr.curve import ALL, levels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.hdr.result import Distribution, Step


_DIGITS = 3  # of what a load generator printed
_EXACT = Context(prec=400)  # a double has up to 309 digits before the point


def text(
    values: Distribution, curve: Sequence[Step], digits: int | None, buckets: int | None, scale: float = 1.0
) -> str:
    """The distribution; values are divided by `scale`. `digits`: None: a load generator printed it. `buckets`: for the last line, None: unknown."""
    width = f">12.{_DIGITS if digits is None else digits}f"
    lines = [f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}\n\n"]
    for level in levels(curve, printed=digits is None):
        share = level.percent / ALL
        row = f"{_fixed(level.value / scale, width)} {_fixed(share, '.12f')} {level.total:>10}"
        lines.append(f"{row}\n" if level.percent == ALL else f"{row} {_fixed(1 / (1.0 - share), '>14.2f')}\n")
    last = values.most if digits is None or not curve else curve[-1].value  # of decimals getMaxValue() is a bit more
    mean, deviation, most = ((each or 0) / scale for each in (values.mean, values.deviation, last))
    lines.append(f"#[Mean    = {_fixed(mean, width)}, StdDeviation   = {_fixed(deviation, width)}]\n")
    lines.append(f"#[Max     = {_fixed(most, width)}, Total count    = {values.total:>12}]\n")
    if buckets is not None and digits is not None:
        lines.append(f"#[Buckets = {buckets:>12}, SubBuckets     = {_sub_buckets(digits):>12}]\n")
    return "".join(lines)


def _sub_buckets(digits: int) -> int:
    return 1 << math.ceil(math.log2(2 * 10**digits))


def _fixed(value: float, spec: str) -> str:
    """As Java's %f: halves of the shortest decimal are rounded up."""
    places = int(spec.rpartition(".")[2][:-1])
    return format(Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _EXACT), spec)
