"""Tables for terminals, by rich. Names are set as plain text: markup in them is never interpreted."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from opskit.escape import printable
from opskit.render.views.findings import finding_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.render.fields import Field
    from opskit.render.report import Block, Listing, Report

_UNBOUNDED = 1 << 20  # off a terminal nothing is cut: as wide as the widest row
_FEWEST = 3  # lines of a table's rows, also where they do not fit
_GAP = 3  # between two columns
_PART, _AMOUNT = 9, 12  # of a longer word so much stays on one line; amounts up to that length are not folded


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
        fits = None if height is None else max(_FEWEST, (height - around) // len(report.blocks) - 2 - bool(block.title))
        if block.listing is not None:
            fits = None if fits is None else fits + 2  # there is no head
            for text in _listed(block, block.listing, fits, width):
                line(text)
            continue
        for command in _table(console, block, fits, on_screen=width is not None):
            line(command)
    for sentence, style in [*((each, "bold") for each in report.summary), *((each, "") for each in report.footer)]:
        line(sentence, style)
    return "\n".join(row.rstrip() for row in out.getvalue().split("\n"))


def _listed(block: Block[Any], listing: Listing, fits: int | None, width: int | None) -> list[str]:
    """The rows of a listing, each line cut to the width: in as much detail as the first ones fit in, then as many as fit."""
    least = min(len(block.rows), max(1, listing.least))
    for detail in range(listing.most, -1, -1):
        rows = [[_cut(printable(text), width) for text in listing.lines(row, detail, width)] for row in block.rows]
        if fits is None or sum(map(len, rows[:least])) + (block.total > least) <= fits:
            break
    count, used = least, sum(map(len, rows[:least]))
    while count < len(rows) and (fits is None or used + len(rows[count]) + (block.total > count + 1) <= fits):
        used += len(rows[count])
        count += 1
    more = [f"… {block.total - count:,} more; -n 0 shows all"] if block.total > count else []
    return [*(text for row in rows[:count] for text in row), *more]


def _cut(text: str, width: int | None) -> str:
    return text if width is None or cell_len(text) <= width else set_cell_size(text, width - 1) + "…"


def _rows(console: Console, text: str) -> int:
    """How many lines of the terminal a sentence takes."""
    return max(1, -(-cell_len(text) // console.width))


def _table(console: Console, block: Block[Any], fits: int | None, *, on_screen: bool) -> list[str]:
    """Print as many rows as fit into that many lines; the sentences and commands of these rows, to be shown below."""
    columns = [column for column in block.columns if not (on_screen and column.below)]

    def is_too_long(count: int) -> bool:
        below = sum(_rows(console, each) for each in _below(block, count)) if on_screen else 0
        table = len(console.render_lines(_build(console, block, columns, count))) - 2
        return table + below + (block.total > count) > (fits or 0)

    count = len(block.rows)
    if fits is not None:
        count = min(fits, count)
        least = min(1, count)
        while least < count:
            middle = (least + count + 1) // 2
            least, count = (least, middle - 1) if is_too_long(middle) else (middle, count)
    console.print(_build(console, block, columns, count))
    if block.total > count:
        console.print(Text(f"… {block.total - count:,} more; -n 0 shows all", style="dim"))
    return _below(block, count) if on_screen else []


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
    widths: Sequence[int | None] = _widths(console, columns, cells) or [None] * len(columns)
    for column, width in zip(columns, widths):
        table.add_column(Text(column.title), justify="right" if column.right else "left", overflow="fold", width=width)
    for row in cells:
        table.add_row(*(Text("\n".join(lines)) for lines in row))
    return table


def _widths(console: Console, columns: Sequence[Field[Any]], cells: Sequence[Sequence[tuple[str, ...]]]) -> list[int]:
    """The columns' widths on a terminal. Empty: rich chooses.

    Amounts with their units are kept whole where there is room, then words, first those on the left; then cells, then titles.
    """
    if console.width == _UNBOUNDED:
        return []
    bodies = [[line for row in cells for line in row[index]] for index in range(len(columns))]
    needs = [max(map(cell_len, [*column.title.split(), *body])) for column, body in zip(columns, bodies)]
    wholes = [max(need, cell_len(column.title)) for need, column in zip(needs, columns)]
    room = console.width - _GAP * (len(columns) - 1)
    for amount in (_AMOUNT, 0) if sum(wholes) > room else ():
        words = [_longest(column, body, amount) for column, body in zip(columns, bodies)]
        widths = [min(word, _PART) for word in words]
        spare = room - sum(widths)
        if spare < 0:
            continue
        for index, word in enumerate(words):
            added = word - widths[index] if word - widths[index] <= spare else 0
            widths[index], spare = widths[index] + added, spare - added
        for goals in (needs, wholes):
            missing = [goal - width for goal, width in zip(goals, widths)]
            for place, index in enumerate(sorted(range(len(missing)), key=missing.__getitem__)):
                added = min(missing[index], spare // (len(missing) - place))
                widths[index], spare = widths[index] + added, spare - added
        return widths
    return []


def _longest(column: Field[Any], body: Sequence[str], amount: int) -> int:
    """The longest part of a column that is kept on one line: a word, or an amount of at most so many characters."""
    wholes = [line for line in body if column.right and cell_len(line) <= amount]
    return max(map(cell_len, [*column.title.split(), *wholes, *(word for line in body for word in line.split())]))
