"""Amounts of bytes on top of each other, against a limit: bars, or areas over time, as one SVG file without matplotlib.

The same data give the same bytes. The file has no script and loads nothing; each part has its figures as a tooltip.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from opskit.escape import printable
from opskit.quantities import percent, size
from opskit.records import NamedTuple
from opskit.render.pictures.flamegraph import cut, markup, px
from opskit.render.pictures.ticks import byte_unit, elapsed_unit, nice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WIDTH, _PADDING, _AXIS = 1000, 20, 76  # px; the axis of a picture over time is on the left
_CHARACTER, _WIDE, _BOLD = 6.9, 7.9, 11.9  # px of a 13 px font in a sentence, in a word, and of the title's
_LINE, _BAR, _AREA = 19, 46, 340
_ROOM = 1.04  # above the highest amount
_STYLE = """
svg { background: #ffffff; }
text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; fill: #16191d; white-space: pre; }
.title { font-size: 17px; font-weight: 650; }
.note, .tick { fill: #4d5661; }
.tick { font-size: 12px; }
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
    head, top = _head(picture)
    body, height = _bars(picture, top) if picture.bars else _areas(picture, top)
    title = markup(printable(picture.title))
    return "".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
            f'role="img" aria-labelledby="title">\n<title id="title">{title}</title>\n<style>{_STYLE}</style>\n'
            '<rect width="100%" height="100%" fill="#ffffff"/>\n',
            *head,
            *body,
            "</svg>\n",
        ]
    )


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    class_ = f' class="{kind}"' if kind else ""
    anchored = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{px(x)}" y="{px(y)}"{class_}{anchored}>{markup(printable(text))}</text>\n'


def _head(picture: Stacked) -> tuple[list[str], int]:
    """Title and notes, and where they end."""
    room = _WIDTH - 2 * _PADDING
    y = 30
    lines = [_text(_PADDING, y, cut(printable(picture.title), room / _BOLD), "title")]
    for note in picture.notes:
        for line in textwrap.wrap(printable(note), int(room / _CHARACTER)):
            y += _LINE
            lines.append(_text(_PADDING, y, line, "note"))
    return lines, y + 14


def _bars(picture: Stacked, top: int) -> tuple[list[str], int]:
    most = max(
        [
            1,
            *(amount for _, amount in picture.limits),
            *(sum(each.bytes for each in bar.layers) for bar in picture.bars),
        ]
    )
    scale = (_WIDTH - 2 * _PADDING) / (most * _ROOM)
    parts, y = [], top + 2 * _LINE
    begin = y - 6
    for bar in picture.bars:
        parts.append(_text(_PADDING, y + 12, cut(printable(bar.name), (_WIDTH - 2 * _PADDING) / _CHARACTER)))
        x = float(_PADDING)
        for layer in bar.layers:
            parts += _segment(layer, x, y + _LINE, layer.bytes * scale)
            x += layer.bytes * scale
        y += _LINE + _BAR + 16
    grid = []
    factor, unit = byte_unit(most)
    for at in _steps(most * _ROOM, factor, 8):
        x = _PADDING + at * scale
        grid.append(f'<path class="grid" d="M{px(x)} {begin}V{y}"/>\n')
        name = f"{at / factor:,g} {unit}"
        grid.append(_text(x, y + 16, name, "tick", "start" if at == 0 else "middle" if x < _WIDTH - 50 else "end"))
    limits = [line for name, amount in picture.limits for line in _upright(name, _PADDING + amount * scale, begin, y)]
    legend, end = [], y + 44
    for bar in picture.bars:
        if len(picture.bars) > 1:
            legend.append(_text(_PADDING, end, cut(printable(bar.name), (_WIDTH - 2 * _PADDING) / _CHARACTER), "note"))
            end += _LINE
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
        for down, text in ((19, layer.name), (37, size(layer.bytes))):
            yield f'<text x="{px(x + 5)}" y="{px(y + down)}"{halo}>{markup(printable(text))}</text>'
    yield "</g>\n"


def _upright(name: str, x: float, top: float, bottom: float) -> Iterator[str]:
    """A limit of bars."""
    yield f'<path class="limit" d="M{px(x)} {px(top - 4)}V{px(bottom)}"/>\n'
    room = len(name) * _CHARACTER
    anchor, at = ("end", x) if x - room > _PADDING else ("start", x)
    yield _text(at, top - 9, name, "limit-name", anchor)


def _areas(picture: Stacked, top: int) -> tuple[list[str], int]:
    heights = [sum(amounts) for amounts in zip(*(area.amounts for area in picture.areas))]
    known = [amount for _, amounts in picture.lines for amount in amounts if amount is not None]
    most = max([1, *heights, *known, *(amount for _, amount in picture.limits)]) * _ROOM
    first, last = picture.times_s[0], picture.times_s[-1]
    span = (last - first) or 1.0
    left, right, top = _AXIS, _WIDTH - _PADDING, top + 16
    bottom = top + _AREA
    xs = [left + (at - first) / span * (right - left) for at in picture.times_s]

    def y(amount: float) -> float:
        return float(bottom - amount / most * _AREA)

    parts, factor, unit = [], *byte_unit(most)
    for at in _steps(most, factor, 6):
        parts.append(f'<path class="grid" d="M{left} {px(y(at))}H{right}"/>\n')
        parts.append(_text(left - 8, y(at) + 4, f"{at / factor:,g} {unit}", "tick", "end"))
    seconds, name = elapsed_unit(span)
    for at in _steps(span, seconds, 8):
        x = left + at / span * (right - left)
        parts.append(_text(x, bottom + 18, f"{at / seconds:g}", "tick", "middle" if x < right - 20 else "end"))
    parts.append(_text((left + right) / 2, bottom + 36, f"{name} since the first sample", "tick", "middle"))
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
        parts.append(_text(right, y(amount) - 6, name, "limit-name", "end"))
    legend, end = _legend(
        [Layer(area.name, area.color, area.amounts[-1], _change(area)) for area in reversed(picture.areas)], bottom + 62
    )
    for name, _ in picture.lines:
        legend.append(f'<path class="line" d="M{_PADDING} {end - 5}h26"/>\n')
        legend.append(_text(_PADDING + 36, end, name))
        end += _LINE
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
    name_px = (max([len(printable(layer.name)) for layer in layers], default=0) + 2) * _CHARACTER
    lines, y = [], top
    for layer in layers:
        kind = "light" if layer.light else "part"
        lines.append(f'<rect class="{kind}" x="{_PADDING}" y="{y - 12}" width="26" height="14" fill="{layer.color}"/>')
        x = _PADDING + 36 + name_px
        lines.append(_text(_PADDING + 36, y, layer.name))
        lines.append(_text(x + 78, y, size(layer.bytes), "", "end"))
        lines.append(
            _text(x + 172, y, "" if layer.light else percent(layer.bytes / total if total else None), "", "end")
        )
        room = (_WIDTH - _PADDING - x - 192) / _CHARACTER
        lines.append(_text(x + 192, y, cut(printable(layer.note), room), "note"))
        y += _LINE
    return lines, y
