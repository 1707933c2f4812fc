"""ObjectNames and their patterns, against the answers of javax.management.ObjectName (tests/java/ObjectNames.java)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.errors import UsageError
from opskit.jvm.object_names import canonical_name, glob_matches, parse_pattern

ANSWERS = json.loads((Path(__file__).parents[1] / "fixtures" / "jmx" / "object-names.json").read_text(encoding="utf-8"))
NAMES, PATTERNS = ANSWERS["names"], ANSWERS["patterns"]
EDEN = "java.lang:type=MemoryPool,name=G1 Eden Space"


def test_patterns_mean_what_jmx_means_by_them():
    """Each pattern that JMX accepts matches the same names, in any order of the properties."""
    names = [*NAMES]
    for pattern, wanted in PATTERNS.items():
        if wanted is not None:
            assert [at for at, name in enumerate(names) if parse_pattern(pattern).matches(name)] == wanted, pattern


def test_canonical_names_are_those_of_jmx():
    """The properties in the order of their keys."""
    assert {name: canonical_name(name) for name in NAMES} == NAMES


@pytest.mark.parametrize(("pattern", "name", "matches"), [
    (r'x:k="a\*b"', r'x:k="a\\b"', False), (r'x:k="a\?",*', r'x:k="a\*"', False), (r'x:k="a\*b"', r'x:k="a\*b"', True),
    (r'x:k="a*\*"', r'x:k="ab\*"', True), ("x: k=a", "x:k=a", False), ("x: k=*", "x: k=a", True), ("x:k=*,*", "x: k=1,k=2", True),
])  # fmt: skip
def test_escaped_wildcards_and_blanks_are_characters(pattern, name, matches):
    """As ObjectName.apply() answers on JDK 17."""
    assert parse_pattern(pattern).matches(name) is matches


@pytest.mark.parametrize(("pattern", "matches"), [
    ("*Eden*", True), ("*G1 Eden Space", True), ("java.lang:*Eden*", True), ("*", True), ("*,type=MemoryPool", True),
    (":type=MemoryPool,*", True), ("*eden*", False), ("java.lang:type=MemoryPool", False), ("*MemoryPool", True),
    ("*Memory", False), ("java.lang:type=Memory*", False),
])  # fmt: skip
def test_what_jmx_takes_for_no_pattern_is_a_glob(pattern, matches):
    """Over the whole name, in either order of its properties; without a domain any domain is meant."""
    assert parse_pattern(pattern).matches(EDEN) is matches


@pytest.mark.parametrize(("pattern", "attribute"), [
    (f"{EDEN} Usage.used", "Usage.used"), ("java.lang:* Usage.*", "Usage.*"), ("*Eden* *", "*"), (EDEN, None),
    ("java.lang:type=Memory HeapMemoryUsage", None), ("*:* A.b\\x20c", "A.b c"), ("*:*,name=G1* x", "x"),
])  # fmt: skip
def test_the_last_word_of_a_pattern_is_an_attribute(pattern, attribute):
    """Blanks in the ObjectName are a part of it, as in the lines that are printed."""
    assert parse_pattern(pattern).attribute_of(EDEN) == attribute


@given(st.text("ab*?", max_size=12), st.text("ab", max_size=12))
def test_globs(pattern, text):
    """As the definition has it."""

    def matches(glob, rest):
        if not glob:
            return not rest
        if glob[0] == "*":
            return any(matches(glob[1:], rest[at:]) for at in range(len(rest) + 1))
        return bool(rest) and glob[0] in ("?", rest[0]) and matches(glob[1:], rest[1:])

    assert glob_matches(pattern, text) is matches(pattern.replace("**", "*"), text)


@pytest.mark.parametrize("text", ["", "  ", "x" * 5000])
def test_what_no_pattern_is(text):
    """Nothing, or far too much, is refused."""
    with pytest.raises(UsageError, match="not a pattern"):
        parse_pattern(text)
