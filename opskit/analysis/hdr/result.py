"""What is known of HdrHistogram logs: series of values, each as a whole and over time. Values are in the log's unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.finding import Finding
    from opskit.collect.hdr.facts import Facts

PERCENTS = (50.0, 90.0, 99.0, 99.9, 99.99)
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


class Distribution(NamedTuple):
    """A number of values: `percentiles` at PERCENTS. None: there is no value. Equal to what HdrHistogram's own classes say."""

    total: int
    least: float | None
    most: float | None
    mean: float | None
    deviation: float | None  # standard deviation
    percentiles: tuple[float | None, ...]


class Step(NamedTuple):
    """A point of the percentile curve: so many values (`total`) up to `value`, a share of all (0 to 1)."""

    value: float
    share: float
    total: int


class Period(NamedTuple):
    """The values of an interval of --by, of which the log covers `covered_s`. `begin_s`: as Series.begin_s."""

    begin_s: float
    covered_s: float
    values: Distribution


class Series(NamedTuple):
    """The values of one tag, or of what was merged.

    `begin_s`: seconds since the epoch; in a log without a date since its start (`dated` is False then). `end_s`: alike.
    `covered_s`: the sum of its intervals' lengths. `per_s`: values a second of that time. `curve`: every cell that is used.
    `unit`: what its file says of itself (the output of a load generator); None for a log, which says none.
    `buckets`: of HdrHistogram's sum of these histograms, each twice as wide as the one before; None: unknown.
    """

    files: tuple[str, ...]
    tag: str | None
    digits: int
    intervals: int
    dated: bool
    begin_s: float
    end_s: float
    covered_s: float
    per_s: float | None
    values: Distribution
    curve: Sequence[Step]
    periods: Sequence[Period] = ()
    unit: str | None = None
    buckets: int | None = None


class Pair(NamedTuple):
    """A series and its counterpart of --diff; None: only one side has it."""

    now: Series | None
    other: Series | None


class Result(NamedTuple):
    """`unit`: of --unit, or of all series; None: unknown, values are shown as they are in the log.

    `likely_unit`: what the values are in if the column Interval_Max is in ms, as by convention; None: it does not fit.
    `by_s`: of --by. `outside`: intervals before --since or after --until; `other_tags`: of tags that --tag does not choose.
    """

    facts: Facts
    unit: str | None
    likely_unit: str | None
    series: Sequence[Series]
    pairs: Sequence[Pair]
    findings: list[Finding]
    by_s: float | None = None
    outside: int = 0
    other_tags: int = 0
