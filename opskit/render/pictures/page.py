"""The frame of a picture that needs no script: an SVG file with its title, its notes and its style."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from opskit.escape import printable
from opskit.render.pictures.flamegraph import cut, markup, px

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH, PADDING = 1000, 20  # px
LINE = 19
CHARACTER, BOLD = 6.9, 11.9  # px of a 13 px font in a sentence, and of the title's
STYLE = """
svg { background: #ffffff; }
text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; fill: #16191d; white-space: pre; }
.title { font-size: 17px; font-weight: 650; }
.note, .tick { fill: #4d5661; }
.tick { font-size: 12px; }
"""


def page(title: str, parts: Sequence[str], height: float, style: str = "", width: float = WIDTH) -> str:
    """The SVG file. `style`: more rules of CSS."""
    return "".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{px(width)}" height="{px(height)}" viewBox="0 0 {px(width)} {px(height)}" '
            f'role="img" aria-labelledby="title">\n<title id="title">{markup(printable(title))}</title>\n<style>{STYLE}{style.lstrip()}</style>\n'
            '<rect width="100%" height="100%" fill="#ffffff"/>\n',
            *parts,
            "</svg>\n",
        ]
    )


def head(title: str, notes: Sequence[str]) -> tuple[list[str], int]:
    """Title and notes, and where they end."""
    room = WIDTH - 2 * PADDING
    y = 30
    lines = [text(PADDING, y, cut(printable(title), room / BOLD), "title")]
    for note in notes:
        for line in textwrap.wrap(printable(note), int(room / CHARACTER)):
            y += LINE
            lines.append(text(PADDING, y, line, "note"))
    return lines, y + 14


def text(x: float, y: float, shown: str, kind: str = "", anchor: str = "start") -> str:
    """A line of text; `kind` is its class."""
    class_ = f' class="{kind}"' if kind else ""
    anchored = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{px(x)}" y="{px(y)}"{class_}{anchored}>{markup(printable(shown))}</text>\n'
