"""Tables for terminals, by rich. Names are set as plain text: markup in them is never interpreted."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from opskit.escape import printable
from opskit.render.views.findings import finding_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.render.fields import Field
    from opskit.render.report import Block, Report

_UNBOUNDED = 1 << 20  # off a terminal nothing is cut: as wide as the widest row
_SHORT, _LONG = 18, 9  # a column of at most _SHORT characters is not folded where each longer one keeps _LONG


def render(report: Report, width: int | None = None, height: int | None = None, *, color: bool = False) -> str:
    """The whole report. `width` and `height` are a terminal's, in characters; None: no terminal, nothing is left out."""
    out = io.StringIO()
    console = Console(
        file=out, width=width or _UNBOUNDED, force_terminal=color, no_color=not color, legacy_windows=False,
        color_system="standard" if color else None, highlight=False, emoji=False, markup=False,
    )  # fmt: skip

    def line(text: str, style: str = "") -> None:
        # The terminal itself wraps it: a command that is copied from there stays one line.
        console.print(Text(printable(text), style=style), soft_wrap=True)

    found = list(finding_lines(report.findings))
    head = [(report.about.line, "dim"), *((each, "bold") for each in report.verdict), *((each, "") for each in found)]
    for sentence, style in head:
        line(sentence, style)
    around = 1 + sum(_rows(console, text) for text in (*(each for each, _ in head), *report.summary, *report.footer))
    for block in report.blocks:
        if block.title:
            line(block.title, "bold underline")
        fits = None if height is None else max(5, (height - around) // len(report.blocks) - 2 - bool(block.title))
        for command in _table(console, block, fits, on_screen=width is not None):
            line(command)
    for sentence, style in [*((each, "bold") for each in report.summary), *((each, "") for each in report.footer)]:
        line(sentence, style)
    return "\n".join(row.rstrip() for row in out.getvalue().split("\n"))


def _rows(console: Console, text: str) -> int:
    """How many lines of the terminal a sentence takes."""
    return max(1, -(-cell_len(text) // console.width))


def _table(console: Console, block: Block[Any], fits: int | None, *, on_screen: bool) -> list[str]:
    """Print as many rows as fit into that many lines; the sentences and commands of these rows, to be shown below."""
    columns = [column for column in block.columns if not (on_screen and column.below)]
    count = len(block.rows) if fits is None else min(fits, len(block.rows))
    while True:
        table, below = _build(console, block, columns, count), _below(block, count) if on_screen else []
        over = 0
        if fits is not None and count > 1:
            lines = len(console.render_lines(table)) - 2 + sum(_rows(console, each) for each in below)
            over = lines + (block.total > count) - fits
        if over <= 0:
            break
        count = max(1, count - (over + 1) // 2)
    console.print(table)
    if block.total > count:
        console.print(Text(f"… {block.total - count:,} more; -n 0 shows all", style="dim"))
    return below


def _below(block: Block[Any], count: int) -> list[str]:
    return [
        f"{column.title} {column.below(row)}: {column.human(row)}"
        for column in block.columns
        if column.below
        for row in block.rows[:count]
        if column.value(row)
    ]


def _build(console: Console, block: Block[Any], columns: Sequence[Field[Any]], count: int) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    cells = [[tuple(map(printable, column.lines(row))) for column in columns] for row in block.rows[:count]]
    for column, width in zip(columns, _widths(console, columns, cells)):
        table.add_column(Text(column.title), justify="right" if column.right else "left", overflow="fold", width=width)
    for row in cells:
        table.add_row(*(Text("\n".join(lines)) for lines in row))
    return table


def _widths(
    console: Console, columns: Sequence[Field[Any]], cells: Sequence[Sequence[tuple[str, ...]]]
) -> list[int | None]:
    """The width of each column that is not folded; None leaves it to rich."""
    bodies = [max((cell_len(line) for row in cells for line in row[index]), default=0) for index in range(len(columns))]
    needs = [max(body, *map(cell_len, column.title.split())) for body, column in zip(bodies, columns)]
    widths: list[int | None] = [None] * len(columns)
    spare = console.width - sum(min(need, _LONG) + 3 for need in needs)
    if sum(max(need, cell_len(column.title)) + 3 for need, column in zip(needs, columns)) > console.width:
        for index, need in enumerate(needs):
            if need <= _SHORT and need - _LONG <= spare:
                widths[index] = need
                spare -= max(0, need - _LONG)
    return widths
