"""Tables for people, by rich. Names are set as plain text: markup in them is never interpreted."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
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
    around = 2 + len(report.verdict) + len(found) + len(report.summary) + len(report.footer)
    for block in report.blocks:
        if block.title:
            line(block.title, "bold underline")
        fits = None if height is None else max(5, (height - around) // len(report.blocks) - 4)
        for command in _table(console, block, fits, on_screen=width is not None):
            line(command)
    for sentence, style in [*((each, "bold") for each in report.summary), *((each, "") for each in report.footer)]:
        line(sentence, style)
    return "\n".join(row.rstrip() for row in out.getvalue().split("\n"))


def _table(console: Console, block: Block[Any], fits: int | None, *, on_screen: bool) -> list[str]:
    """Print as many rows as fit into that many lines; the commands of these rows, which a wrapped cell would break."""
    columns = [column for column in block.columns if not (on_screen and column.below)]
    count = len(block.rows) if fits is None else min(fits, len(block.rows))
    table = _build(block, columns, count)
    while fits is not None and count > 1 and (over := len(console.render_lines(table)) - 2 - fits) > 0:
        count = max(1, count - (over + 1) // 2)
        table = _build(block, columns, count)
    console.print(table)
    if block.total > count:
        console.print(Text(f"… {block.total - count:,} more; -n 0 shows all", style="dim"))
    return [
        f"{column.title} {column.below(row)}: {column.human(row)}"
        for column in block.columns
        if on_screen and column.below
        for row in block.rows[:count]
        if column.value(row) is not None
    ]


def _build(block: Block[Any], columns: Sequence[Field[Any]], count: int) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(Text(column.title), justify="right" if column.right else "left", overflow="fold")
    for row in block.rows[:count]:
        table.add_row(*(Text("\n".join(map(printable, column.lines(row)))) for column in columns))
    return table
