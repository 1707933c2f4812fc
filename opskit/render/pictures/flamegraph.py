"""A call tree as one SVG file: a readable picture by itself, and with its script one to zoom, search and walk through.

Every name is made printable and then escaped for markup; the file asks the network for nothing; the same tree gives
the same bytes. The script draws from the data that stands in the file and not from the elements, so that a picture of
100,000 frames opens quickly and fits the window it is shown in.
"""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import east_asian_width

from opskit.analysis.jpmp.flame_tree import starts
from opskit.escape import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.analysis.jpmp.flame_tree import FlameTree, Frame
    from opskit.analysis.jpmp.frame_kinds import Kind

WIDTH_PX = 1200
NARROWEST_PX = 0.1
PADDING_PX = 10
MOST_BYTES = 15_000_000  # a larger picture is slow to open, and is refused by many a ticket system

_ROW, _GAP = 18, 1  # px; the gap is between rows and between siblings
_CHARACTER = 7.23  # px of a 12 px monospaced font
_TOO_MANY = 20_000  # frames, from which on those under _SLIVER_PX have no element, and no title, of their own
_SLIVER_PX = 1.0
_SLIVER_BYTES, _ELEMENT_BYTES, _NAME_BYTES = 50, 250, 12  # of the file, about
_TINTS = 3  # every third name is a little lighter, so that neighbours are told apart

_KINDS: Mapping[Kind, str] = {
    "thread": "thread",
    "application": "application",
    "jdk": "JDK",
    "generated": "generated (lambda, proxy)",
    "inlined": "inlined",
    "native": "native",
    "kernel": "kernel",
}
_LEVELS = (0.01, 0.1, 0.3, 0.6)  # of the largest change
_CHANGES = {
    "grew4": "\u25b2 own share grew",
    "shrank4": "\u25bc own share shrank",
    "same": "no change of its own",
}
_GONE = "\u2715 gone"

# package.Class.method, package/Class.method or Lpackage/Class;::method, as far as the method
_PACKAGE = re.compile(r"(?:[\w.$-]+@[\w.+-]+/|\w*//|L(?=[\w$/]+;))?(?:[a-z_][\w-]*[./])+(?=\S)")
_CLASS = re.compile(r"[\w$/+-]+?(?:;?::|\.)(?=[\w<$])")


@dataclass(frozen=True)
class Picture:
    """What to draw.

    `notes_turned`: the notes where the picture is turned over, as many. Weights divided by `per_unit` are `unit`s;
    `kinds` by frame name choose the colours of one profile, changes those of two. `before`, `after`: how the two are
    called. `width_px` None fills the window.
    """

    tree: FlameTree
    title: str
    notes: Sequence[str]
    notes_turned: Sequence[str]
    unit: str
    kinds: Mapping[str, Kind]
    per_unit: int = 1
    inverted: bool = False
    width_px: int | None = None
    before: str | None = None
    after: str | None = None


class _Region(NamedTuple):
    """A part of the picture: the tree, or the strip of what is gone."""

    frames: Sequence[Frame]
    begin: Sequence[int]
    span: int  # the weight that is as wide as the picture
    looks: Sequence[str]  # a frame's colour
    rows: int
    heading: str | None = None


def narrowest_share(width_px: int | None) -> float:
    """The share of the whole that is 0.1 px wide."""
    return NARROWEST_PX / drawn_px(width_px)


def drawn_px(width_px: int | None) -> int:
    """How wide the root is."""
    return (width_px or WIDTH_PX) - 2 * PADDING_PX


def bytes_of(tree: FlameTree, width_px: int | None) -> list[int]:
    """About how many bytes of the file each frame takes, then each that is gone. The first of a name pays for the name."""
    frames = [*tree.frames, *tree.gone]
    total, total_before = tree.total or 1, tree.total_before or 1
    least = _SLIVER_PX / drawn_px(width_px) if len(frames) > _TOO_MANY else 0.0
    named: set[str] = set()
    sizes = []
    for frame in frames:
        long = len(frame.name)
        size = _SLIVER_BYTES
        if frame.total / total >= least or frame.total_before / total_before >= least:
            size += _ELEMENT_BYTES + long
        if frame.name not in named:
            named.add(frame.name)
            size += _NAME_BYTES + long
        sizes.append(size)
    return sizes


def draw(picture: Picture) -> str:
    """The SVG file."""
    regions = list(_regions(picture))
    head = _Head(picture, regions)
    width = picture.width_px or WIDTH_PX
    tops, height = _tops(regions, head.height)
    title = _markup(printable(picture.title))
    notes = _markup(" ".join(f"{printable(note)}." for note in picture.notes))
    package = files("opskit.render")
    style = package.joinpath("flamegraph.css").read_text(encoding="utf-8")
    script = package.joinpath("flamegraph.js").read_text(encoding="utf-8")
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
    for region, top in zip(regions, tops):
        parts.extend(_static(picture, region, top, width))
    parts.append("</g>\n")
    data = json.dumps(_data(picture, regions, head), ensure_ascii=False, separators=(",", ":"))
    for character in "<>&":  # so that no name ends the element
        data = data.replace(character, f"\\u{ord(character):04x}")
    parts.append(f'<script id="data" type="application/json">{data}</script>\n')
    parts.append(f"<script><![CDATA[\n{script}]]></script>\n</svg>\n")
    return "".join(parts)


def _regions(picture: Picture) -> Iterator[_Region]:
    tree = picture.tree
    if picture.before is None:
        looks = [_look_of(frame, picture.kinds) for frame in tree.frames]
        yield _Region(tree.frames, starts(tree.frames), tree.total, looks, _rows(tree.frames))
        return
    yield _Region(tree.frames, starts(tree.frames), tree.total, _changes(tree), _rows(tree.frames))
    if tree.gone:
        width = sum(frame.total_before for frame in tree.gone if frame.depth == 0)
        which = "Gone, or under 0.1 px now: in" if any(frame.total for frame in tree.gone) else "Gone: only in"
        yield _Region(
            tree.gone,
            starts(tree.gone, before=True),
            tree.total_before,
            ["gone"] * len(tree.gone),
            _rows(tree.gone),
            f"{which} {picture.before} ({_percent(width, tree.total_before)} of it)",
        )


def _rows(frames: Sequence[Frame]) -> int:
    return max(frame.depth for frame in frames) + 1


def _look_of(frame: Frame, kinds: Mapping[str, Kind]) -> str:
    if frame.depth == 0:
        return "root"
    tinted = zlib.crc32(frame.name.encode("utf-8", "surrogatepass")) % _TINTS == 0
    return f"{kinds[frame.name]} tint" if tinted else kinds[frame.name]


def own_change(frame: Frame, tree: FlameTree) -> float:
    """By how much the frame's own share of the whole has grown since before; shares, not weights: the numbers of samples differ."""
    now = frame.own / tree.total if tree.total else 0.0
    return now - (frame.own_before / tree.total_before if tree.total_before else 0.0)


def _changes(tree: FlameTree) -> list[str]:
    changes = [own_change(frame, tree) for frame in tree.frames]
    largest = max(map(abs, changes), default=0.0)
    looks = []
    for change in changes:
        level = sum(abs(change) >= least * largest for least in _LEVELS) if largest > 1e-9 else 0
        looks.append(f"{'grew' if change > 0 else 'shrank'}{level}" if level else "same")
    looks[0] = "root"
    return looks


def _tops(regions: Sequence[_Region], below: int) -> tuple[list[int], int]:
    tops = []
    for region in regions:
        below += 30 if region.heading else 0
        tops.append(below)
        below += region.rows * _ROW + 6
    return tops, below + 6


class _Head:
    """Title, notes and legend of the picture without script."""

    def __init__(self, picture: Picture, regions: Sequence[_Region]) -> None:
        self.picture = picture
        used = {look.partition(" ")[0] for region in regions for look in region.looks}
        self.legend: list[tuple[str, str]] = []
        if picture.before is None:
            self.legend = [(kind, text) for kind, text in _KINDS.items() if kind in used]
        else:
            self.legend = list(_CHANGES.items()) + ([("gone", _GONE)] if "gone" in used else [])
        self.height = 44 + 18 * len(picture.notes) + (28 if self.legend else 0)

    def markup(self) -> Iterator[str]:
        width = self.picture.width_px or WIDTH_PX
        room = (width - 2 * PADDING_PX) / 7.4  # characters of the head's font, on the average
        yield '<g id="head" class="head">\n'
        y = 28
        yield f'<text class="title" x="{PADDING_PX}" y="{y}">{_markup(_cut(printable(self.picture.title), room / 1.3))}</text>\n'
        for note in self.picture.notes:
            y += 19 if y == 28 else 18
            yield f'<text class="note" x="{PADDING_PX}" y="{y}">{_markup(_cut(printable(note), room))}</text>\n'
        x = float(PADDING_PX)
        for look, text in self.legend:
            yield f'<rect class="{look}" x="{_px(x)}" y="{y + 11}" width="26" height="14"/>'
            yield f'<text x="{_px(x + 31)}" y="{y + 22}">{_markup(text)}</text>\n'
            x += 31 + 6.9 * len(text) + 16
        yield "</g>\n"


def _static(picture: Picture, region: _Region, top: int, width: int) -> Iterator[str]:
    """The region's frames, each a group with its title, its box and its name as far as there is room."""
    if region.heading:
        yield f'<text class="head" x="{PADDING_PX}" y="{top - 9}">{_markup(printable(region.heading))}</text>\n'
    scale = (width - 2 * PADDING_PX) / region.span if region.span else 0.0
    least = _SLIVER_PX if len(region.frames) > _TOO_MANY else 0.0
    slivers: dict[str, list[str]] = {}
    before = region.heading is not None
    names: dict[str, _Name] = {}
    for frame, begin, look in zip(region.frames, region.begin, region.looks):
        weight = frame.total_before if before else frame.total
        x, wide = PADDING_PX + begin * scale, weight * scale
        row = frame.depth if picture.inverted else region.rows - 1 - frame.depth
        y = top + row * _ROW
        if wide < least:
            slivers.setdefault(look, []).append(f"M{_px(x)} {y}h{wide:.2f}v{_ROW - _GAP}h-{wide:.2f}z")
            continue
        name = names.get(frame.name)
        if name is None:
            name = names[frame.name] = _Name(frame.name)
        title = f"{name.shown} ({_figures(picture, frame)})"
        box = max(wide - _GAP, wide * 0.7)
        yield (
            f'<g class="f"><title>{_markup(title)}</title>'
            f'<rect class="{look}" x="{_px(x)}" y="{y}" width="{box:.2f}" height="{_ROW - _GAP}"/>'
        )
        label = name.label((wide - 8) / _CHARACTER, _sign(look))
        yield f'<text x="{_px(x + 4)}" y="{y + 13}">{_markup(label)}</text></g>\n' if label else "</g>\n"
    for look, boxes in sorted(slivers.items()):
        yield f'<path class="{look}" d="{"".join(boxes)}"/>\n'


def _figures(picture: Picture, frame: Frame) -> str:
    tree = picture.tree
    if picture.before is None:
        own = f", own {_percent(frame.own, tree.total)}" if frame.own else ""
        return f"{_amount(picture, frame.total)}, {_percent(frame.total, tree.total)}{own}"
    return (
        f"own {_percent(frame.own, tree.total)} after, {_percent(frame.own_before, tree.total_before)} before; "
        f"total {_percent(frame.total, tree.total)} after, {_percent(frame.total_before, tree.total_before)} before; "
        f"{_amount(picture, frame.total)} after, {_amount(picture, frame.total_before)} before"
    )


def _amount(picture: Picture, weight: int) -> str:
    units = weight / picture.per_unit
    unit = picture.unit.removesuffix("s") if weight == 1 == picture.per_unit else picture.unit
    return f"{units:,.0f} {unit}" if picture.per_unit == 1 or units >= 100 else f"{units:,.1f} {unit}"


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole if whole else 0.0
    return f"{share:.{2 if 0 < share < 1 else 1}f} %"


class _Name:
    """A frame's name, and where its class and its method begin."""

    __slots__ = ("class_at", "method_at", "shown", "wide")

    def __init__(self, name: str) -> None:
        self.shown = printable(name)
        package = _PACKAGE.match(self.shown)
        self.class_at = package.end() if package else 0
        class_ = _CLASS.match(self.shown, self.class_at)
        self.method_at = class_.end() if class_ else self.class_at
        self.wide = not self.shown.isascii()

    def label(self, room: float, sign: str) -> str:
        """As much of the name as fits: whole, without its package, the method alone, its beginning, nothing."""
        room -= len(sign)
        if room < 2:
            return ""
        for at in (0, self.class_at, self.method_at):
            if (_columns(self.shown[at:]) if self.wide else len(self.shown) - at) <= room:
                return sign + self.shown[at:]
        return sign + _cut(self.shown[self.method_at :], room)


def _sign(look: str) -> str:
    return {"g": "\u25b2 ", "s": "\u25bc "}.get(look[0], "") if look[-1].isdigit() else ""


def _columns(text: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _cut(text: str, room: float) -> str:
    """The text's beginning, with an ellipsis where it is not whole."""
    if _columns(text) <= room:
        return text
    kept, columns = "", 1
    for character in text:
        columns += _columns(character)
        if columns > room:
            break
        kept += character
    return f"{kept}\u2026"


def _data(picture: Picture, regions: Sequence[_Region], head: _Head) -> dict[str, Any]:
    """What the script draws from: the names once, and a column of numbers for each figure."""
    numbers: dict[str, int] = {}
    looks: dict[str, int] = {}
    columns = []
    for region in regions:
        frames = region.frames
        columns.append(
            {
                "heading": None if region.heading is None else printable(region.heading),
                "rows": region.rows,
                "span": region.span,
                "depth": [frame.depth for frame in frames],
                "name": [numbers.setdefault(frame.name, len(numbers)) for frame in frames],
                "total": [frame.total for frame in frames],
                "own": [frame.own for frame in frames],
                "look": [looks.setdefault(look, len(looks)) for look in region.looks],
            }
        )
        if picture.before is not None:
            columns[-1]["totalBefore"] = [frame.total_before for frame in frames]
            columns[-1]["ownBefore"] = [frame.own_before for frame in frames]
    names = [_Name(name) for name in numbers]
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
        "before": None if picture.before is None else printable(picture.before),
        "after": None if picture.after is None else printable(picture.after),
        "inverted": picture.inverted,
        "width": picture.width_px,
        "names": [name.shown for name in names],
        "classAt": [name.class_at for name in names],
        "methodAt": [name.method_at for name in names],
        "regions": columns,
    }


def _patterns() -> str:
    """Each kind has a texture too: who cannot tell the colours, or prints in grey, still can tell the kinds."""
    slash, backslash = "M-1 1 1-1M0 6 6 0M5 7 7 5", "M-1 5 1 7M0 0 6 6M5-1 7 1"
    made = [
        ("jdk", 6, '<circle class="jdk-mark" cx="1.5" cy="1.5" r=".7"/><circle class="jdk-mark" cx="4.5" cy="4.5" r=".7"/>'),
        ("generated", 6, f'<path class="generated-mark" d="{slash}"/>'),
        ("inlined", 6, f'<path class="inlined-mark" d="{backslash}"/>'),
        ("native", 6, '<path class="native-mark" d="M3 0V6"/>'),
        ("kernel", 6, '<path class="kernel-mark" d="M0 3H6M3 0V6"/>'),
        ("gone", 6, f'<path class="gone-mark" d="{slash}{backslash}"/>'),
        *((f"shrank{level}", 6, f'<path class="shrank-mark" d="{slash}"/>') for level in (1, 2, 3, 4)),
    ]  # fmt: skip
    patterns = (
        f'<pattern id="{name}" width="{size}" height="{size}" patternUnits="userSpaceOnUse">'
        f'<rect class="{name}-base" width="{size}" height="{size}"/>{mark}</pattern>\n'
        for name, size, mark in made
    )
    return f"<defs>\n{''.join(patterns)}</defs>\n"


def _px(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


def _markup(text: str) -> str:
    return text.translate(_MARKUP)
