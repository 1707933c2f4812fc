"""Whether histograms are comparable: of one JVM, at different times, in their order. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.jvm.dumps.class_names import fold, is_application

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opskit.jvm.dumps.histogram import Histogram

_COMPARABLE_AFTER_GC = 3  # as many histograms make a trend
_FEW = 0.05  # of the classes come and go in one JVM


def comparable(histograms: Sequence[Histogram]) -> list[Histogram]:
    """The histograms to compare: of a log with those before and after each full GC, only those after it."""
    after = [histogram for histogram in histograms if histogram.moment == "after full gc"]
    others = {histogram.moment for histogram in histograms} - {"after full gc", "before full gc"}
    return after if len(after) >= _COMPARABLE_AFTER_GC and not others else list(histograms)


def oddities(histograms: Sequence[Histogram], came: int) -> list[str]:
    """Why these may not be of one JVM at different times, a sentence each. `came`: how many classes are new."""
    found = []
    if twins := _first_twins(histograms):
        places = ", ".join(f"{one.source}:{one.line}" for one in (histograms[number - 1] for number in twins))
        same = f"histograms {twins[0]} and {twins[1]} ({places}) are the same in every row"
        found.append(f"{same}: the same file twice, or nothing happened between them")
    first, last = histograms[0], histograms[-1]
    reasons = [
        _differing("JDK versions", [_jdk_version(histogram) for histogram in histograms]),
        _differing("kinds of JVM", ["OpenJ9" if one.dialect == "openj9" else "HotSpot" for one in histograms]),
        _differing("pids", [histogram.stamp.pid for histogram in histograms]),
    ]
    fewer = min(len(first.rows), len(last.rows))
    if came > (len(last.rows) - fewer) + fewer * _FEW:
        reasons += [_restarted(first, last), _strangers(first, last)]
    if reason := "; ".join(reason for reason in reasons if reason):
        found.append(f"these look like different JVMs ({reason}): their difference is not growth")
    uptimes = [histogram.stamp.uptime_s for histogram in histograms]
    if any(one is not None and other is not None and one > other for one, other in zip(uptimes, uptimes[1:])):
        found.append(
            "the uptimes decrease: the histograms are not in the order they were taken in, or the JVM was restarted"
        )
    return found


def _first_twins(histograms: Sequence[Histogram]) -> tuple[int, int] | None:
    """The numbers, from 1, of the first two that are equal in every row."""
    alike: dict[object, list[int]] = {}
    for number, histogram in enumerate(histograms, 1):
        rows = histogram.rows
        alike.setdefault((histogram.total, len(rows), next(iter(rows.items()), None)), []).append(number)
    twins = []
    for numbers in alike.values():
        known: dict[object, int] = {}
        for number in numbers if len(numbers) > 1 else ():
            earlier = known.setdefault(frozenset(histograms[number - 1].rows.items()), number)
            if earlier != number:
                twins.append((earlier, number))
                break
    return min(twins, default=None)


def _differing(what: str, values: Iterable[object]) -> str | None:
    known = list(dict.fromkeys(str(value) for value in values if value is not None))
    return f"{what} {', '.join(known)}" if len(known) > 1 else None


def _jdk_version(histogram: Histogram) -> str | None:
    modules = histogram.modules.values()
    return next((module.partition("@")[2] for module in modules if module.startswith("java.base@")), None)


def _restarted(first: Histogram, last: Histogram) -> str | None:
    """Whether the addresses of lambdas and hidden classes differ: another run. Those of the JDK's archive stay the same."""
    one, other = ({name for name in h.rows if "/0x" in name and name not in h.modules} for h in (first, last))
    if min(len(one), len(other)) >= 5 and len(one & other) < min(len(one), len(other)) / 5:
        return "few lambdas have the same address"
    return None


def _strangers(first: Histogram, last: Histogram) -> str | None:
    if first.cut or last.cut:
        return None
    one, other = (set(filter(is_application, map(fold, h.rows))) for h in (first, last))
    both, smaller = len(one & other), min(len(one), len(other))
    return f"{both} of {smaller} application classes in common" if smaller >= 10 and both < smaller / 2 else None
