"""A call tree as one SVG file with a script to zoom, search and walk through; a readable picture without it.

Names are printable and escaped, the file loads nothing from the network, and the same tree gives the same bytes. The
script draws from data in the file: a picture of 100,000 frames opens quickly and fits its window.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from opskit.escape import printable
from opskit.render.pictures.flame_layout import (
    PADDING_PX,
    SLIVER_PX,
    TOO_MANY,
    WIDTH_PX,
    Picture,
    Region,
    percent,
    regions,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.analysis.jpmp.flame_tree import Frame
    from opskit.analysis.jpmp.frame_kinds import Kind

_ROW, _GAP = 18, 1  # px; the gap is between rows and between siblings
_CHARACTER = 7.23  # px of a 12 px monospaced font

_KINDS: Mapping[Kind, str] = {
    "thread": "thread",
    "application": "application",
    "jdk": "JDK",
    "generated": "generated (lambda, proxy)",
    "inlined": "inlined",
    "native": "native",
    "kernel": "kernel",
}
_CHANGES = {"grew4": "\u25b2 own share grew", "shrank4": "\u25bc own share shrank", "same": "no change of its own"}
_GONE = "\u2715 gone"
# package.Class.method, package/Class.method or Lpackage/Class;::method, up to the method
_PACKAGE = re.compile(r"(?:[\w.$-]+@[\w.+-]+/|\w*//|L(?=[\w$/]+;))?(?:[a-z_][\w-]*[./])+(?=\S)")
_CLASS = re.compile(r"[\w$/+-]+?(?:;?::|\.)(?=[\w<$])")
_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


def draw(picture: Picture) -> str:
    """The SVG file."""
    shown = list(regions(picture))
    head = _Head(picture, shown)
    width = picture.width_px or WIDTH_PX
    tops, height = _tops(shown, head.height)
    title, notes = markup(printable(picture.title)), markup(" ".join(f"{printable(note)}." for note in picture.notes))
    package = files("opskit.render")
    style, script = (package.joinpath(f"flamegraph.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" class="whole" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" preserveAspectRatio="xMidYMin" role="graphics-document" aria-labelledby="title" aria-describedby="notes">\n'
        f'<title id="title">{title}</title>\n<desc id="notes">{notes}</desc>\n'
        f"<style>\n{style}</style>\n{_patterns()}"
        f'<rect class="paper" width="100%" height="100%"/>\n',
        *head.markup(),
        '<g id="frames">\n',
    ]
    for region, top in zip(shown, tops):
        parts.extend(_static(picture, region, top, width))
    parts.append("</g>\n")
    data = json.dumps(_data(picture, shown, head), ensure_ascii=False, separators=(",", ":"))
    for character in "<>&":  # a name must not end the element
        data = data.replace(character, f"\\u{ord(character):04x}")
    parts.append(f'<script id="data" type="application/json">{data}</script>\n')
    parts.append(f"<script><![CDATA[\n{script}]]></script>\n</svg>\n")
    return "".join(parts)


def _tops(regions: Sequence[Region], below: int) -> tuple[list[int], int]:
    tops = []
    for region in regions:
        below += 30 if region.heading else 0
        tops.append(below)
        below += region.rows * _ROW + 6
    return tops, below + 6


class _Head:
    """Title, notes and legend of the picture, without script."""

    def __init__(self, picture: Picture, regions: Sequence[Region]) -> None:
        self.picture = picture
        used = {look.partition(" ")[0] for region in regions for look in region.looks}
        self.legend: list[tuple[str, str]] = [(kind, text) for kind, text in _KINDS.items() if kind in used]
        if picture.before is not None:
            self.legend = list(_CHANGES.items()) + ([("gone", _GONE)] if "gone" in used else [])
        self.height = 44 + 18 * len(picture.notes) + (28 if self.legend else 0)

    def markup(self) -> Iterator[str]:
        width = self.picture.width_px or WIDTH_PX
        room = (width - 2 * PADDING_PX) / 7.4  # characters of the head's font, on average
        yield '<g id="head" class="head">\n'
        y = 28
        yield f'<text class="title" x="{PADDING_PX}" y="{y}">{markup(cut(printable(self.picture.title), room / 1.3))}</text>\n'
        for note in self.picture.notes:
            y += 19 if y == 28 else 18
            yield f'<text class="note" x="{PADDING_PX}" y="{y}">{markup(cut(printable(note), room))}</text>\n'
        x = float(PADDING_PX)
        for look, text in self.legend:
            yield f'<rect class="{look}" x="{px(x)}" y="{y + 11}" width="26" height="14"/>'
            yield f'<text x="{px(x + 31)}" y="{y + 22}">{markup(text)}</text>\n'
            x += 31 + 6.9 * len(text) + 16
        yield "</g>\n"


def _static(picture: Picture, region: Region, top: int, width: int) -> Iterator[str]:
    """The frames of the region, each a group of title, box and as much of its name as fits."""
    if region.heading:
        yield f'<text class="head" x="{PADDING_PX}" y="{top - 9}">{markup(printable(region.heading))}</text>\n'
    scale = (width - 2 * PADDING_PX) / region.span if region.span else 0.0
    least = SLIVER_PX if len(region.frames) > TOO_MANY else 0.0
    slivers: dict[str, list[str]] = {}
    before = region.heading is not None
    names: dict[str, Name] = {}
    for frame, begin, look in zip(region.frames, region.begin, region.looks):
        weight = frame.total_before if before else frame.total
        x, wide = PADDING_PX + begin * scale, weight * scale
        row = frame.depth if picture.inverted else region.rows - 1 - frame.depth
        y = top + row * _ROW
        if wide < least:
            slivers.setdefault(look, []).append(f"M{px(x)} {y}h{wide:.2f}v{_ROW - _GAP}h-{wide:.2f}z")
            continue
        name = names.get(frame.name) or names.setdefault(frame.name, Name(frame.name))
        title = f"{name.shown} ({_figures(picture, frame)})"
        box = max(wide - _GAP, wide * 0.7)
        yield (
            f'<g class="f"><title>{markup(title)}</title>'
            f'<rect class="{look}" x="{px(x)}" y="{y}" width="{box:.2f}" height="{_ROW - _GAP}"/>'
        )
        label = name.label((wide - 8) / _CHARACTER, _sign(look))
        yield f'<text x="{px(x + 4)}" y="{y + 13}">{markup(label)}</text></g>\n' if label else "</g>\n"
    for look, boxes in sorted(slivers.items()):
        yield f'<path class="{look}" d="{"".join(boxes)}"/>\n'


def _figures(picture: Picture, frame: Frame) -> str:
    tree = picture.tree
    if picture.before is None:
        own = f", own {percent(frame.own, tree.total)}" if frame.own else ""
        return f"{_amount(picture, frame.total)}, {percent(frame.total, tree.total)}{own}"
    return (
        f"own {percent(frame.own, tree.total)} after, {percent(frame.own_before, tree.total_before)} before; "
        f"total {percent(frame.total, tree.total)} after, {percent(frame.total_before, tree.total_before)} before; "
        f"{_amount(picture, frame.total)} after, {_amount(picture, frame.total_before)} before"
    )


def _amount(picture: Picture, weight: int) -> str:
    units = weight / picture.per_unit
    unit = picture.unit.removesuffix("s") if weight == 1 == picture.per_unit else picture.unit
    return f"{units:,.0f} {unit}" if picture.per_unit == 1 or units >= 100 else f"{units:,.1f} {unit}"


def _sign(look: str) -> str:
    return {"g": "\u25b2 ", "s": "\u25bc "}.get(look[0], "") if look[-1].isdigit() else ""


def _data(picture: Picture, regions: Sequence[Region], head: _Head) -> dict[str, Any]:
    """What the script draws from: each name once, and a column of numbers for each figure."""
    numbers: dict[str, int] = {}
    looks: dict[str, int] = {}
    columns = []
    for region in regions:
        frames = region.frames
        column: dict[str, Any] = {
            "heading": _printable(region.heading),
            "rows": region.rows,
            "span": region.span,
            "depth": [frame.depth for frame in frames],
            "name": [numbers.setdefault(frame.name, len(numbers)) for frame in frames],
            "total": [frame.total for frame in frames],
            "own": [frame.own for frame in frames],
            "look": [looks.setdefault(look, len(looks)) for look in region.looks],
        }
        if picture.before is not None:
            column["totalBefore"] = [frame.total_before for frame in frames]
            column["ownBefore"] = [frame.own_before for frame in frames]
        columns.append(column)
    names = [Name(name) for name in numbers]
    return {
        "title": printable(picture.title),
        "notes": [printable(note) for note in picture.notes],
        "notesTurned": [printable(note) for note in picture.notes_turned],
        "legend": head.legend,
        "kinds": [_KINDS.get(look.partition(" ")[0], "") for look in looks],  # type: ignore[call-overload]
        "looks": list(looks),
        "signs": [_sign(look) for look in looks],
        "unit": picture.unit,
        "perUnit": picture.per_unit,
        "total": picture.tree.total,
        "totalBefore": picture.tree.total_before,
        "before": _printable(picture.before),
        "after": _printable(picture.after),
        "inverted": picture.inverted,
        "width": picture.width_px,
        "names": [name.shown for name in names],
        "classAt": [name.class_at for name in names],
        "methodAt": [name.method_at for name in names],
        "regions": columns,
    }


def _printable(text: str | None) -> str | None:
    return None if text is None else printable(text)


def _patterns() -> str:
    """A texture for each kind, for readers who cannot distinguish the colours and for prints in grey."""
    slash, backslash = "M-1 1 1-1M0 6 6 0M5 7 7 5", "M-1 5 1 7M0 0 6 6M5-1 7 1"
    lines = {"generated": slash, "inlined": backslash, "native": "M3 0V6", "kernel": "M0 3H6M3 0V6"}
    lines.update({"gone": slash + backslash, **dict.fromkeys((f"shrank{level}" for level in (1, 2, 3, 4)), slash)})
    dots = "".join(f'<circle class="jdk-mark" cx="{at}" cy="{at}" r=".7"/>' for at in (1.5, 4.5))
    marks = {"jdk": dots}
    marks.update({name: f'<path class="{name.rstrip("1234")}-mark" d="{line}"/>' for name, line in lines.items()})
    patterns = (
        f'<pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<rect class="{name}-base" width="6" height="6"/>{mark}</pattern>\n'
        for name, mark in marks.items()
    )
    return f"<defs>\n{''.join(patterns)}</defs>\n"


class Name:
    """The name of a frame; `class_at` and `method_at`: where its class and its method begin."""

    __slots__ = ("class_at", "method_at", "shown", "wide")

    def __init__(self, name: str) -> None:
        self.shown = printable(name)
        self.class_at = package.end() if (package := _PACKAGE.match(self.shown)) else 0
        self.method_at = class_.end() if (class_ := _CLASS.match(self.shown, self.class_at)) else self.class_at
        self.wide = not self.shown.isascii()

    def label(self, room: float, sign: str) -> str:
        """As much of the name as fits: all, without its package, only the method, its beginning, nothing."""
        room -= len(sign)
        if room < 2:
            return ""
        for at in (0, self.class_at, self.method_at):
            if (_columns(self.shown[at:]) if self.wide else len(self.shown) - at) <= room:
                return sign + self.shown[at:]
        return sign + cut(self.shown[self.method_at :], room)


def _columns(text: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def cut(text: str, room: float) -> str:
    """The beginning of the text, with an ellipsis unless it is all of it."""
    if _columns(text) <= room:
        return text
    kept, columns = "", 1
    for character in text:
        columns += _columns(character)
        if columns > room:
            break
        kept += character
    return f"{kept}\u2026"


def px(value: float) -> str:
    """A coordinate, without needless zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def markup(text: str) -> str:
    """The text escaped for XML."""
    return text.translate(_MARKUP)
