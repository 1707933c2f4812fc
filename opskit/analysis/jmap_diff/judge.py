"""What grew between class histograms, and findings for what keeps growing. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.jmap_diff.comparable import comparable, oddities
from opskit.analysis.jmap_diff.compare import Comparison, Growth, compare, order, visible
from opskit.analysis.jmap_diff.trend import Trend, minutes_until_full
from opskit.jvm.dumps.class_names import to_readable
from opskit.quantities import plural, signed_size, size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.finding import Finding
    from opskit.analysis.jmap_diff.names import Choice
    from opskit.collect.jmap_diff import Facts
    from opskit.jvm.dumps.histogram import Histogram

_MOST_FINDINGS = 3
_NOTABLE = 0.01  # of all bytes


class Result(NamedTuple):
    """The comparison. `used`: the histograms that were compared, with how long each paused the JVM in seconds.

    `rows`: those that are large enough, in no order, and `order` their indexes. `is_partial`: the first or last histogram
    is cut. `printed`: the difference of the Total lines where rows are missing: (instances, bytes). `reachable`: each
    histogram follows a full GC. Between two collections of the old generation, all other growth may be garbage.
    """

    facts: Facts
    choice: Choice
    used: list[tuple[Histogram, float | None]]
    found: Comparison
    rows: list[Growth]
    order: list[int]
    trend: list[Trend]
    is_partial: bool
    reachable: bool
    printed: tuple[int, int] | None
    full_in_min: float | None
    oddities: list[str]
    findings: list[Finding]

    def first(self, count: int | None) -> list[Growth]:
        """The first rows in the order; None or 0: all of them."""
        return [self.rows[index] for index in self.order[: count or None]]


def judge(facts: Facts, choice: Choice, sort: str = "bytes", min_bytes: int = 0) -> Result:
    """Compare the last histogram with the first; find what keeps growing in three or more.

    `sort`: bytes, instances, growth or name. `min_bytes`: leave out smaller differences.
    """
    used = comparable([sample.histogram for sample in facts.samples])
    pauses = {id(sample.histogram): sample.pause_s for sample in facts.samples}
    found = compare(used, choice)
    rows = visible(found.rows, sort, min_bytes)
    trend = [one for one in found.trend if abs(one.bytes[-1] - one.bytes[0]) >= min_bytes]
    is_partial = any(histogram.cut for histogram in (used[0], used[-1]))
    reachable = facts.live or all(histogram.moment == "after full gc" for histogram in used)
    full_in_min, total = None, used[-1].total
    if reachable and facts.jvm is not None and facts.jvm.heap_max_bytes is not None and total is not None:
        full_in_min = minutes_until_full(found.trend, total.bytes, facts.jvm.heap_max_bytes)
    return Result(
        facts,
        choice,
        [(histogram, pauses[id(histogram)]) for histogram in used],
        found,
        rows,
        order(rows, sort),
        trend,
        is_partial,
        reachable,
        _by_total_lines(used) if is_partial and not choice.is_partial else None,
        full_in_min,
        oddities(used, found.came),
        [_growing(facts, used[-1], found, one, reachable=reachable) for one in _leaks(found, trend)],
    )


def _by_total_lines(used: Sequence[Histogram]) -> tuple[int, int] | None:
    first, last = used[0].total, used[-1].total
    return None if first is None or last is None else (last.instances - first.instances, last.bytes - first.bytes)


def _leaks(found: Comparison, trend: Sequence[Trend]) -> list[Trend]:
    """The likeliest leaks: steady, notable, and grown in as many steps as the first."""
    least = _NOTABLE * found.everything.bytes
    steady = [one for one in trend if one.steady and one.bytes[-1] - one.bytes[0] >= least]
    return [one for one in steady if one.steps_grown >= steady[0].steps_grown][:_MOST_FINDINGS]


def _growing(facts: Facts, last: Histogram, found: Comparison, one: Trend, *, reachable: bool) -> Finding:
    from opskit.analysis.finding import Entity, Finding  # a millisecond of start-up

    jvm = facts.jvm
    closer = None
    if not facts.has_ended and not reachable:
        closer = shell.command("opskit", "jmap-diff", jvm.pid if jvm else "PID", "--live", "-c", 5)
    elif not facts.has_ended and jvm:
        closer = shell.command("jcmd", jvm.pid, "GC.heap_dump", "FILE")
    return Finding(
        "class-keeps-growing",
        "warning" if reachable or jvm is None else "note",  # files were kept for comparison, minutes or hours apart
        Entity("process", jvm.pid, jvm.start_ticks) if jvm else Entity("file", last.source),
        f"{to_readable(one.name)} keeps growing: {growth_of(one)}, {size(one.bytes[-1])} by now",
        plural(len(one.bytes), "histogram") + ("" if reachable else "; it may be garbage, which --live leaves out"),
        next=closer,
        share=one.bytes[-1] / max(found.everything.bytes, 1),
        window_s=found.times_s[-1] if found.times_s else None,
    )


def growth_of(one: Trend) -> str:
    """`in 4 of 4 steps, +57.1 MiB a minute`; per histogram where the times are unknown."""
    each = "histogram" if one.bytes_per_min is None else "minute"
    return f"in {one.steps_grown} of {one.steps} steps, {signed_size(one.pace)} a {each}"
