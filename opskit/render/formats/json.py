"""One JSON object: where, when and on what; the command's own keys; the notes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opskit.render.report import Report


def render(report: Report) -> str:
    """The object, indented by one; names that are no UTF-8 come as escaped surrogates."""
    document = {
        **report.about._asdict(),
        **report.data(),
        "verdict": list(report.verdict),
        "notes": list(report.footer),
    }
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"
