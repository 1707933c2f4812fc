"""What differs between two machines: match the facts, leave out noise and identities, fold echoes, rank. Pure."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from opskit.analysis.compare.echoes import EFFECT_OF, causes_of, is_of_kernel, may_explain
from opskit.analysis.compare.identity import is_identity, without_identity, without_own_arguments
from opskit.analysis.compare.pairing import pair_jvms
from opskit.analysis.compare.result import Difference, Echo, Result
from opskit.analysis.compare.significance import NEUTRAL, differ, size_of
from opskit.collect.compare.facts import CLASSES, CONFIGURED, MEASURED, NO_RATES
from opskit.quantities import decimal
from opskit.words import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.compare.result import Pair
    from opskit.collect.compare.facts import Fact, Facts, Known

_HIDDEN = (HIDDEN, "[hidden]", "***")
_MOST_UNKNOWN = 200
# Kinds of facts whose text may hold names of the machine.
_WITH_NAMES = ("property", "agent", "flag", "boot", "mount", "jvm_mount", "variable", "sysctl")
_SAME_MEMORY = 0.02
_OF_MEMORY = frozenset(("host.memory", "jvm.heap_max"))
# The order of configured differences: what explains most stands first.
_AREAS = ("JDK", "collector", "heap", "flags", "cgroup", "limits", "scheduling", "environment", "kernel", "sysctl", "mounts", "libraries", "process", "properties", "CPU", "memory", "clock", "disk", "system")  # fmt: skip


class _Tally:
    """The differences so far, and how many facts are no difference."""

    def __init__(self, *, has_rates: bool) -> None:
        self.found: list[Difference] = []
        self.equal = self.noise = self.own = 0
        self.unknown: list[tuple[str, str]] = []
        self.has_rates = has_rates


def judge(facts: Facts, words: Sequence[str] = ()) -> Result:
    """Compare the machines, and the JVMs that belong together. Raises NotComparable."""
    pairs, unpaired = pair_jvms(facts, words)
    sides = facts.bad, facts.good
    has_rates = all(side.window_s > 0 for side in sides)
    tally = _Tally(has_rates=has_rates)
    _compare(tally, facts.bad.known, facts.good.known, None, (sides[0].identity, sides[1].identity))
    for number, pair in enumerate(pairs):
        own = tuple((*side.identity, *jvm.identity) for side, jvm in zip(sides, pair))
        _compare(tally, pair.bad.known, pair.good.known, number, (own[0], own[1]))
    folded = _of_all_jvms(_explained(_folded(tally.found)), pairs)
    unknown = [(f"{what} ({side.label})", why) for side in sides for what, why in side.known.missing if why != NO_RATES]
    unknown += [(f"rates and shares of {side.label}", NO_RATES) for side in sides if side.window_s <= 0]
    unknown += [
        (f"{what} of {jvm.main} ({side.label})", why)
        for side, jvms in zip(sides, zip(*pairs))
        for jvm in jvms
        for what, why in jvm.known.missing
    ]
    return Result(
        facts, pairs, sorted(folded, key=_rank), tally.equal, tally.noise, tally.own,
        [*unknown, *tally.unknown][:_MOST_UNKNOWN], has_rates, unpaired,
    )  # fmt: skip


def _compare(
    tally: _Tally, bad: Known, good: Known, jvm: int | None, own: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    keys = [*bad.facts, *(key for key in good.facts if key not in bad.facts)]
    kernels = (bad.facts.get("kernel.release"), good.facts.get("kernel.release"))
    other_kernel = None not in kernels and kernels[0] != kernels[1]
    for key in keys:
        one, other = bad.facts.get(key), good.facts.get(key)
        if is_identity(key, *(each.value for each in (one, other) if each is not None)):
            tally.own += 1
        elif without_effect(bad, good, key):
            tally.equal += 1
        elif one is None or other is None:
            present, lacking = (one or other), bad if one is None else good
            is_known = key.startswith(lacking.whole) and not (is_of_kernel(key) and not other_kernel)
            if lacking.off_line is None:
                is_known = is_known and key not in ((good if one is None else bad).off_line or ())
            if present is not None and is_known and present.class_ != MEASURED:
                tally.found.append(_difference(present, one, other, jvm))
            elif present is not None and (tally.has_rates or present.class_ != MEASURED):
                tally.unknown.append((present.name, "only one side has it"))
        elif one.class_ == MEASURED:
            _measure(tally, one, other, jvm)
        elif _is_same(one, other):
            tally.equal += 1
        elif _is_hidden(one) or _is_hidden(other):
            tally.unknown.append((one.name, "its value was redacted"))
        elif _without(one, own[0]) == _without(other, own[1]):
            tally.own += 1
        else:
            tally.found.append(_difference(one, one, other, jvm))


def _measure(tally: _Tally, one: Fact, other: Fact, jvm: int | None) -> None:
    if one.value == other.value:
        tally.equal += 1
    elif differ(one, other):
        worse = None if one.key in NEUTRAL else float(one.value) > float(other.value)
        tally.found.append(_difference(one, one, other, jvm)._replace(size=size_of(one, other), is_worse=worse))
    else:
        tally.noise += 1


def _difference(fact: Fact, bad: Fact | None, good: Fact | None, jvm: int | None) -> Difference:
    return Difference(
        fact.class_, fact.area, fact.key, fact.name, bad and bad.value, good and good.value, fact.unit, jvm
    )


def _is_same(one: Fact, other: Fact) -> bool:
    if one.value == other.value:
        return True
    # What the firmware and the kernel keep for themselves varies, and with it all defaults that are shares of the memory.
    if one.key != "host.memory" and (one.key.startswith("flag.") or not _OF_MEMORY.intersection(causes_of(one.key))):
        return False
    numbers = [[decimal(word) for word in str(fact.value).split()] for fact in (one, other)]
    return len(numbers[0]) == len(numbers[1]) and all(map(_are_near, *numbers))


def _are_near(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and abs(one - other) <= _SAME_MEMORY * max(abs(one), abs(other))


def _is_hidden(fact: Fact) -> bool:
    return isinstance(fact.value, str) and any(mark in fact.value for mark in _HIDDEN)


def _without(fact: Fact, own: Sequence[str]) -> object:
    kind = fact.key.partition(".")[0]
    if not isinstance(fact.value, str) or kind not in _WITH_NAMES:
        return fact.value
    return without_identity(without_own_arguments(fact.value) if kind == "agent" else fact.value, own)


def _folded(found: Sequence[Difference]) -> list[Difference]:
    """The differences that follow from no other one, with their echoes; flags that change nothing are left out."""
    keys = {(each.jvm, each.key): each for each in found}
    roots: dict[int, list[Difference]] = {id(each): [] for each in found}
    for each in found:
        root = _root_of(each, keys)
        if root is not each:
            roots[id(root)].append(each)
            roots.pop(id(each), None)
    kept = []
    for each in found:
        if id(each) in roots:
            echoes = tuple(Echo(one.key, one.name, one.bad, one.good, one.unit) for one in roots[id(each)])
            kept.append(each._replace(echoes=echoes))
    return kept


def _root_of(difference: Difference, keys: dict[tuple[int | None, str], Difference]) -> Difference:
    """The difference that this one follows from in the end; itself where there is none."""
    at, passed = difference, {difference.key}
    while True:
        cause = _cause(at, keys, passed)
        if cause is None:
            return at
        passed.add(cause.key)
        at = cause


def _cause(
    difference: Difference, keys: dict[tuple[int | None, str], Difference], passed: set[str]
) -> Difference | None:
    jvms = (
        (difference.jvm, None)
        if difference.jvm is not None
        else (None, *sorted({jvm for jvm, _ in keys if jvm is not None}))
    )
    if any(EFFECT_OF.get(key) == difference.key and jvm == difference.jvm for jvm, key in keys):
        return None  # a flag has set it: that is the cause, and its effect stands for it
    causes = causes_of(difference.key, is_of_one_side=difference.bad is None or difference.good is None)
    for pattern in causes:
        for jvm in jvms:
            for (of, key), each in keys.items():
                if of == jvm and key not in passed and fnmatchcase(key, pattern) and _agree(difference, each):
                    return each
    return None


def _agree(echo: Difference, cause: Difference) -> bool:
    """Whether measured ones are worse on one side; a symptom is no echo of a setting."""
    if echo.class_ != MEASURED:
        return cause.class_ != MEASURED
    if cause.class_ != MEASURED:
        return False
    if None in (echo.is_worse, cause.is_worse) or echo.key in ("host.cpu.user",):
        return True
    return echo.is_worse == cause.is_worse


def _explained(found: list[Difference]) -> list[Difference]:
    """The measured differences with the configured ones and those of the host that may explain them."""
    settings = [each for each in found if each.class_ != MEASURED]
    made = []
    for each in found:
        if each.class_ == MEASURED:
            near = [one for one in settings if one.jvm in (None, each.jvm) or each.jvm is None]
            causes = [one.key for one in sorted(near, key=_rank) if may_explain(each.key, one.key)]
            each = each._replace(explained_by=tuple(dict.fromkeys(causes))[:5])
        made.append(each)
    return made


def _of_all_jvms(found: list[Difference], pairs: Sequence[Pair]) -> list[Difference]:
    """What is set differently for several JVMs in the same way, as one difference."""
    first: dict[tuple[object, ...], Difference] = {}
    for each in found:
        key: tuple[object, ...] = (each.key, each.bad, each.good)
        if each.jvm is None or each.class_ == MEASURED:
            key = (*key, each.jvm)
        one = first.setdefault(key, each)
        if one is not each and each.jvm is not None:
            jvm = pairs[each.jvm].bad
            echo = Echo(each.key, f"{each.name} of {jvm.main} ({jvm.pid})", each.bad, each.good, each.unit)
            first[key] = one._replace(echoes=(*one.echoes, echo))
    return [*first.values()]


def without_effect(bad: Known, good: Known, key: str) -> bool:
    """Whether a flag's effect is known, and the same on both sides."""
    effect = EFFECT_OF.get(key)
    one, other = (known.facts.get(effect) if effect else None for known in (bad, good))
    return one is not None and other is not None and one.value == other.value


def _rank(each: Difference) -> tuple[object, ...]:
    place = CLASSES.index(each.class_)
    if each.class_ == MEASURED:
        # What is worse on BAD comes first, a machine's own after a JVM's of the same size.
        return place, {True: 0, None: 1, False: 2}[each.is_worse], -each.size, each.jvm is None, each.key
    area = _AREAS.index(each.area) if each.area in _AREAS else len(_AREAS)
    return place, area if each.class_ == CONFIGURED else 0, -1 if each.jvm is None else each.jvm, area, each.key
