"""Paragraphs: folded at a width, cut, escaped, coloured."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opskit.render.paragraphs import Paragraph, folded, render, rows

WORDS = st.text(st.sampled_from("ab /é漢\u0301\x1b\n-"), max_size=120)


@given(WORDS, st.integers(24, 60), st.sampled_from(["", " 1. stuck  "]))
@settings(max_examples=60, deadline=None)
def test_folding_loses_nothing_and_keeps_the_width(text, width, lead):
    """Lines are no wider than the terminal; together they are the text."""
    from rich.cells import cell_len

    from opskit.escape import printable

    paragraph = Paragraph(text, lead)
    lines = folded(paragraph, width)
    assert "".join(lines).replace(" ", "") == printable(text).replace(" ", "")
    assert all(cell_len(line) <= max(20, width - len(lead)) for line in lines)
    assert rows(paragraph, width) == len(lines) == len([*render(paragraph, width, color=False)])


def test_later_lines_stand_below_the_first_one():
    """Under the text, not under its lead."""
    shown = [*render(Paragraph("one two three four five six", " 1. stuck  "), 31, color=False)]
    assert shown == [" 1. stuck  one two three four", "           five six"]


def test_a_command_stays_one_line():
    """The terminal wraps it, so that its copy is one line; its rows are counted."""
    command = Paragraph(f"next: opskit jpmp {'1' * 100}", "    ", is_command=True)
    assert len(folded(command, 40)) == 1
    assert rows(command, 40) == 4


@pytest.mark.parametrize(
    ("width", "shown"), [(30, "    a long sentence that is t…"), (None, "    a long sentence that is too long")]
)
def test_a_paragraph_that_is_cut(width, shown):
    """To one line of a terminal; off a terminal it is whole."""
    assert [*render(Paragraph("a long sentence that is too long", "    ", is_cut=True), width, color=False)] == [shown]


def test_colours_and_hostile_text():
    """Escapes of the text are shown as such; those of the style end with it."""
    [line] = render(Paragraph("a\x1b[31m\nb", "x ", "bold", "red"), 80, color=True)
    assert line == "\x1b[31mx \x1b[0m\x1b[1ma\\x1b[31m\\nb\x1b[0m"
