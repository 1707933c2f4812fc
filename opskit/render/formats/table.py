"""Tables for terminals, by rich. Names are set as plain text: markup in them is never interpreted."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from opskit.escape import printable
from opskit.render.formats.one_line import clip, fit, middle
from opskit.render.views.findings import finding_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.render.fields import Field
    from opskit.render.report import Block, Listing, Report

_UNBOUNDED = 1 << 20  # off a terminal nothing is cut: as wide as the widest row
_FEWEST = 3  # lines of a table's rows, also where they do not fit
_GAP = 3  # between two columns
_SCREEN_PARTS = 3  # a third of a screen for the findings
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")  # of colours
_PART, _AMOUNT = 9, 12  # of a longer word so much stays on one line; amounts up to that length are not folded


def render(
    report: Report, width: int | None = None, height: int | None = None, *, color: bool = False, screen: bool = False
) -> str:
    """The whole report. `width` and `height` are a terminal's, in characters; None: no terminal, nothing is left out.

    `screen`: no more lines than the height; a line for each finding, of which the worst take up to a third of them.
    """
    out = io.StringIO()
    console = Console(
        file=out, width=width or _UNBOUNDED, force_terminal=color, no_color=not color, legacy_windows=False,
        color_system="standard" if color else None, highlight=False, emoji=False, markup=False,
    )  # fmt: skip

    def line(text: str, style: str = "") -> None:
        # The terminal itself wraps it: a command that is copied from there stays one line.
        console.print(Text(printable(text), style=style), soft_wrap=True)

    found = _short_findings(report, width, height) if screen and width and height else [*finding_lines(report.findings)]
    head = [(report.about.line, "dim"), *((each, "bold") for each in report.verdict), *((each, "") for each in found)]
    for sentence, style in head:
        line(sentence, style)
    around = 1 + sum(_rows(console, text) for text in (*(each for each, _ in head), *report.summary, *report.footer))
    blocks = report.blocks if height is None else _with_room(report.blocks, height - around)
    left_out = [block.title or "" for block in report.blocks if block not in blocks]
    around += bool(left_out)
    for block in blocks:
        if block.title:
            line(block.title, "bold underline")
        fits = None if height is None else max(_FEWEST, (height - around) // len(blocks) - _head(block))
        if block.listing is not None:
            fits = None if fits is None else fits + 2  # there is no head
            for text in _listed(block, block.listing, fits, width):
                line(text)
            continue
        for command in _table(console, block, fits, on_screen=width is not None):
            line(command)
    if left_out:
        line(f"… {', '.join(left_out)}: -n 10")
    for sentence, style in [*((each, "bold") for each in report.summary), *((each, "") for each in report.footer)]:
        line(sentence, style)
    lines = [row.rstrip() for row in out.getvalue().split("\n")]
    return "\n".join(_screenful(lines, width, height) if screen and width and height else lines)


def _head(block: Block[Any]) -> int:
    return 2 + bool(block.title)


def _with_room(blocks: Sequence[Block[Any]], room: int) -> Sequence[Block[Any]]:
    """The blocks without the last details, as long as the fewest rows of each do not fit; the line about those takes one too."""
    kept = [*blocks]
    for block in reversed(blocks):
        need = sum(_head(each) + _FEWEST for each in kept) + (len(kept) < len(blocks))
        if need <= room:
            break
        if block.details:
            kept.remove(block)
    return kept


def _short_findings(report: Report, width: int, height: int) -> list[str]:
    """A line each, most severe first as they come."""
    shown = max(1, height // _SCREEN_PARTS)
    lines = [f"{each.severity} ({each.entity.name}): {each.summary}" for each in report.findings]
    rest = len(lines) - shown
    kept = [clip(printable(line), width) for line in (lines if rest <= 0 else lines[: shown - 1])]
    return kept if rest <= 0 else [*kept, f"… {rest + 1:,} more findings; without -w they are shown in full"]


def _screenful(lines: list[str], width: int, height: int) -> list[str]:
    """The lines that fit into the height without the last row, where the cursor is."""
    left = height - 1
    kept = []
    for line in lines:
        left -= max(1, -(-cell_len(_ESCAPES.sub("", line)) // width))
        if left < 0:
            break
        kept.append(line)
    return kept if kept[-1:] == [""] else [*kept, ""]


def _listed(block: Block[Any], listing: Listing, fits: int | None, width: int | None) -> list[str]:
    """The rows of a listing, each line cut to the width: in as much detail as the first ones fit in, then as many as fit."""
    least = min(len(block.rows), max(1, listing.least))

    def lines(row: Any, detail: int) -> list[str]:
        texts = map(printable, listing.lines(row, detail, width))
        return [text if width is None else clip(text, width) for text in texts]

    def has_room(detail: int) -> bool:
        first = sum(len(lines(row, detail)) for row in block.rows[:least])
        return fits is None or first + (block.total > least) <= fits

    detail = next((each for each in range(listing.most, 0, -1) if has_room(each)), 0)
    shown: list[str] = []
    count = 0
    for count, row in enumerate(block.rows, 1):
        added = lines(row, detail)
        if count > least and fits is not None and len(shown) + len(added) + (block.total > count) > fits:
            count -= 1
            break
        shown += added
    more = [f"… {block.total - count:,} more; -n 0 shows all"] if block.total > count else []
    return [*shown, *more]


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
    widths: Sequence[int | None]
    cells: list[list[tuple[str, ...]]]
    if block.one_line and block.rows and console.width != _UNBOUNDED:
        # Of all rows, so that a column stays where it is when fewer of them fit.
        every = [[printable(column.human(row)) for column in columns] for row in block.rows]
        kept = fit(columns, every, console.width, _GAP)
        columns, widths = [columns[index] for index in kept], [*kept.values()]
        cells = [[(middle(row[index], width),) for index, width in kept.items()] for row in every[:count]]
    else:
        cells = [[tuple(map(printable, column.lines(row))) for column in columns] for row in block.rows[:count]]
        widths = _widths(console, columns, cells) or [None] * len(columns)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
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
