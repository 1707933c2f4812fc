"""The report of `opskit doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.render.report import Report
from opskit.render.views.doctor import lines, sentences
from opskit.render.views.doctor.document import DOCUMENT, metrics
from opskit.render.views.doctor.page import page

if TYPE_CHECKING:
    from opskit.render.report import About
    from opskit.render.views.doctor.answer import Answer, Shown


def report(about: About, answer: Answer, shown: Shown) -> Report:
    """The whole answer. It has no findings of its own: the problems are in the page, the lines and the document."""
    return Report(
        about,
        verdict=[sentences.verdict(answer)],
        text=lambda: lines.text(answer, shown),
        document=(DOCUMENT, answer),
        metrics=lambda: metrics(answer),
        page=lambda width, height: page(answer, shown, width, height),
        listed=lambda: lines.listing(answer, shown),
        exit_code=answer.exit_code,
    )
