"""Class histograms against each other: what grew, what keeps growing, and whether they are comparable at all. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from opskit.analysis.slope import slope_weights
from opskit.errors import BadInput
from opskit.jvm.dumps import class_names as classname

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Mapping, Sequence

    from opskit.jvm.dumps.histogram import Histogram

Tallies = dict[str, tuple[int, int]]  # name -> (instances, bytes)

STEADY = 0.75  # grown in that share of the steps: no noise any more
_COMPARABLE_AFTER_GC = 3  # as many histograms make a trend
_MOST_BLANKS, _SPARSEST = 20_000_000, 20  # a track has a place for each histogram, also where the class is not in it
_FEW = 0.05  # of the classes come and go in one JVM


class Growth(NamedTuple):
    """One class (or package, or module): what it has in the last histogram, and how that differs from the first."""

    name: str
    instances: int
    bytes: int
    instances_diff: int
    bytes_diff: int


class Trend(NamedTuple):
    """How the bytes of one class went. `bytes_per_min` is None where the times are not known. `steady`: no noise."""

    name: str
    steps_grown: int
    steps: int
    bytes_per_step: float
    bytes_per_min: float | None
    bytes: tuple[int, ...]
    steady: bool


@dataclass(frozen=True)
class Choice:
    """What to compare: which classes (regular expressions, searched in the JVM's names), and rolled up to what."""

    by: str = "class"
    fold: bool = True
    vm: bool = True
    include: re.Pattern[str] | None = None
    exclude: re.Pattern[str] | None = None

    @property
    def is_partial(self) -> bool:
        """Whether any class is left out."""
        return not self.vm or self.include is not None or self.exclude is not None


@dataclass(frozen=True)
class Comparison:
    """The last of some histograms against the first, and the way between.

    `rows` are those that changed, in no order; `total` is all that was chosen, `vm` the VM's own `<...>` part of it,
    `everything` also what was left out. `trend` is ranked, the likeliest leak first; empty for two histograms.
    `modules` has the module of each name that is in one, some with a version behind an @. `came`: how many classes the
    last has that the first has not. `appeared` names what the first has not got although it is cut, and may have had;
    `vanished` the same of the last; largest first.
    """

    rows: list[Growth]
    total: Growth
    vm: Growth
    everything: Growth
    trend: list[Trend] = field(default_factory=list)
    modules: Mapping[str, str] = field(default_factory=dict)
    times_s: list[float] | None = None
    came: int = 0
    appeared: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)


def compare(histograms: Sequence[Histogram], choice: Choice) -> Comparison:
    """Compare two histograms or more, in the order they were taken."""
    first, last = histograms[0], histograms[-1]
    raw, gone = changes(first.rows, last.rows)
    names = _Names(histograms, choice, gone)
    rows = names.rows(raw, last.rows)
    everything = _total(raw, _sum(last.rows))
    times = times_s(histograms)
    series = [names.final(histogram.rows) for histogram in histograms] if len(histograms) > 2 else []
    return Comparison(
        rows=rows,
        total=_total(rows, _sum(names.final(last.rows))) if choice.is_partial else everything,
        vm=names.vm(raw, last.rows),
        everything=everything,
        trend=trend(series, times, [histogram.cut is None for histogram in histograms]) if series else [],
        modules=names.modules if choice.by == "class" else {},
        times_s=times,
        came=len(last.rows) - (len(first.rows) - len(gone)),
        appeared=_largest_first(row for row in rows if row[1] == row[3] and row[2] == row[4]) if first.cut else [],
        vanished=_largest_first(row for row in rows if not row[1] and not row[2]) if last.cut else [],
    )


def _largest_first(rows: Iterable[Growth]) -> list[str]:
    return [row.name for row in sorted(rows, key=lambda row: -abs(row.bytes_diff))]


def changes(
    before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]
) -> tuple[list[Growth], list[str]]:
    """A row for each name whose instances or bytes are not the same on both sides, and the names that are gone.

    What is absent counts 0.
    """
    nothing = (0, 0)
    left, make = dict(before), partial(tuple.__new__, Growth)  # half the time of Growth()
    was = left.pop
    rows = [
        make((name, now[0], now[1], now[0] - then[0], now[1] - then[1]))
        for name, now in after.items()
        if now != (then := was(name, nothing))
    ]
    rows += [Growth(name, 0, 0, -then[0], -then[1]) for name, then in left.items() if then != nothing]
    return rows, list(left)


def visible(rows: Iterable[Growth], sort: str, min_bytes: int) -> list[Growth]:
    """The rows whose bytes changed, by that much or more; sorted by instances also those with as many bytes as before."""
    if sort == "instances" and min_bytes == 0:
        return list(rows)
    least = max(1, min_bytes)
    return [row for row in rows if abs(row[4]) >= least]


def order(rows: Sequence[Growth], sort: str) -> list[int]:
    """The rows' places, largest growth first: in bytes, in instances, or in proportion to what was there; or by name."""
    places = sorted(range(len(rows)), key=[row[4] for row in rows].__getitem__, reverse=True)
    if sort == "name":
        return sorted(places, key=lambda place: rows[place].name)
    if sort == "instances":
        return sorted(places, key=lambda place: rows[place].instances_diff, reverse=True)
    return sorted(places, key=lambda place: proportion(rows[place]), reverse=True) if sort == "growth" else places


def proportion(row: Growth) -> float:
    """By which part of what was there a row grew: 1.0 is twice as much, infinity for what was not there."""
    before = row.bytes - row.bytes_diff
    return row.bytes_diff / before if before else float("inf")


def trend(
    series: Sequence[Mapping[str, tuple[int, int]]], times: Sequence[float] | None, complete: Sequence[bool]
) -> list[Trend]:
    """How each name's bytes went, for those that changed; the suspects first.

    What is absent counts 0, but for the histograms that are not `complete`: a name that one of those has not got is
    left out. Raises BadInput where hardly a name is in two of them. Ranked: who grew in nearly every step before the noise; the application's classes before arrays and the
    JDK's; then by the steps grown, then by the slope.
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
            f"{len(series):,} of them name {len(names):,} classes, hardly any in two of them: give those of one JVM",
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
        found.append(Trend(name, grown, steps, per_step, per_min, track, steady=grown >= STEADY * steps and pace > 0))
    return sorted(found, key=_suspicion)


def pace_of(one: Trend) -> float:
    """How fast, in bytes: a minute where the times are known, a step otherwise; the same for all of one comparison."""
    return one.bytes_per_step if one.bytes_per_min is None else one.bytes_per_min


def _suspicion(one: Trend) -> tuple[bool, bool, int, float, str]:
    return not one.steady, not classname.is_application(one.name), -one.steps_grown, -pace_of(one), one.name


def _weighted(weights: Sequence[float], track: Sequence[int]) -> float:
    first = track[0]
    return sum(weight * (size - first) for weight, size in zip(weights, track))


def minutes_until_full(found: Sequence[Trend], used_bytes: int, max_bytes: int) -> float | None:
    """When the heap is full if whatever grows steadily goes on; None where nothing does, or the times are not known."""
    per_min = sum(one.bytes_per_min or 0.0 for one in found if one.steady)
    return max(0, max_bytes - used_bytes) / per_min if per_min > 0 else None


def times_s(histograms: Sequence[Histogram]) -> list[float] | None:
    """When each was taken, in seconds since the first; None where that is not known of all, or does not go forward."""
    for clock in ("uptime_s", "time_s"):
        known = [getattr(histogram.stamp, clock) for histogram in histograms]
        if None not in known and all(earlier < later for earlier, later in zip(known, known[1:])):
            return [time - known[0] for time in known]
    return None


def comparable(histograms: Sequence[Histogram]) -> list[Histogram]:
    """Those to compare: a log with histograms before and after each full GC tells a trend by those after it."""
    after = [histogram for histogram in histograms if histogram.moment == "after full gc"]
    others = {histogram.moment for histogram in histograms} - {"after full gc", "before full gc"}
    return after if len(after) >= _COMPARABLE_AFTER_GC and not others else list(histograms)


def oddities(histograms: Sequence[Histogram], came: int) -> list[str]:
    """Why these may not be histograms of one JVM at different times, a sentence each. `came`: the last's new classes."""
    found = []
    if twins := _first_twins(histograms):
        number, later = twins
        found.append(
            f"histograms {number} and {later} ({_place(histograms[number - 1])}, {_place(histograms[later - 1])}) are the "
            "same in every row: the same file twice, or nothing happened between them"
        )
    first, last = histograms[0], histograms[-1]
    reasons = [
        _differing("JDK versions", [_jdk_version(histogram) for histogram in histograms]),
        _differing(
            "kinds of JVM", ["OpenJ9" if histogram.dialect == "openj9" else "HotSpot" for histogram in histograms]
        ),
        _differing("pids", [histogram.stamp.pid for histogram in histograms]),
    ]
    fewer = min(len(first.rows), len(last.rows))
    if came > (len(last.rows) - fewer) + fewer * _FEW:
        reasons += [_restarted(first, last), _strangers(first, last)]
    if reason := "; ".join(reason for reason in reasons if reason):
        found.append(f"these look like different JVMs ({reason}): their difference is no growth")
    uptimes = [histogram.stamp.uptime_s for histogram in histograms]
    if any(one is not None and other is not None and one > other for one, other in zip(uptimes, uptimes[1:])):
        found.append("the uptimes run backwards: another order than they were taken in, or a restart between them")
    return found


def _first_twins(histograms: Sequence[Histogram]) -> tuple[int, int] | None:
    """The numbers, from 1, of the first two that are the same in every row. Rows are compared of those alone that look alike."""
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


def _place(histogram: Histogram) -> str:
    return f"{histogram.source}:{histogram.line}"


def _differing(what: str, values: Iterable[object]) -> str | None:
    known = list(dict.fromkeys(str(value) for value in values if value is not None))
    return f"{what} {', '.join(known)}" if len(known) > 1 else None


def _jdk_version(histogram: Histogram) -> str | None:
    versions = (module.partition("@")[2] for module in histogram.modules.values() if module.startswith("java.base@"))
    return next(versions, None)


def _restarted(first: Histogram, last: Histogram) -> str | None:
    """Lambdas and hidden classes have other addresses in another run; those of the JDK's own archive keep theirs."""
    one, other = (
        {name for name in histogram.rows if "/0x" in name and name not in histogram.modules}
        for histogram in (first, last)
    )
    if min(len(one), len(other)) >= 5 and len(one & other) < min(len(one), len(other)) / 5:
        return "hardly a lambda has the same address"
    return None


def _strangers(first: Histogram, last: Histogram) -> str | None:
    if first.cut or last.cut:
        return None
    one, other = (set(filter(classname.is_application, map(classname.fold, h.rows))) for h in (first, last))
    both, smaller = len(one & other), min(len(one), len(other))
    return f"{both} of {smaller} application classes in common" if smaller >= 10 and both < smaller / 2 else None


class _Names:
    """From the names of histograms to those that are compared: folded, chosen, rolled up."""

    def __init__(self, histograms: Sequence[Histogram], choice: Choice, gone: Sequence[str]) -> None:
        self.choice = choice
        self.has_modules = any(histogram.has_modules for histogram in histograms)
        last = histograms[-1].rows
        names = [*last, *gone]
        for histogram in histograms[1:-1]:
            names += [name for name in histogram.rows if name not in last]
        everything = "\n".join(names)  # to search all of them at once
        self.any_vm = classname.any_vm(everything)
        self.folded = classname.fold_all(names, everything) if choice.fold else {}
        self.modules: dict[str, str] = {}  # of each name, some with a version
        for histogram in histograms:
            self.modules.update(histogram.modules)
        for generated, name in self.folded.items():
            if generated in self.modules:
                self.modules[name] = classname.fold(self.modules[generated].partition("@")[0])

    def rows(self, raw: list[Growth], last: Mapping[str, tuple[int, int]]) -> list[Growth]:
        """Rows under the names that are compared. Most keep theirs, and are passed on as they are."""
        folded = self.folded
        if self.choice.by != "class" or self.choice.is_partial:
            kept, others = [], raw
        else:
            kept = [row for row in raw if row[0] not in folded]
            others = [row for row in raw if row[0] in folded]
            last = {name: last[name] for name in folded if name in last}
        if not others:
            return kept
        differences = self.rolled_up(self.chosen(self.tallies({row[0]: (row[3], row[4]) for row in others})))
        now = self.final(last)
        return kept + [
            Growth(name, *now.get(name, (0, 0)), instances, size)
            for name, (instances, size) in differences.items()
            if instances or size
        ]

    def vm(self, raw: Sequence[Growth], last: Mapping[str, tuple[int, int]]) -> Growth:
        """The VM's own part of what was chosen."""
        if not self.any_vm:
            return _total((), (0, 0))
        now = self.chosen({name: counts for name, counts in last.items() if classname.is_vm(name)})
        return _total([row for row in raw if classname.is_vm(row.name) and self._is_chosen(row.name)], _sum(now))

    def final(self, rows: Mapping[str, tuple[int, int]]) -> Tallies:
        """A histogram's rows under the names that are compared."""
        return self.rolled_up(self.chosen(self.tallies(rows)))

    def tallies(self, rows: Mapping[str, tuple[int, int]]) -> Tallies:
        """The rows by folded name, those of one name summed."""
        tallies = dict(rows)
        for generated, name in self.folded.items():
            counts = tallies.pop(generated, None)
            if counts is not None:
                _add(tallies, name, counts)
        return tallies

    def chosen(self, tallies: Tallies) -> Tallies:
        """Without what is left out."""
        if not self.choice.is_partial:
            return tallies
        return {name: counts for name, counts in tallies.items() if self._is_chosen(name)}

    def _is_chosen(self, name: str) -> bool:
        choice = self.choice
        if not choice.vm and classname.is_vm(name):
            return False
        if choice.include is not None and not choice.include.search(name):
            return False
        return choice.exclude is None or not choice.exclude.search(name)

    def rolled_up(self, tallies: Tallies) -> Tallies:
        """By class as they are, or summed by package or module."""
        if self.choice.by == "class":
            return tallies
        group = classname.package if self.choice.by == "package" else self._module
        rolled: Tallies = {}
        for name, counts in tallies.items():
            _add(rolled, group(name), counts)
        return rolled

    def _module(self, name: str) -> str:
        if classname.is_vm(name):
            return classname.VM
        module = self.modules.get(name, "").partition("@")[0]
        return module or ("(no named module)" if self.has_modules else "(modules unknown)")


def _add(tallies: Tallies, name: str, counts: tuple[int, int]) -> None:
    before = tallies.get(name)
    tallies[name] = counts if before is None else (before[0] + counts[0], before[1] + counts[1])


def _sum(tallies: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    return sum(map(itemgetter(0), tallies.values())), sum(map(itemgetter(1), tallies.values()))


def _total(rows: Sequence[Growth], now: tuple[int, int]) -> Growth:
    return Growth("total", *now, sum(map(itemgetter(3), rows)), sum(map(itemgetter(4), rows)))
