"""A sentence for each pattern that means no attribute: what there is by similar names, or what else can read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.jvm.object_names import glob_matches, properties_of
from opskit.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opskit.collect.jmx.facts import Facts
    from opskit.jvm.object_names import Pattern

_MOST_NAMES, _LONGEST, _SHOWN, _A_WORD = 500, 200, 3, 3
_CUTOFF, _CLOSE = 0.6, 0.05  # of difflib's ratios: of the best, and how far others may be from it
_OWN_DOMAINS = ("java.lang", "java.nio", "com.sun.management")
_JDK_DOMAINS = ("java.util.logging", "jdk.management.jfr", "JMImplementation")
_AGENT, _PROPERTY = "--agent", ":type="  # in a word of a sentence: an ObjectName
_OWN_TYPES = (
    "Memory", "MemoryPool", "MemoryManager", "GarbageCollector", "Threading", "ClassLoading", "Compilation", "Runtime", "BufferPool",
    "HotSpotDiagnostic",
)  # fmt: skip


def unmatched(facts: Facts, patterns: Iterable[Pattern]) -> list[str]:
    """`no MBean matches 'java.lang:type=Memry'; near: java.lang:type=Memory`."""
    return [_sentence(facts, each) for each in patterns]


def relevant(sentences: Sequence[str], patterns: Sequence[Pattern], *, answered: bool) -> list[str]:
    """Of the sentences on what could not be read (`java.lang:type=Memory Verbose: …`) those on what the patterns mean.

    Those on no MBean are kept where a pattern is not answered; what else reads an application's is said with the pattern.
    """
    if not patterns:
        return [*sentences]
    general = [each for each in sentences if _is_general(each) and not answered]
    return [each for each in sentences if each in general or any(_is_on(each, pattern) for pattern in patterns)]


def _is_general(sentence: str) -> bool:
    """Whether it says why many MBeans could not be read: no right, no file."""
    return not _names_in(sentence) and _AGENT not in sentence


def _is_on(sentence: str, pattern: Pattern) -> bool:
    """Whether the sentence is on an MBean that is meant, or on an attribute of it that is meant."""
    words = [word.strip(",;:") for word in sentence.split()]
    for name in _names_in(sentence):
        attribute = pattern.attribute_of(name)
        if pattern.matches(name) or (attribute is not None and any(glob_matches(attribute, each) for each in words)):
            return True
    return False


def _names_in(sentence: str) -> list[str]:
    return [word for word in sentence.split() if _PROPERTY in word]


def _sentence(facts: Facts, pattern: Pattern) -> str:
    why = next((each for each in facts.missing if _is_on(each, pattern)), None)
    if why is not None:
        return why
    names = facts.names or {bean.name: [each.name for each in bean.attributes] for bean in facts.beans}
    domain, properties, _ = properties_of(pattern.text)
    meant = [name for name in names if pattern.attribute_of(name) is not None]
    if meant:
        attribute = pattern.attribute_of(meant[0]) or ""
        which = f"{meant[0]} has no" if len(meant) == 1 else f"none of {plural(len(meant), 'MBean')} has an"
        said = f"{which} attribute {shown(attribute)}"
        alike = near(attribute, [*dict.fromkeys(path for name in meant for path in names[name])])
    else:
        kind = properties.get("type", "").partition(" ")[0].rstrip("*")
        is_own = kind in _OWN_TYPES and any(_is_general(each) for each in facts.missing)
        if is_own or (facts.in_process and any(pattern.matches(name) for name in names)):
            return f"nothing was read for {shown(pattern.text)}"
        said = f"no MBean matches {shown(pattern.text)}"
        alike = near(pattern.text, [*names])
    may_be_own = domain in _OWN_DOMAINS or (alike and ("*" in domain or "?" in domain or ":" not in pattern.text))
    if not may_be_own and not facts.in_process:
        agent = shell.command("opskit", "jmx", facts.pid, "--agent", *shell.operands(pattern.text))
        whose = domain if domain in _JDK_DOMAINS else "an application"
        return f"{said}: MBeans of {whose} are read by code in the JVM: {agent}, or by a Jolokia that runs there: --jolokia auto"
    return f"{said}; near: {', '.join(alike)}" if alike else said


def shown(text: str) -> str:
    """What was typed, in quotes, on one line, cut."""
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return f"'{cut}'"


def near(wanted: str, names: Sequence[str]) -> list[str]:
    """Up to three of the names: those that are spelled alike, else those that contain the last value of the pattern."""
    from difflib import SequenceMatcher

    typed = wanted.lower()[:_LONGEST].replace("*", "").rstrip(",")
    matcher: SequenceMatcher[str] = SequenceMatcher(b=typed, autojunk=False)
    ratios: dict[str, float] = {}
    for name in names[:_MOST_NAMES]:
        matcher.set_seq1(name.lower()[:_LONGEST])
        if matcher.real_quick_ratio() >= _CUTOFF and matcher.quick_ratio() >= _CUTOFF:
            ratios[name] = matcher.ratio()
    best = max(ratios.values(), default=0.0)
    alike = [
        name for name in sorted(ratios, key=lambda name: -ratios[name]) if ratios[name] >= max(best - _CLOSE, _CUTOFF)
    ]
    word = _last_value(wanted.lower())
    containing = [name for name in names[:_MOST_NAMES] if len(word) >= _A_WORD and word in name.lower()]
    return [*dict.fromkeys([*alike, *containing])][:_SHOWN]


def _last_value(text: str) -> str:
    """Of the last property, or what stands there instead."""
    return text.rpartition(":")[2].removesuffix(",*").rpartition(",")[2].rpartition("=")[2].strip("*?")
