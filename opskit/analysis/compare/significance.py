"""Whether two measured values differ by more than the noise of a short window."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from opskit.collect.compare.facts import BYTES, BYTES_PER_S, COUNT, CPUS, PER_S, SECONDS, SHARE

if TYPE_CHECKING:
    from opskit.analysis.jmap_diff.compare import Growth
    from opskit.collect.compare.facts import Fact

POINTS = 0.05  # of a share: five percentage points
RELATIVE = 0.30  # of the larger value
_FLOORS = {SHARE: POINTS, CPUS: POINTS, PER_S: 20.0, BYTES: 64 << 20, BYTES_PER_S: 1 << 20, SECONDS: 0.002, COUNT: 20.0}
# Of these an idle machine has thousands, and a load of another kind other ones: only a large difference says something.
_OWN_FLOORS = {"host.switches": 20_000.0, "host.pswpin": 50.0, "host.pgmajfault": 50.0, "host.pswpout": 50.0, "host.TcpExt.ListenOverflows": 1.0, "host.compact_stall": 50.0, "jvm.rss": 512 << 20}  # fmt: skip
_SIGMAS = 3.0
# Counts below this are bursts as likely as a rate: events of a kernel come in groups.
_BURST = 4.0
_FACTORS = {"host.switches": 2.0, "host.pgmajfault": 2.0, "jvm.rss": 2.0}
# How full something is says nothing before it is nearly full.
_ONLY_ABOVE = {"host.memory_used": 0.85, "host.swap_used": 0.25, "jvm.memory_share": 0.8, "jvm.fds_share": 0.5}
_BUSY = 0.3  # of a disk
# Requests of an idle disk come in bursts: their time varies by milliseconds.
_LONG_S, _MANY = 0.01, 100
_WHOLE = 0.5  # a share of the window that needs no second proof
# Of these more is work, and not a symptom.
NEUTRAL = ("host.switches", "jvm.disk_read_bytes", "jvm.disk_written_bytes", "jvm.cpu", "jvm.rss", "jvm.threads")


def differ(bad: Fact, good: Fact) -> bool:
    """Whether the values are at least 5 points (or its unit's floor) and 30 % apart, beyond chance."""
    one, other = float(bad.value), float(good.value)
    apart, larger = abs(one - other), max(abs(one), abs(other))
    if apart < _OWN_FLOORS.get(bad.key, _FLOORS.get(bad.unit, 0.0)) - 1e-9 or apart < RELATIVE * larger - 1e-9:
        return False
    factor = _FACTORS.get(bad.key)
    if factor is not None and larger < factor * min(abs(one), abs(other)):
        return False
    if larger < _ONLY_ABOVE.get(bad.key, _BUSY if bad.key.endswith(".busy") else 0.0) or _overlap(bad, good):
        return False
    return _is_proven(bad, good)


def _overlap(bad: Fact, good: Fact) -> bool:
    """Whether the values between the samples of one side reach those of the other."""
    spans = [
        (each.value if each.low is None else each.low, each.value if each.high is None else each.high)
        for each in (bad, good)
    ]
    (low, high), (other_low, other_high) = spans
    return float(low) <= float(other_high) and float(other_low) <= float(high)


def _is_proven(bad: Fact, good: Fact) -> bool:
    """By the events that a value rests on (they vary with the root of their number), else by the values since the start."""
    if bad.events is None or good.events is None:
        return True
    total = bad.events + good.events
    apart = abs(float(bad.value) - float(good.value))
    if bad.unit == SECONDS:
        return apart >= _LONG_S or min(bad.events, good.events) >= _MANY
    if bad.unit == PER_S:
        return abs(bad.events - good.events) > _SIGMAS * sqrt(_BURST * total)
    if apart >= _WHOLE:
        return True
    # A share of n events is off by about one part in the root of n.
    error = sqrt(sum(float(each.value) ** 2 / max(each.events or 0.0, 1.0) for each in (bad, good)))
    if apart > _SIGMAS * error:
        return True
    if bad.since is None or good.since is None:
        return False
    since, same = bad.since - good.since, (bad.since - good.since) * (float(bad.value) - float(good.value)) > 0
    return same and abs(since) >= POINTS and abs(since) >= RELATIVE * max(bad.since, good.since)


def is_grown(one: Growth, heap: Growth) -> bool:
    """Whether a class has at least 30 % more or less than before, and this is at least 5 points of the heap."""
    apart = abs(one.bytes_diff)
    heap_bytes = max(heap.bytes, heap.bytes - heap.bytes_diff)
    return apart >= POINTS * heap_bytes and apart >= RELATIVE * max(one.bytes, one.bytes - one.bytes_diff)


def size_of(bad: Fact, good: Fact) -> float:
    """How large a difference is, to rank it: shares by their points, the others by half of their relative change."""
    one, other = float(bad.value), float(good.value)
    if bad.unit == SHARE:
        return abs(one - other)
    return abs(one - other) / max(abs(one), abs(other), 1e-9) / 2
