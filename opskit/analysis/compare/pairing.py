"""Which JVM of one side is compared with which of the other."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from opskit.analysis.compare.identity import without_identity
from opskit.analysis.compare.result import BAD, GOOD, Pair
from opskit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    for level in range(3):
        ours, theirs = _by_name(facts.bad, bad, level), _by_name(facts.good, good, level)
        for name, found in ours.items():
            others = theirs.get(name, [])
            # By the main class alone: only where each side has one.
            if len(found) == len(others) == 1:
                pairs.append(Pair(found[0], others[0]))
        taken = {id(each) for pair in pairs for each in pair}
        bad, good = ([each for each in rest if id(each) not in taken] for rest in (bad, good))
        if level == 1 and any(_same_main(bad)) | any(_same_main(good)):
            break
    if not pairs and len(bad) == len(good) == 1:
        return [Pair(bad[0], good[0])], []
    pairs.sort(key=lambda pair: (pair.bad.main, pair.bad.pid))
    return pairs, [*((BAD, each) for each in bad), *((GOOD, each) for each in good)]


def _same_main(jvms: Sequence[JvmFacts]) -> list[bool]:
    names = [_short(each.main) for each in jvms]
    return [names.count(name) > 1 for name in names]


def _by_name(side: Machine, jvms: Sequence[JvmFacts], level: int) -> dict[str, list[JvmFacts]]:
    """The JVMs by their command, by the command without identities, or by the main class or jar."""
    found: dict[str, list[JvmFacts]] = defaultdict(list)
    for jvm in jvms:
        words = (*side.identity, *jvm.identity)
        found[(jvm.command, without_identity(jvm.command, words), _short(jvm.main))[level]].append(jvm)
    return found


def _short(main: str) -> str:
    """The main class, or a jar's name without directory and version."""
    import re

    name = main.rpartition("/")[2] if main.endswith(".jar") else main
    return re.sub(r"[-_]v?[0-9][\w.+-]*\.jar\Z", ".jar", name)


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
