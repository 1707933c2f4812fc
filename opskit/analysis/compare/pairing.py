"""Which JVM of one side is compared with which of the other."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from opskit.analysis.compare.identity import without_identity
from opskit.analysis.compare.result import BAD, GOOD, Pair
from opskit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.collect.compare.facts import Facts, JvmFacts, Machine

_MOST_LISTED, _LONGEST = 40, 160


class NotComparable(UsageError):  # noqa: N818
    """A word means no JVM of a side, or several; `lines` lists them."""

    def __init__(self, problem: str, jvms: Sequence[JvmFacts]) -> None:
        super().__init__(problem)
        self.lines = tuple(f"{jvm.pid}  {jvm.command[:_LONGEST]}" for jvm in jvms[:_MOST_LISTED])


def pair_jvms(facts: Facts, words: Sequence[str]) -> tuple[list[Pair], list[tuple[str, JvmFacts]]]:
    """The pairs, and the JVMs without a partner. `words`: of --jvm; one for both sides, or one for each. Raises NotComparable."""
    if words:
        return [Pair(_meant(facts.bad, words[0]), _meant(facts.good, words[-1]))], []
    bad, good = list(facts.bad.jvms), list(facts.good.jvms)
    pairs: list[Pair] = []
    for name_of in _WAYS:
        ours, theirs = _by_name(facts.bad, bad, name_of), _by_name(facts.good, good, name_of)
        for name, found in ours.items():
            others = theirs.get(name, [])
            if len(found) == len(others) == 1:
                pairs.append(Pair(found[0], others[0]))
        taken = {id(each) for pair in pairs for each in pair}
        bad, good = ([each for each in rest if id(each) not in taken] for rest in (bad, good))
    if not pairs and len(bad) == len(good) == 1:
        return [Pair(bad[0], good[0])], []
    pairs.sort(key=lambda pair: (pair.bad.main, pair.bad.pid))
    return pairs, [*((BAD, each) for each in bad), *((GOOD, each) for each in good)]


def _by_name(
    side: Machine, jvms: Sequence[JvmFacts], name_of: Callable[[JvmFacts, Sequence[str]], str | None]
) -> dict[str, list[JvmFacts]]:
    found: dict[str, list[JvmFacts]] = defaultdict(list)
    for jvm in jvms:
        name = name_of(jvm, (*side.identity, *jvm.identity))
        if name is not None:
            found[name].append(jvm)
    return found


def _process(jvm: JvmFacts) -> str | None:
    """The same on two captures of one machine."""
    return f"{jvm.main} {jvm.pid} {jvm.jvm.start_ticks}" if jvm.jvm is not None and jvm.jvm.start_ticks else None


def _short(main: str) -> str:
    """The main class, or a jar's name without directory and version."""
    import re

    name = main.rpartition("/")[2] if main.endswith(".jar") else main
    return re.sub(r"[-_]v?[0-9][\w.+-]*\.jar\Z", ".jar", name)


# The nearest first; each pairs only what is the only one of its name on both sides.
_WAYS: tuple[Callable[[JvmFacts, Sequence[str]], str | None], ...] = (
    lambda jvm, _: _process(jvm),
    lambda jvm, _: f"{jvm.pid} {jvm.line}",
    lambda jvm, _: jvm.line,
    lambda jvm, own: without_identity(jvm.line, own),
    lambda jvm, _: jvm.command,
    lambda jvm, own: without_identity(jvm.command, own),
    lambda jvm, _: _short(jvm.main),
)


def _meant(side: Machine, word: str) -> JvmFacts:
    lowered = word.lower()
    ways = (
        [jvm for jvm in side.jvms if str(jvm.pid) == word],
        [jvm for jvm in side.jvms if jvm.main == word],
        [jvm for jvm in side.jvms if lowered in jvm.main.lower()],
        [jvm for jvm in side.jvms if lowered in f"{jvm.command} {jvm.line}".lower()],
    )
    found = next(filter(None, ways), [])
    if len(found) == 1:
        return found[0]
    where = f"{side.label} ({side.name})"
    if found:
        raise NotComparable(
            f"--jvm {word}: {len(found)} JVMs of {where} match; give a PID or a longer word, for each side its own",
            found,
        )
    if not side.jvms:
        raise NotComparable(f"--jvm {word}: {where} has no JVM that can be read", [])
    raise NotComparable(f"--jvm {word}: no JVM of {where} matches; it has these", side.jvms)
