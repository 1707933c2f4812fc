"""A page of paragraphs, which is what `-f table` shows of answers that are sentences. It imports no library for tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.render.paragraphs import render as lines_of

if TYPE_CHECKING:
    from opskit.render.report import Report


def render(
    report: Report, width: int | None = None, height: int | None = None, *, color: bool = False, screen: bool = False
) -> str:
    """The page, made for a terminal of this width and height (None: no terminal). `screen`: it is redrawn, and is never longer."""
    paragraphs = report.page(width, height) if report.page is not None else ()
    lines = [line for each in paragraphs for line in lines_of(each, width, color=color)]
    if screen and height is not None:
        lines = lines[: height - 1]
    return "".join(f"{line}\n" for line in lines)
