"""The spaces that can fill up: heap, Metaspace, class space, direct memory, native memory; and when each is full. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.jmap_diff.evidence import LEAST_HISTOGRAMS, still_grows
from opskit.analysis.slope import slope
from opskit.proc.files.limits import UNLIMITED
from opskit.quantities import duration, signed_size, size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from opskit.analysis.jmap_diff.evidence import Evidence
    from opskit.analysis.jmap_diff.trend import Trend
    from opskit.collect.jmap_diff import Facts, Limits, Sample

LEAST_POINTS = 4  # of a forecast
_STRAIGHT = 0.9  # the share of the variance that a line explains
_OF_SPACE, _OF_ITSELF = 0.01, 0.1
_LEAST_BYTES, _LEAST_OF_LOADERS_BYTES = 1 << 20, 128 << 10
_FEWEST = 10  # objects more, or it is no leak
_OF_STEPS = 0.75
_NEARLY_FULL = 0.9  # of the heap after a full collection: spaces have fixed sizes, so that it is never all used
_DEFLATER_BYTES, _INFLATER_BYTES = 262 << 10, 41 << 10  # zconf.h: 256 and 32 KiB with the default window, and the state
_DIRECT = ("java.nio.DirectByteBuffer",)
_DEFLATERS = ("java.util.zip.Deflater",)
_INFLATERS = ("java.util.zip.Inflater",)
_CLASSES = ("java.lang.Class",)
_NOT_LEAKED = ("DelegatingClassLoader",)  # reflection makes one for each often called method, and frees them


class Forecast(NamedTuple):
    """A space that grows. `full_in_min` None: the series does not support a forecast. Bytes None: unknown.

    `left_bytes`: what its cgroup or the machine leaves to a space that has no limit of its own.
    """

    space: str
    used_bytes: int | None
    ceiling_bytes: int | None
    ceiling: str
    per_min: float | None
    full_in_min: float | None
    left_bytes: int | None = None

    @property
    def share(self) -> float | None:
        """How full it is."""
        used, most = self.used_bytes, self.ceiling_bytes
        return None if used is None or not most else used / most

    @property
    def is_nearly_full(self) -> bool:
        """Whether next to nothing of it is left."""
        share = self.share
        return share is not None and share >= _NEARLY_FULL


class Objects(NamedTuple):
    """Objects that keep growing in number: how many more, and how many now."""

    names: tuple[str, ...]
    more: int
    now: int


class Growing(NamedTuple):
    """A space outside of the heap that objects fill: `kind` is metaspace (with the `loaders`), direct or zlib."""

    kind: str
    objects: Objects
    loaders: Objects | None
    forecast: Forecast


def forecast(
    space: str,
    points: Sequence[tuple[float, int]],
    ceiling_bytes: int | None,
    ceiling: str,
    left_bytes: int | None = None,
) -> Forecast:
    """When a series of (seconds, bytes) reaches its ceiling."""
    used_bytes, per_min = points[-1][1], per_minute(points)
    minutes = max(0, ceiling_bytes - used_bytes) / per_min if per_min and ceiling_bytes is not None else None
    return Forecast(space, used_bytes, ceiling_bytes, ceiling, per_min, minutes, left_bytes)


def per_minute(points: Sequence[tuple[float, int]]) -> float | None:
    """The slope of a series that supports a forecast: long enough, rising in each step, and in a straight line."""
    rises = all(one < other for (_, one), (_, other) in zip(points, points[1:]))
    per_s = slope(points) if rises and len(points) >= LEAST_POINTS and _is_straight(points) else None
    return None if per_s is None else per_s * 60


def _is_straight(points: Sequence[tuple[float, int]]) -> bool:
    rate = slope(points) or 0.0
    mean_x, mean_y = (sum(column) / len(points) for column in zip(*points))
    spread = sum((y - mean_y) ** 2 for _, y in points)
    missed = sum((y - mean_y - rate * (x - mean_x)) ** 2 for x, y in points)
    return bool(spread) and missed <= (1 - _STRAIGHT) * spread


def heap_forecast(
    facts: Facts, proof: Evidence, samples: Sequence[Sample], times_s: Sequence[float] | None, leaking: Sequence[Trend]
) -> Forecast | None:
    """When the suspects fill the heap; also without any where it is full. None: nothing is proven, or sizes are unknown."""
    most = facts.jvm.heap_max_bytes if facts.jvm is not None else None
    totals = [total.bytes for number in proof.picked if (total := samples[number].histogram.total) is not None]
    if not proof.proves or not most or not totals:
        return None
    per_min = None
    if leaking and times_s is not None:
        tracks = [sum(one.bytes[number] for one in leaking) for number in proof.picked]
        per_min = per_minute(list(zip([times_s[number] for number in proof.picked], tracks)))
    minutes = max(0, most - totals[-1]) / per_min if per_min else None
    # Between collections some of it is garbage, but not in each of three histograms or more.
    used_bytes = totals[-1] if leaking or proof.kind == "reachable" else min(totals)
    found = Forecast("heap", used_bytes, most, "its maximum", per_min, minutes)
    return found if leaking or found.is_nearly_full else None


def growing_spaces(
    facts: Facts, proof: Evidence, samples: Sequence[Sample], times_s: Sequence[float] | None
) -> list[Growing]:
    """The spaces outside of the heap that reachable objects keep filling."""
    if not proof.proves or facts.jvm is None or times_s is None or len(proof.picked) < LEAST_HISTOGRAMS:
        return []
    picked = [(times_s[number], samples[number]) for number in proof.picked]
    limits = facts.limits
    found = (_metaspace(picked, limits), _direct(picked, limits), _zlib(picked, limits))
    return [one for one in found if one is not None]


def _metaspace(picked: Sequence[tuple[float, Sample]], limits: Limits) -> Growing | None:
    """Classes and their loaders, in Metaspace."""
    classes = _more(picked, _CLASSES)
    loaders = _more(picked, _loaders(picked))
    used = _sizes(picked, lambda sample: sample.info and sample.info.metaspace_bytes)
    # Without more loaders it is a program that starts: that loads classes for minutes.
    if classes is None or loaders is None or used is None or min(classes.more, loaders.more) < _FEWEST:
        return None
    own = forecast("Metaspace", used, *_ceiling(limits.metaspace, used[-1][1], limits, "MaxMetaspaceSize"))
    if not _has_grown(used, _LEAST_OF_LOADERS_BYTES) and not _is_large(used, own.ceiling_bytes):
        return None
    of_classes = _sizes(picked, lambda sample: sample.info and sample.info.class_space_bytes)
    if of_classes is not None and limits.class_space is not None:
        narrow = forecast("class space", of_classes, int(limits.class_space), "CompressedClassSpaceSize")
        own = min((own, narrow), key=lambda one: UNLIMITED if one.full_in_min is None else one.full_in_min)
    return Growing("metaspace", classes, loaders, own)


def _direct(picked: Sequence[tuple[float, Sample]], limits: Limits) -> Growing | None:
    """Direct buffers, and the memory that java.nio.Bits counts for them."""
    buffers = _more(picked, _DIRECT)
    used = _sizes(picked, lambda sample: sample.direct_bytes)
    ceiling = (
        "the maximum heap, since MaxDirectMemorySize is not set" if limits.direct_is_default else "MaxDirectMemorySize"
    )
    ceiling_bytes = None if limits.direct is None else int(limits.direct)
    if buffers is None or buffers.more < _FEWEST:
        return None
    if used is None:
        is_large = per_minute([(at_s, _count(sample, _DIRECT)) for at_s, sample in picked]) is not None
        own = Forecast("direct memory", None, ceiling_bytes, ceiling, None, None)
    else:
        is_large = _keeps_growing([size for _, size in used]) and _is_large(used, ceiling_bytes)
        own = forecast("direct memory", used, ceiling_bytes, ceiling)
    return Growing("direct", buffers, None, own) if is_large else None


def _zlib(picked: Sequence[tuple[float, Sample]], limits: Limits) -> Growing | None:
    """Deflaters and Inflaters that are not ended: zlib's memory is outside of the heap, and has no limit of its own."""
    pairs = ((_more(picked, _DEFLATERS), _DEFLATER_BYTES), (_more(picked, _INFLATERS), _INFLATER_BYTES))
    grown = [(objects, each) for objects, each in pairs if objects is not None and objects.more >= _FEWEST]
    if not grown:
        return None
    objects, each = max(grown, key=lambda pair: pair[0].more * pair[1])
    used = [(at_s, _count(sample, objects.names) * each) for at_s, sample in picked]
    own = forecast("zlib's native memory", used, *_ceiling(UNLIMITED, used[-1][1], limits, "limit of its own"))
    return Growing("zlib", objects, None, own) if _is_large(used, None) else None


def _ceiling(own: float | None, used_bytes: int, limits: Limits, name: str) -> tuple[int | None, str, int | None]:
    """A space's own limit; without one the memory that is left to the process, which is the third part."""
    if own is None:
        return None, "its limit is unknown", None
    if own != UNLIMITED:
        return round(own), name, None
    if limits.room is None:
        return None, f"no {name}", None
    left_bytes = limits.room.free_bytes
    return used_bytes + left_bytes, f"no {name}: the limit is {limits.room.owner}", left_bytes


def _count(sample: Sample, names: Iterable[str]) -> int:
    rows = sample.histogram.rows
    return sum(rows[name][0] for name in names if name in rows)


def _loaders(picked: Sequence[tuple[float, Sample]]) -> tuple[str, ...]:
    """The class loaders among the classes, by their names."""
    names = picked[-1][1].histogram.rows
    return tuple(
        name for name in names if name.endswith("Loader") and not name.endswith(_NOT_LEAKED) and name[0] != "["
    )


def _more(picked: Sequence[tuple[float, Sample]], names: tuple[str, ...]) -> Objects | None:
    """Those of these classes, together, that keep growing in number; the one that grew most comes first."""
    counts = [_count(sample, names) for _, sample in picked]
    if not _keeps_growing(counts):
        return None
    first, last = picked[0][1], picked[-1][1]
    ranked = sorted(names, key=lambda name: _count(first, (name,)) - _count(last, (name,)))
    return Objects(tuple(ranked), counts[-1] - counts[0], counts[-1])


def _keeps_growing(counts: Sequence[int]) -> bool:
    steps = len(counts) - 1
    return counts[-1] > counts[0] and sum(map(int.__lt__, counts, counts[1:])) >= _OF_STEPS * steps


def _sizes(
    picked: Sequence[tuple[float, Sample]], size_of: Callable[[Sample], int | None]
) -> list[tuple[float, int]] | None:
    found = [(at_s, used) for at_s, sample in picked if (used := size_of(sample)) is not None]
    return found if len(found) == len(picked) else None


def _is_large(used: Sequence[tuple[float, int]], ceiling_bytes: int | None) -> bool:
    """Whether it grew by 1 % of its ceiling; or, at a steady pace, by 10 % of itself. Pools that fill up do neither for long."""
    grown = used[-1][1] - used[0][1]
    if ceiling_bytes is not None and grown > _OF_SPACE * ceiling_bytes:
        return still_grows([size for _, size in used])
    return _has_grown(used, _LEAST_BYTES) and per_minute(used) is not None


def _has_grown(used: Sequence[tuple[float, int]], least_bytes: int) -> bool:
    """Whether it grew by 10 % of itself, and by so many bytes, and goes on."""
    sizes = [size for _, size in used]
    return sizes[-1] - sizes[0] > max(_OF_ITSELF * sizes[0], least_bytes) and still_grows(sizes)


def sentence(one: Forecast) -> str:
    """`Metaspace: 38.2 MiB of 64.0 MiB (MaxMetaspaceSize), +24.1 MiB a minute: full in 64 s`; without what is unknown."""
    used = "an unknown part" if one.used_bytes is None else size(one.used_bytes)
    of = "" if one.ceiling_bytes is None or one.left_bytes is not None else f" of {size(one.ceiling_bytes)}"
    left = "" if one.left_bytes is None else f", {size(one.left_bytes)} left"
    pace = "" if one.per_min is None else f", {signed_size(one.per_min)} a minute"
    full = "" if one.full_in_min is None else f": full in {duration(one.full_in_min * 60)}"
    return f"{one.space}: {used}{of} ({one.ceiling}{left}){pace}{full}"


def objects_of(one: Growing) -> str:
    """Which objects fill a space."""
    more = f"{one.objects.more:+,d} to {one.objects.now:,d}"
    if one.loaders is not None:
        loaders = f"{one.loaders.names[0]} {one.loaders.more:+,d} to {one.loaders.now:,d}"
        return f"class loaders keep growing: {loaders}; classes {more}"
    if one.kind == "direct":
        return f"direct buffers keep growing: java.nio.DirectByteBuffer {more}"
    return f"{one.objects.names[0]} keeps growing: {more}, which end() or close() would free"
