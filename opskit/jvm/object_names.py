"""ObjectNames of MBeans, and patterns of them: `java.lang:type=MemoryPool,name=G1 Eden Space`, `java.lang:type=MemoryPool,*`.

Syntax: javax.management.ObjectName. The order of the properties has no meaning; `*` and `?` stand for any text and any character.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.errors import UsageError
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MOST_CHARACTERS = 4096
_PART = re.compile(r'(?:[^,"]+|"(?:[^"\\]+|\\.?)*"?)+', re.DOTALL)  # a quote without an end reaches to the end
_OF_THE_JDK = ("java.lang:", "java.nio:", "java.util.logging:")


class Pattern(NamedTuple):
    """A pattern as it was given, of an ObjectName, or of an ObjectName, a space and an attribute or a part of one."""

    text: str

    def matches(self, name: str) -> bool:
        """Whether all attributes of this MBean are meant."""
        return _matches_name(self.text, name)

    def attribute_of(self, name: str) -> str | None:
        r"""The pattern of attributes that are meant of this MBean; None: none. A blank in a path is `\x20`, as in -f text."""
        head, space, tail = self.text.rpartition(" ")
        return tail.replace("\\x20", " ") if space and tail and _matches_name(head.rstrip(), name) else None


def parse_pattern(text: str) -> Pattern:
    """A pattern of a command line. Raises UsageError."""
    found = text.strip()
    if not found or len(found) > _MOST_CHARACTERS:
        raise UsageError(f"not a pattern of an ObjectName: {text[:80]!r}; for example java.lang:type=Memory")
    return Pattern(found)


def wants_bean(patterns: Iterable[Pattern], name: str) -> bool:
    """Whether one of the patterns means this MBean or an attribute of it; without patterns every one is meant."""
    patterns = tuple(patterns)
    return not patterns or any(each.matches(name) or each.attribute_of(name) is not None for each in patterns)


def wants_attribute(patterns: Iterable[Pattern], name: str, attribute: str, parts: Iterable[str] = ()) -> bool:
    """Whether one of the patterns means this attribute. `parts`: the paths below it, `used` of HeapMemoryUsage."""
    patterns = tuple(patterns)
    if not patterns or any(each.matches(name) for each in patterns):
        return True
    paths = [attribute, *(f"{attribute}.{part}" for part in parts)]
    globs = [found for each in patterns if (found := each.attribute_of(name)) is not None]
    return any(glob_matches(found, path) for found in globs for path in paths)


def properties_of(name: str) -> tuple[str, Mapping[str, str], bool]:
    """The domain, the properties, and whether further ones may follow (`,*`). A quoted value may contain commas."""
    domain, _, rest = name.partition(":")
    found: dict[str, str] = {}
    is_open = False
    for part in _split(rest):
        key, equals, value = part.partition("=")
        if part == "*":
            is_open = True
        elif equals:
            found[key] = value
        else:
            found[part] = ""
    return domain, found, is_open


def has_properties(pattern: str) -> bool:
    """Whether a pattern is one of JMX, `DOMAIN:KEY=VALUE,*`; any other is a glob over the whole name."""
    _, colon, rest = pattern.partition(":")
    parts = _split(rest)
    return bool(colon and parts) and all(part == "*" or part.find("=") > 0 for part in parts)


def canonical_name(name: str) -> str:
    """The same name with its properties in the order of their keys, as getCanonicalName() gives it."""
    domain, properties, is_open = properties_of(name)
    parts = [f"{key}={properties[key]}" for key in sorted(properties)]
    return f"{domain}:{','.join([*parts, *(['*'] if is_open else [])])}"


def type_first(name: str) -> str:
    """A name of the JDK with its type first, as its documentation has it; the MBean server may have the reverse order."""
    if not name.startswith(_OF_THE_JDK):
        return name
    domain, properties, _ = properties_of(name)
    keys = sorted(properties, key=lambda key: (key != "type", key))
    return f"{domain}:{','.join(f'{key}={properties[key]}' for key in keys)}"


def glob_matches(pattern: str, text: str) -> bool:
    """Whether `*` and `?` of the pattern can stand for parts of the text, in at most pattern x text steps."""
    at = begin = 0
    star = -1
    while begin < len(text):
        if at < len(pattern) and pattern[at] == "*":
            star, mark, at = at, begin, at + 1
        elif at < len(pattern) and pattern[at] in ("?", text[begin]):
            at, begin = at + 1, begin + 1
        elif star >= 0:
            mark += 1
            at, begin = star + 1, mark
        else:
            return False
    return not pattern[at:].strip("*")


def _matches_name(pattern: str, name: str) -> bool:
    """As ObjectName.apply() has it; what is no pattern of JMX (`*Eden*`) is a glob over the whole name in one of its two orders.

    An empty domain means any one, where JMX has that of the server.
    """
    if not has_properties(pattern):
        return glob_matches(pattern, name) or glob_matches(pattern, canonical_name(name))
    domain, wanted, is_open = properties_of(pattern)
    own_domain, properties, _ = properties_of(name)
    if not glob_matches(domain or "*", own_domain) or (not is_open and len(wanted) != len(properties)):
        return False
    return all(key in properties and _matches_value(value, properties[key]) for key, value in wanted.items())


def _matches_value(pattern: str, value: str) -> bool:
    return pattern == value or (is_value_pattern(pattern) and glob_matches(pattern, value))


def is_value_pattern(value: str) -> bool:
    r"""Whether a value has a wildcard: in a quoted one `\*` and `\?` are characters."""
    unescaped = re.sub(r"\\.", "", value) if value.startswith('"') else value
    return "*" in unescaped or "?" in unescaped


def _split(text: str) -> list[str]:
    """At the commas outside of quoted values."""
    return _PART.findall(text) if '"' in text else [part for part in text.split(",") if part]
