"""CSV for spreadsheets and scripts: a header, then a row a line; names are escaped as everywhere."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from opskit.escape import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.render.report import Report, Sheet


def render(report: Report) -> str:
    """The report's sheet; None is an empty field."""
    return "".join(lines(report))


def lines(report: Report) -> Iterator[str]:
    """The same as its rows come."""
    return iter(()) if report.sheet is None else parts(report.sheet())


def parts(sheet: Sheet) -> Iterator[str]:
    """The text as its rows come, some hundreds at a time."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(sheet.header)
    for number, row in enumerate(sheet.rows, 1):
        writer.writerow([printable(value) if isinstance(value, str) else value for value in row])
        if number % 500 == 0:
            yield out.getvalue()
            out.seek(0)
            out.truncate()
    yield out.getvalue()
