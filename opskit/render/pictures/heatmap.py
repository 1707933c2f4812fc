"""Shares of many rows as colours: rows x named columns with their numbers, or rows x time, as one SVG file without matplotlib.

The same data give the same bytes. The file has no script and loads nothing; each cell has its figures as a tooltip.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from opskit.escape import printable
from opskit.quantities import duration, percent
from opskit.records import NamedTuple
from opskit.render.pictures.flamegraph import cut, markup, px
from opskit.render.pictures.page import CHARACTER, LINE, PADDING, WIDTH, head, page, text
from opskit.render.pictures.ticks import elapsed_unit, nice

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_STYLE = """
rect { shape-rendering: crispEdges; }
.cell { stroke: #ffffff; stroke-width: 1; }
.dark { fill: #ffffff; }
.number, .dark { font-size: 12px; }
.mark { fill: #b3001b; font-weight: 600; }
.frame { fill: none; stroke: #9aa4af; stroke-width: 1; }
"""
# Light to dark, one way in lightness: the order shows without colours, and to the colour-blind.
_STOPS = ((0xF4, 0xF5, 0xF7), (0xFE, 0xE3, 0x91), (0xFE, 0x99, 0x29), (0xCC, 0x4C, 0x02), (0x66, 0x1F, 0x05))
_SHADES = 20
_NUMBERED, _BARE = 22, 44  # px: the most of a row with numbers in it, and of one over time
_TEXT_FITS, _ROWS_PX = 15, 1400  # px: the least row that holds its numbers, all rows of a large machine
_LEAST_ROW, _WIDEST_LABEL, _MARKS = 4, 160, 200
_MOST_COLUMNS = 240  # over time; more looks are merged
_GAP = 10


class Column(NamedTuple):
    """A column: `shares`, 0 to 1, for each row (None: unknown), and what stands in the cells."""

    title: str
    shares: Sequence[float | None]
    texts: Sequence[str]


class HeatMap(NamedTuple):
    """A picture of `rows`, by their names: `columns`; or over time the shares of each look, in the order of the rows; `times_s`: when it ended.

    `marks`: what is said of a row, on its right, by index. `meaning`: of the colours.
    """

    title: str
    notes: Sequence[str]
    rows: Sequence[str]
    meaning: str
    columns: Sequence[Column] = ()
    times_s: Sequence[float] = ()
    looks: Sequence[Sequence[float | None]] = ()
    marks: Mapping[int, str] = {}


class _Grid(NamedTuple):
    """Where the cells are, in px."""

    left: float
    right: float
    top: float
    row: float


def draw(picture: HeatMap) -> str:
    """The SVG file."""
    above, top = head(picture.title, picture.notes)
    label = min(_WIDEST_LABEL, max([len(printable(name)) for name in picture.rows], default=0) * CHARACTER + _GAP)
    marked = _MARKS if picture.marks else 0
    tall = _NUMBERED if picture.columns else _BARE
    row = max(_LEAST_ROW, min(tall, _ROWS_PX // max(1, len(picture.rows))))
    grid = _Grid(PADDING + label, WIDTH - PADDING - marked, top + LINE + 4, row)
    bottom = grid.top + row * len(picture.rows)
    cells = _columns(picture, grid) if picture.columns else _looks(picture, grid, bottom)
    frame = f'<rect class="frame" x="{px(grid.left)}" y="{px(grid.top)}" width="{px(grid.right - grid.left)}" height="{px(bottom - grid.top)}"/>\n'
    parts = [*above, *_names(picture, grid), *cells, frame, *_scale(picture.meaning, bottom + 44)]
    return page(picture.title, parts, bottom + 84, _STYLE)


def color(share: float | None) -> str:
    """`#fe9929`: light for none, dark for all of it. By its square root: a few per cent differ from none."""
    return _COLORS[_shade(share)]


def _shade(share: float | None) -> int:
    """The index of its colour; the last one is for what is unknown."""
    if share is None:
        return -1
    return round(math.sqrt(min(max(share, 0.0), 1.0)) * _SHADES)


def _mixed(part: float) -> str:
    at = part * (len(_STOPS) - 1)
    low = min(int(at), len(_STOPS) - 2)
    mixed = (round(a + (b - a) * (at - low)) for a, b in zip(_STOPS[low], _STOPS[low + 1]))
    return "#" + "".join(f"{each:02x}" for each in mixed)


_COLORS = [*(_mixed(step / _SHADES) for step in range(_SHADES + 1)), "#d7dbe0"]


def _names(picture: HeatMap, grid: _Grid) -> Iterator[str]:
    """The rows' names on the left and their marks on the right; of low rows every second, fourth … one."""
    every = 1
    while grid.row * every < _TEXT_FITS:
        every *= 2
    for number, name in enumerate(picture.rows):
        y = grid.top + grid.row * number + grid.row / 2 + 4
        if number % every == 0:
            yield text(grid.left - 6, y, cut(printable(name), _WIDEST_LABEL / CHARACTER), "tick", "end")
    last = float(-_TEXT_FITS)
    for number, mark in sorted(picture.marks.items()):
        y = grid.top + grid.row * number + grid.row / 2 + 4
        if y - last >= _TEXT_FITS:  # of neighbours the first one
            yield text(grid.right + 6, y, cut(printable(mark), (_MARKS - 6) / (CHARACTER + 0.9)), "mark")
            last = y


def _columns(picture: HeatMap, grid: _Grid) -> Iterator[str]:
    width = (grid.right - grid.left) / len(picture.columns)
    for place, column in enumerate(picture.columns):
        x = grid.left + place * width
        yield text(x + width / 2, grid.top - 7, cut(printable(column.title), width / CHARACTER), "tick", "middle")
        for number, (share, shown) in enumerate(zip(column.shares, column.texts)):
            y = grid.top + number * grid.row
            said = f"{picture.rows[number]}, {column.title}: {shown}"
            yield f"<g><title>{markup(printable(said))}</title>{_rect(x, y, width, grid.row, share, 'cell' if grid.row > 8 else '')}"
            if grid.row >= _TEXT_FITS:
                kind = "dark" if (share or 0) >= 0.45 else "number"
                yield f'<text class="{kind}" text-anchor="middle" x="{px(x + width / 2)}" y="{px(y + grid.row / 2 + 4)}">{markup(printable(shown))}</text>'
            yield "</g>\n"


def _looks(picture: HeatMap, grid: _Grid, bottom: float) -> Iterator[str]:
    """A column a look, as wide as the time since the one before; neighbours of the same colour are one cell."""
    looks, times = _merged(picture)
    span = times[-1] or 1.0
    xs = [grid.left + at / span * (grid.right - grid.left) for at in (0.0, *times)]
    for number, (name, shares) in enumerate(zip(picture.rows, zip(*looks))):
        y = grid.top + number * grid.row
        shades = [*map(_shade, shares)]
        begin = 0
        for place in range(1, len(looks) + 1):
            if place < len(looks) and shades[place] == shades[begin]:
                continue
            most = max((share for share in shares[begin:place] if share is not None), default=None)
            said = f"{name}: {percent(most)} after {duration(times[begin])}"
            yield f"<g><title>{markup(printable(said))}</title>{_rect(xs[begin], y, xs[place] - xs[begin], grid.row, most)}</g>\n"
            begin = place
    seconds, unit = elapsed_unit(span)
    step = nice(span / seconds / 8)
    for each in range(int(span / seconds / step) + 1):
        x = grid.left + each * step * seconds / span * (grid.right - grid.left)
        yield text(x, bottom + 16, f"{each * step:g}", "tick", "middle" if x < grid.right - 12 else "end")
    yield text(grid.left, grid.top - 7, unit, "tick")


def _merged(picture: HeatMap) -> tuple[list[Sequence[float | None]], list[float]]:
    """At most as many looks as have room: of those that are merged each row's highest share counts."""
    size = -(-len(picture.looks) // _MOST_COLUMNS)
    groups = [picture.looks[at : at + size] for at in range(0, len(picture.looks), size)]
    highest = [
        [max((share for share in shares if share is not None), default=None) for shares in zip(*group)]
        for group in groups
    ]
    return [*highest], [
        picture.times_s[min(at + size, len(picture.looks)) - 1] for at in range(0, len(picture.looks), size)
    ]


def _rect(x: float, y: float, width: float, height: float, share: float | None, kind: str = "") -> str:
    class_ = f' class="{kind}"' if kind else ""
    return f'<rect{class_} x="{px(x)}" y="{px(y)}" width="{px(width)}" height="{px(height)}" fill="{color(share)}"/>'


def _scale(meaning: str, y: float) -> Iterator[str]:
    """What the colours mean."""
    width = 16
    yield text(PADDING, y + 12, meaning, "note")
    x = PADDING + len(meaning) * CHARACTER + 16
    for step in range(_SHADES + 1):
        share = (step / _SHADES) ** 2
        yield _rect(x + step * width, y, width, width, share) + "\n"
        if step % 5 == 0:
            yield text(x + (step + 0.5) * width, y + width + 14, percent(share), "tick", "middle")
    x += (_SHADES + 1) * width + 24
    yield _rect(x, y, width, width, None) + "\n"
    yield text(x + width + 6, y + 12, "unknown", "note")
