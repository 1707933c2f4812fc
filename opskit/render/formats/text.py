"""Plain text for grep and awk: stable columns, nothing cut, nothing coloured. The footer goes to stderr."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from opskit.escape import printable
from opskit.quantities import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.render.report import Block, Report

_MOST_KEPT = 5000  # rows; those of a longer table are made twice, for the widths and for the lines


def render(report: Report) -> str:
    """The lines, each ended by a newline."""
    return "".join(lines(report))


def lines(report: Report) -> Iterator[str]:
    """The same line by line."""
    for line in _lines(report) if report.text is None else report.text():
        yield line + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield from map(printable, report.verdict)
    if report.findings:
        from opskit.render.views.findings import finding_lines

        yield from map(printable, finding_lines(report.findings))
    for block in report.blocks:
        yield from block_lines(block)
    yield from map(printable, report.summary)


def block_lines(block: Block[Any]) -> Iterator[str]:
    """A table: its titles in capitals, then its rows."""
    head = [column.title.upper().replace(" ", "_") for column in block.columns]
    kept = [*_cells(block)] if len(block.rows) <= _MOST_KEPT else None
    widths = [*map(len, head)]
    for row in _cells(block) if kept is None else kept:
        widths = [*map(max, widths, map(len, row))]
    for row in chain([head], _cells(block) if kept is None else kept):
        placed = zip(row, widths, block.columns)
        padded = (cell.rjust(width) if column.right else cell.ljust(width) for cell, width, column in placed)
        yield "  ".join(padded).rstrip()


def _cells(block: Block[Any]) -> Iterator[list[str]]:
    return ([printable(plain(column.value(row))) or "-" for column in block.columns] for row in block.rows)
