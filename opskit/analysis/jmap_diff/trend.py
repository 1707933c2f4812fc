"""What keeps growing in three histograms or more: steps grown, slopes, ranks. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.slope import slope_weights
from opskit.errors import BadInput
from opskit.jvm.dumps.class_names import is_application
from opskit.quantities import signed_size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.jvm.dumps.histogram import Histogram

_STEADY = 0.75  # of the steps; less is noise
_MOST_BLANKS, _SPARSEST = 20_000_000, 20  # a track has a place for each histogram, also without the class


class Trend(NamedTuple):
    """The bytes of one class over time. `bytes_per_min` is None without times. `steady`: more than noise."""

    name: str
    steps_grown: int
    steps: int
    bytes_per_step: float
    bytes_per_min: float | None
    bytes: tuple[int, ...]
    steady: bool
    rank: int = 0

    @property
    def pace(self) -> float:
        """Bytes per minute; per step where the times are unknown."""
        return self.bytes_per_step if self.bytes_per_min is None else self.bytes_per_min


def trend(
    series: Sequence[Mapping[str, tuple[int, int]]], times: Sequence[float] | None, complete: Sequence[bool]
) -> list[Trend]:
    """The trend of each name whose bytes changed, the likeliest leak first.

    An absent name counts 0, but a name that is absent in a histogram that is not `complete` is left out. Ranked: steady
    growth first; the application's classes before arrays and the JDK's; by steps grown; by slope. Raises BadInput where
    few names are in more than one of them.
    """
    steps = len(series) - 1
    by_step = slope_weights(range(len(series))) or []
    by_time = slope_weights(times) if times else None
    cut = [tallies for tallies, whole in zip(series, complete) if not whole]
    found = []
    names = {name: None for tallies in series for name in tallies}
    if len(names) * len(series) > max(_MOST_BLANKS, _SPARSEST * sum(map(len, series))):
        raise BadInput(
            "the histograms",
            f"{len(series):,} of them name {len(names):,} classes, few of them in more than one: give those of one JVM",
        )
    for name in names:
        if any(name not in tallies for tallies in cut):
            continue
        track = tuple(tallies[name][1] if name in tallies else 0 for tallies in series)
        if min(track) == max(track):
            continue
        grown = sum(map(int.__lt__, track, track[1:]))
        per_step = _weighted(by_step, track)
        per_min = None if by_time is None else _weighted(by_time, track) * 60
        pace = per_step if per_min is None else per_min
        found.append(Trend(name, grown, steps, per_step, per_min, track, steady=grown >= _STEADY * steps and pace > 0))
    return sorted(found, key=_suspicion)


def _suspicion(one: Trend) -> tuple[bool, bool, int, float, str]:
    return not one.steady, not is_application(one.name), -one.steps_grown, -one.pace, one.name


def _weighted(weights: Sequence[float], track: Sequence[int]) -> float:
    first = track[0]
    return sum(weight * (size - first) for weight, size in zip(weights, track))


def times_s(histograms: Sequence[Histogram]) -> list[float] | None:
    """Seconds of each since the first; None where one is unknown, or they do not increase."""
    for clock in ("uptime_s", "time_s"):
        known = [getattr(histogram.stamp, clock) for histogram in histograms]
        if None not in known and all(earlier < later for earlier, later in zip(known, known[1:])):
            return [time - known[0] for time in known]
    return None


def growth_of(one: Trend) -> str:
    """`in 4 of 4 steps, +57.1 MiB a minute`; per histogram where the times are unknown."""
    each = "histogram" if one.bytes_per_min is None else "minute"
    return f"in {one.steps_grown} of {one.steps} steps, {signed_size(one.pace)} a {each}"
