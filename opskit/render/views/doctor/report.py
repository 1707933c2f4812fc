"""The report of `opskit doctor`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from opskit.render.report import Report
from opskit.render.views.doctor import sentences

if TYPE_CHECKING:
    from opskit.render.report import About
    from opskit.render.views.doctor.answer import Answer, Shown

_MODULES = {"table": "page", "text": "lines", "markdown": "lines", "json": "document", "prometheus": "document"}


def module_of(format_: str) -> str:
    """The module that makes this format of the answer."""
    return f"opskit.render.views.doctor.{_MODULES[format_]}"


def _made(format_: str, name: str, *arguments: object) -> Any:
    return getattr(import_module(module_of(format_)), name)(*arguments)


def report(about: About, answer: Answer, shown: Shown, *, format_: str = "json") -> Report:
    """The whole answer; the JSON object only for its format. It has no findings of its own: the problems are in the page and the lines."""
    return Report(
        about,
        verdict=[sentences.verdict(answer)],
        text=lambda: _made("text", "text", answer, shown),
        document=(import_module(module_of("json")).DOCUMENT, answer) if format_ == "json" else None,
        metrics=lambda: _made("prometheus", "metrics", answer),
        page=lambda width, height: _made("table", "page", answer, shown, width, height),
        listed=lambda: _made("markdown", "listing", answer, shown),
        exit_code=answer.exit_code,
    )
