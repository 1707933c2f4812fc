"""A sentence for each pattern that means no attribute: what there is by similar names, or what else can read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.jvm.object_names import properties_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opskit.collect.jmx.facts import Facts
    from opskit.jvm.object_names import Pattern

_MOST_NAMES, _LONGEST, _SHOWN = 500, 200, 3
_CUTOFF = 0.6  # of difflib: half of what is typed may be wrong
OWN_DOMAINS = (
    "java.lang",
    "java.nio",
    "java.util.logging",
    "com.sun.management",
    "jdk.management.jfr",
    "JMImplementation",
)
IN_PROCESS = ("agent", "jolokia")


def unmatched(facts: Facts, patterns: Iterable[Pattern]) -> list[str]:
    """`no MBean matches 'java.lang:type=Memry'; near: java.lang:type=Memory`."""
    return [_sentence(facts, each) for each in patterns]


def _sentence(facts: Facts, pattern: Pattern) -> str:
    names = facts.names or {bean.name: [each.name for each in bean.attributes] for bean in facts.beans}
    for name, paths in names.items():
        attribute = pattern.attribute_of(name)
        if attribute is not None:
            said = f"{name} has no attribute {shown(attribute)}"
            return _with_near(said, attribute, [*paths])
    said = f"no MBean matches {shown(pattern.text)}"
    domain = properties_of(pattern.text)[0]
    is_own = domain in OWN_DOMAINS or "*" in domain or "?" in domain or ":" not in pattern.text
    reads_all = any(each.source in IN_PROCESS for bean in facts.beans for each in bean.attributes)
    if not is_own and not reads_all and facts.pid is not None:
        agent = shell.command("opskit", "jmx", str(facts.pid), "--agent", pattern.text)
        return f"{said}: MBeans of an application are read by code in the JVM: {agent}, or by its Jolokia: --jolokia"
    return _with_near(said, pattern.text, [*names])


def shown(text: str) -> str:
    """What was typed, in quotes, on one line, cut."""
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return f"'{cut}'"


def _with_near(said: str, wanted: str, names: Sequence[str]) -> str:
    found = near(wanted, names)
    return f"{said}; near: {', '.join(found)}" if found else said


def near(wanted: str, names: Sequence[str]) -> list[str]:
    """Up to three of the names: first those that contain a value of the pattern, then those that are spelled alike."""
    import difflib

    typed = wanted.lower()[:_LONGEST]
    kept = {name.lower()[:_LONGEST]: name for name in reversed(names[:_MOST_NAMES])}
    words = [word for part in _words(typed) if len(word := part.strip("*?")) > 2]
    last = words[-1:] if words else []
    containing = [name for name in kept if any(word in name for word in last)]
    alike = difflib.get_close_matches(typed.replace("*", "").rstrip(","), [*kept], n=_SHOWN, cutoff=_CUTOFF)
    return [kept[each] for each in dict.fromkeys([*alike, *reversed(containing)])][:_SHOWN]


def _words(text: str) -> list[str]:
    """The values of the properties, or what stands there instead."""
    rest = text.rpartition(":")[2]
    return [part.rpartition("=")[2] for part in rest.split(",")]
