"""Properties as the JVM prints them."""

from __future__ import annotations

from opskit.jvm.dumps.java_properties import parse_java_properties


def test_names_and_values_are_unescaped():
    """Separators, controls and characters beyond ASCII, in names too; comments and other lines are left out."""
    text = "#Mon\n!x=y\njava.version=17\npath.separator=\\:\na\\=b=\\u00fc\\n\\\\\r\nline\n=none\nsmile=\\uD83D\\uDE00\nempty=\n"
    assert parse_java_properties(text) == {
        "java.version": "17", "path.separator": ":", "a=b": "ü\n\\", "smile": "😀", "empty": "",
    }  # fmt: skip


def test_a_hostile_line_costs_its_length():
    """Each is read once."""
    assert parse_java_properties("\\=" * 500_000) == {}
