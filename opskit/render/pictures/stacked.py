"""Amounts of bytes on top of each other, against a limit: bars, or areas over time, as one SVG file without matplotlib.

The same data give the same bytes. The file has no script and loads nothing; each part has its figures as a tooltip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.escape import printable
from opskit.quantities import percent, size
from opskit.records import NamedTuple
from opskit.render.pictures.flamegraph import cut, markup, px
from opskit.render.pictures.page import CHARACTER, LINE, PADDING, WIDTH, head, page, text
from opskit.render.pictures.ticks import byte_unit, elapsed_unit, nice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_AXIS = 76  # px, on the left of a picture over time
_WIDE = 7.9  # px of a 13 px font in a word
_BAR, _AREA = 46, 340
_ROOM = 1.04  # above the highest amount
_STYLE = """
.grid { stroke: #dddfe2; stroke-width: 1; }
.part { stroke: #ffffff; stroke-width: 1; }
.light { stroke: #4d5661; stroke-width: 1; stroke-dasharray: 4 3; fill-opacity: .28; }
.limit { stroke: #b3001b; stroke-width: 2; }
.limit-name { fill: #b3001b; font-weight: 600; }
.line { fill: none; stroke: #16191d; stroke-width: 2; stroke-dasharray: 6 4; }
"""


class Layer(NamedTuple):
    """A part of a bar. `light`: what is not there yet, or goes first. `note`: for the legend."""

    name: str
    color: str
    bytes: int
    note: str = ""
    light: bool = False


class Bar(NamedTuple):
    """A bar: its name and its parts from the left."""

    name: str
    layers: Sequence[Layer]


class Area(NamedTuple):
    """A layer over time: an amount for each time."""

    name: str
    color: str
    amounts: Sequence[int]


class Stacked(NamedTuple):
    """A picture: `bars`, or `areas` at these times with `lines` over them (None: unknown). `limits`: a name and bytes."""

    title: str
    notes: Sequence[str]
    limits: Sequence[tuple[str, int]] = ()
    bars: Sequence[Bar] = ()
    times_s: Sequence[float] = ()
    areas: Sequence[Area] = ()
    lines: Sequence[tuple[str, Sequence[int | None]]] = ()


def draw(picture: Stacked) -> str:
    """The SVG file."""
    above, top = head(picture.title, picture.notes)
    body, height = _bars(picture, top) if picture.bars else _areas(picture, top)
    return page(picture.title, [*above, *body], height, _STYLE)


def _bars(picture: Stacked, top: int) -> tuple[list[str], int]:
    most = max(
        [
            1,
            *(amount for _, amount in picture.limits),
            *(sum(each.bytes for each in bar.layers) for bar in picture.bars),
        ]
    )
    scale = (WIDTH - 2 * PADDING) / (most * _ROOM)
    parts, y = [], top + 2 * LINE
    begin = y - 6
    for bar in picture.bars:
        parts.append(text(PADDING, y + 12, cut(printable(bar.name), (WIDTH - 2 * PADDING) / CHARACTER)))
        x = float(PADDING)
        for layer in bar.layers:
            parts += _segment(layer, x, y + LINE, layer.bytes * scale)
            x += layer.bytes * scale
        y += LINE + _BAR + 16
    grid = []
    factor, unit = byte_unit(most)
    for at in _steps(most * _ROOM, factor, 8):
        x = PADDING + at * scale
        grid.append(f'<path class="grid" d="M{px(x)} {begin}V{y}"/>\n')
        name = f"{at / factor:,g} {unit}"
        grid.append(text(x, y + 16, name, "tick", "start" if at == 0 else "middle" if x < WIDTH - 50 else "end"))
    limits = [line for name, amount in picture.limits for line in _upright(name, PADDING + amount * scale, begin, y)]
    legend, end = [], y + 44
    for bar in picture.bars:
        if len(picture.bars) > 1:
            legend.append(text(PADDING, end, cut(printable(bar.name), (WIDTH - 2 * PADDING) / CHARACTER), "note"))
            end += LINE
        lines, end = _legend(bar.layers, end)
        legend += lines
        end += 8
    return [*grid, *parts, *limits, *legend], end


def _segment(layer: Layer, x: float, y: float, width: float) -> Iterator[str]:
    if width <= 0:
        return
    kind = "light" if layer.light else "part"
    yield (
        f"<g><title>{markup(printable(f'{layer.name}: {size(layer.bytes)}'))}</title>"
        f'<rect class="{kind}" x="{px(x)}" y="{px(y)}" width="{px(width)}" height="{_BAR}" fill="{layer.color}"/>'
    )
    fits = width > max(len(layer.name), 9) * _WIDE + 8
    # Dark colours are not told apart from text on them: a label has a light halo.
    halo = ' style="paint-order: stroke; stroke: #ffffff; stroke-width: 3px; stroke-linejoin: round"'
    if fits:
        for down, label in ((19, layer.name), (37, size(layer.bytes))):
            yield f'<text x="{px(x + 5)}" y="{px(y + down)}"{halo}>{markup(printable(label))}</text>'
    yield "</g>\n"


def _upright(name: str, x: float, top: float, bottom: float) -> Iterator[str]:
    """A limit of bars."""
    yield f'<path class="limit" d="M{px(x)} {px(top - 4)}V{px(bottom)}"/>\n'
    room = len(name) * CHARACTER
    anchor, at = ("end", x) if x - room > PADDING else ("start", x)
    yield text(at, top - 9, name, "limit-name", anchor)


def _areas(picture: Stacked, top: int) -> tuple[list[str], int]:
    heights = [sum(amounts) for amounts in zip(*(area.amounts for area in picture.areas))]
    known = [amount for _, amounts in picture.lines for amount in amounts if amount is not None]
    most = max([1, *heights, *known, *(amount for _, amount in picture.limits)]) * _ROOM
    first, last = picture.times_s[0], picture.times_s[-1]
    span = (last - first) or 1.0
    left, right, top = _AXIS, WIDTH - PADDING, top + 16
    bottom = top + _AREA
    xs = [left + (at - first) / span * (right - left) for at in picture.times_s]

    def y(amount: float) -> float:
        return float(bottom - amount / most * _AREA)

    parts, factor, unit = [], *byte_unit(most)
    for at in _steps(most, factor, 6):
        parts.append(f'<path class="grid" d="M{left} {px(y(at))}H{right}"/>\n')
        parts.append(text(left - 8, y(at) + 4, f"{at / factor:,g} {unit}", "tick", "end"))
    seconds, name = elapsed_unit(span)
    for at in _steps(span, seconds, 8):
        x = left + at / span * (right - left)
        parts.append(text(x, bottom + 18, f"{at / seconds:g}", "tick", "middle" if x < right - 20 else "end"))
    parts.append(text((left + right) / 2, bottom + 36, f"{name} since the first sample", "tick", "middle"))
    below = [0] * len(xs)
    for area in picture.areas:
        above = [low + amount for low, amount in zip(below, area.amounts)]
        points = [*zip(xs, map(y, above)), *reversed([*zip(xs, map(y, below))])]
        line = " ".join(f"{px(x)},{px(height)}" for x, height in points)
        said = f"{area.name}: {size(area.amounts[0])} at first, {size(area.amounts[-1])} at last"
        parts.append(
            f'<polygon class="part" fill="{area.color}" points="{line}"><title>{markup(printable(said))}</title></polygon>\n'
        )
        below = above
    parts += [_line(xs, [None if each is None else y(each) for each in amounts]) for _, amounts in picture.lines]
    for name, amount in picture.limits:
        parts.append(f'<path class="limit" d="M{left} {px(y(amount))}H{right}"/>\n')
        parts.append(text(right, y(amount) - 6, name, "limit-name", "end"))
    legend, end = _legend(
        [Layer(area.name, area.color, area.amounts[-1], _change(area)) for area in reversed(picture.areas)], bottom + 62
    )
    for name, _ in picture.lines:
        legend.append(f'<path class="line" d="M{PADDING} {end - 5}h26"/>\n')
        legend.append(text(PADDING + 36, end, name))
        end += LINE
    return [*parts, *legend], end + 4


def _change(area: Area) -> str:
    change = area.amounts[-1] - area.amounts[0]
    return f"{'+' if change > 0 else '-'}{size(abs(change))}" if change else "unchanged"


def _line(xs: Sequence[float], ys: Sequence[float | None]) -> str:
    drawn, path = False, ""
    for x, y in zip(xs, ys):
        path += "" if y is None else f"{'L' if drawn else 'M'}{px(x)} {px(y)}"
        drawn = y is not None
    return f'<path class="line" d="{path}"/>\n' if path else ""


def _steps(most: float, factor: int, number: int) -> list[float]:
    step = nice(most / factor / number) * factor
    return [step * each for each in range(int(most / step) + 1)]


def _legend(layers: Sequence[Layer], top: int) -> tuple[list[str], int]:
    """A line for each layer: colour, name, bytes, share of those that are there, note."""
    total = sum(layer.bytes for layer in layers if not layer.light)
    name_px = (max([len(printable(layer.name)) for layer in layers], default=0) + 2) * CHARACTER
    lines, y = [], top
    for layer in layers:
        kind = "light" if layer.light else "part"
        lines.append(f'<rect class="{kind}" x="{PADDING}" y="{y - 12}" width="26" height="14" fill="{layer.color}"/>')
        x = PADDING + 36 + name_px
        lines.append(text(PADDING + 36, y, layer.name))
        lines.append(text(x + 78, y, size(layer.bytes), "", "end"))
        lines.append(
            text(x + 172, y, "" if layer.light else percent(layer.bytes / total if total else None), "", "end")
        )
        room = (WIDTH - PADDING - x - 192) / CHARACTER
        lines.append(text(x + 192, y, cut(printable(layer.note), room), "note"))
        y += LINE
    return lines, y
