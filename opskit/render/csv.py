"""CSV for spreadsheets and scripts: a header, then a row a line; names are escaped as everywhere."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from opskit.render.escape import printable

if TYPE_CHECKING:
    from opskit.render.report import Report


def render(report: Report) -> str:
    """The report's sheet; None is an empty field."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if report.sheet is not None:
        sheet = report.sheet()
        writer.writerow(sheet.header)
        writer.writerows([printable(value) if isinstance(value, str) else value for value in row] for row in sheet.rows)
    return out.getvalue()
