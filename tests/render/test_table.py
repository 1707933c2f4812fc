"""Tables on a terminal: what is folded, what is printed below a table, how many rows fit."""

from __future__ import annotations

import pytest

from opskit.render.fields import TEXT, Field
from opskit.render.formats import table
from opskit.render.report import About, Block, Report

ABOUT = About("vm", "2026-01-02T03:04:05Z", "0.1.0", "opskit x")
NAME, CLASS = Field("name", title="pipe"), Field("class", title="class")
ENDS = [Field(f"{side}_ends", title=f"{side} ends") for side in ("read", "write")]
VERDICT = Field("verdict", TEXT, "verdict", below=lambda row: row.name)


class Row:
    """A pipe with two long columns and a sentence."""

    def __init__(self, number):
        self.name, self.verdict = f"pipe:[{number}]", "full: " + "a sentence " * 8
        self.read_ends = self.write_ends = " ".join(f"python3.11[{pid}]:1" for pid in range(4000, 4004))
        setattr(self, "class", "cross-process")


def shown(rows, width=80, height=None, columns=(NAME, CLASS, *ENDS, VERDICT)):
    return table.render(Report(ABOUT, [Block(columns, rows, len(rows))], ["a verdict"]), width, height).splitlines()


def test_short_columns_are_not_folded():
    """A name and a class stay on one line while long columns are folded; no line is wider than the terminal."""
    lines = shown([Row(123456), Row(123457)])
    assert sum("pipe:[123456]" in line and "cross-process" in line for line in lines) == 1
    assert all(len(line) <= 80 for line in lines if "sentence" not in line)


def test_sentences_are_printed_whole_below_the_table():
    """A column with `below` is no column on a terminal; elsewhere it is one."""
    [line] = [line for line in shown([Row(1)]) if "sentence" in line]
    assert line.startswith("verdict pipe:[1]: full: a sentence a sentence")
    assert sum("sentence" in line for line in shown([Row(1)], width=None)) == 1
    assert "verdict pipe" not in "\n".join(shown([Row(1)], width=None))


@pytest.mark.parametrize("height", [16, 24, 40])
@pytest.mark.parametrize("count", [3, 8, 60])
def test_a_report_fits_the_terminal(height, count):
    """With sentences that the terminal wraps, below the table too; what is left out is counted."""
    lines = shown([Row(number) for number in range(count)], height=height)
    assert sum(-(-len(line) // 80) or 1 for line in lines) < height
    rows = sum(line.startswith("pipe:[") for line in lines)
    assert (f"… {count - rows} more; -n 0 shows all" in lines) == (rows < count)


@pytest.mark.parametrize(("height", "shown_titles"), [(60, "abcd"), (26, "abc"), (24, "abc"), (18, "ab"), (10, "a")])
def test_details_give_way_to_the_verdict(height, shown_titles):
    """Where the fewest rows of all tables do not fit, the last details are left out and named."""
    rows = [Row(number) for number in range(9)]
    blocks = [Block([NAME], rows, len(rows), title, details=title != "a") for title in "abcd"]
    lines = table.render(Report(ABOUT, blocks, ["a verdict"]), 80, height).splitlines()
    assert "".join(line for line in lines if len(line) == 1) == shown_titles
    left_out = ", ".join("abcd"[len(shown_titles) :])
    assert (f"… {left_out}: -n 10" in lines) == bool(left_out)
    assert len(lines) < height
    whole = table.render(Report(ABOUT, blocks, ["a verdict"]), None, None).splitlines()
    assert "".join(line for line in whole if len(line) == 1) == "abcd"


def test_all_rows_are_shown_where_they_just_fit():
    """24 lines: the head, the verdict, two of the table's own, 19 rows, and the prompt."""
    rows = [Row(number) for number in range(19)]
    assert len(shown(rows, height=24, columns=(NAME,))) == 23
    assert shown([*rows, Row(19)], height=24, columns=(NAME,))[-1] == "… 2 more; -n 0 shows all"


def test_a_narrow_terminal_folds_every_column():
    """Nothing is lost."""
    text = "".join(shown([Row(123456)], width=30))
    assert "cross" in text
    assert "6]" in text
