"""What wrk2 (--latency) and cassandra-stress print of an HDR histogram: percentiles, without the histogram itself."""

from __future__ import annotations

from opskit.records import NamedTuple


class Spectrum(NamedTuple):
    """A printed histogram. `points`: (value, share of all values from 0 to 1, how many values), ascending. It can be shown, not added.

    `tool`: wrk2 or cassandra-stress; `name`: what it calls this one ("uncorrected", "WRITE"); `unit`: of the values.
    """

    file: str
    number: int
    tool: str
    name: str | None
    unit: str
    total: int
    least: float | None
    mean: float | None
    deviation: float | None
    most: float | None
    points: tuple[tuple[float, float, int], ...]
    seconds: float | None = None
    percentiles: tuple[tuple[float, float], ...] = ()
