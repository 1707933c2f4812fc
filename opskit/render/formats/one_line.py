"""Tables with one line per row at any width: names are shortened in their middle, then columns are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.render.fields import Field

ELLIPSIS = "…"


def fit(columns: Sequence[Field[Any]], cells: Sequence[Sequence[str]], room: int, gap: int) -> dict[int, int]:
    """The columns that are shown, by index, and their widths. `gap`: characters between two columns.

    Columns with the highest rank are left out first, those with rank 0 never.
    """
    wholes = [max(map(cell_len, [column.title, *body])) for column, body in zip(columns, zip(*cells))]
    # A name that is shortened keeps its column's title whole.
    least = [min(whole, max(column.shrinks, cell_len(column.title))) if column.shrinks else whole
             for column, whole in zip(columns, wholes)]  # fmt: skip
    kept = list(range(len(columns)))

    def spare() -> int:
        return room - sum(least[index] for index in kept) - gap * (len(kept) - 1)

    while spare() < 0 and any(columns[index].rank for index in kept):
        kept.remove(max(kept, key=lambda index: columns[index].rank))
    left, widths = max(0, spare()), {index: least[index] for index in kept}
    wanting = sorted((index for index in kept if wholes[index] > least[index]), key=lambda index: wholes[index])
    for place, index in enumerate(wanting):
        added = min(wholes[index] - least[index], left // (len(wanting) - place))
        widths[index], left = widths[index] + added, left - added
    return widths


def middle(text: str, width: int) -> str:
    """The text, or its beginning and its end: `kubepods…ainerd-ab12`."""
    if cell_len(text) <= width:
        return text
    head, tail = "", ""
    for first, last in zip(text, reversed(text)):
        if cell_len(head + first + tail) >= width:
            break
        head += first
        if cell_len(head + last + tail) >= width:
            break
        tail = last + tail
    return head + ELLIPSIS + tail


def clip(text: str, width: int) -> str:
    """The beginning of the text, with an ellipsis unless it is all of it."""
    if cell_len(text) <= width:
        return text
    while cell_len(text) >= width:
        text = text[: -max(1, (len(text) - width) // 2)]
    return text.rstrip() + ELLIPSIS
