"""Plain text for grep and awk: stable columns, nothing cut, nothing coloured. The footer goes to stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.escape import printable
from opskit.quantities import plain

if TYPE_CHECKING:
    from opskit.render.report import Block, Report


def render(report: Report) -> str:
    """The lines, each ended by a newline."""
    if report.text is not None:
        lines = list(report.text())
    else:
        lines = [printable(line) for line in report.verdict]
        if report.findings:
            from opskit.render.views.findings import finding_lines

            lines += [printable(line) for line in finding_lines(report.findings)]
        for block in report.blocks:
            lines += block_lines(block)
        lines += [printable(line) for line in report.summary]
    lines.append("")
    return "\n".join(lines)


def block_lines(block: Block[Any]) -> list[str]:
    """A table: its titles in capitals, then its rows."""
    head = [column.title.upper().replace(" ", "_") for column in block.columns]
    cells = [[printable(plain(column.value(row))) or "-" for column in block.columns] for row in block.rows]
    widths = [max(map(len, column)) for column in zip(head, *cells)]
    lines = []
    for row in [head, *cells]:
        placed = zip(row, widths, block.columns)
        padded = (cell.rjust(width) if column.right else cell.ljust(width) for cell, width, column in placed)
        lines.append("  ".join(padded).rstrip())
    return lines
