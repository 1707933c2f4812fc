"""The output of a report: stdout, a terminal or a file, and what goes to stderr."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

from opskit.commands.shared.formats import PICTURES, check_can_draw, format_of
from opskit.commands.shared.unseen import Unseen
from opskit.escape import printable
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opskit.analysis.finding import Finding
    from opskit.render.report import Report

_STDOUT = ("-", "/dev/stdout")  # by its name a redirected stdout would be a file that is replaced


class Output(NamedTuple):
    """The chosen format and place. `path` None is stdout."""

    format: str
    path: str | None
    color: bool
    terminal: bool
    findings: list[Finding] | None = None  # nothing is shown, and what was found is kept here

    @classmethod
    def choose(
        cls, format_: str | None, output: str | None, no_color: bool, formats: Sequence[str], *, plotted: bool = True,
        unsuffixed: str = "text",
    ) -> Output:  # fmt: skip
        """Settle format and place before any work is done. Raises UsageError and CannotWrite."""
        given = click.get_current_context().find_root().obj
        if isinstance(given, Unseen):
            return cls(format_ or "text", None, color=False, terminal=False, findings=given.findings)
        path = None if output in (None, *_STDOUT) else output
        terminal = path is None and sys.stdout.isatty()
        if path is not None:
            format_ = format_ or format_of(path, formats, unsuffixed)
            from opskit.actions import outfile

            outfile.check(path)
        if plotted and format_ in PICTURES:
            check_can_draw()
        no_color = no_color or bool(click.get_current_context().find_root().params.get("no_color"))
        color = terminal and not no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return cls(format_ or ("table" if terminal else "text"), path, color, terminal)

    @property
    def is_screen(self) -> bool:
        """Whether it is a table on a terminal."""
        return self.format == "table" and self.terminal

    @property
    def written_at_the_end(self) -> bool:
        """Whether a watch is written once at the end, and not sample by sample."""
        return self.format not in ("table", "text", "markdown")

    def emit(self, report: Report, *, fit_height: bool = False) -> None:
        """Render and write. Findings and footer go to stderr where the format has no place for them."""
        if self.findings is not None:
            self.findings.extend(report.findings)
            return
        if report.draw is not None and self.written_at_the_end and self.format not in ("csv", "json", "prometheus"):
            drawn = report.draw(self.format)
            self.write(drawn) if isinstance(drawn, str) else self.write_parts([drawn])
        elif self.format in PICTURES:
            self.write_parts([import_module("opskit.render.pictures.plot").draw(report, self.format)])
        elif self.format in ("text", "csv"):  # which may have very many rows
            lines = import_module(f"opskit.render.formats.{self.format}").lines(report)
            self.write_parts(line.encode("utf-8", "backslashreplace") for line in lines)
        else:
            self.write(self.render(report, fit_height=fit_height))
        self.say_aside(report)

    def say_aside(self, report: Report) -> None:
        """Write to stderr what the format leaves out: the footer, and the findings where -f text is rows alone."""
        if self.findings is not None or self.format in ("table", "json", "markdown"):
            return
        lines = list(report.footer)
        if report.findings and (self.format != "text" or report.text is not None):
            from opskit.render.views.findings import finding_lines

            lines = [*finding_lines(report.findings), *lines]
        for line in lines:
            click.echo(printable(line), err=True)

    def render(self, report: Report, *, fit_height: bool = False, screen: bool = False) -> str:
        """The report in the chosen format; for a `screen` that is redrawn no more than fits on the terminal."""
        if self.format == "table":
            form = import_module(f"opskit.render.formats.{'table' if report.page is None else 'page'}")
            if not self.terminal:
                return str(form.render(report))
            size = os.get_terminal_size(sys.stdout.fileno())
            height = (size.lines or 24) if fit_height or screen else None
            return str(form.render(report, size.columns or 80, height, color=self.color, screen=screen))
        return str(import_module(f"opskit.render.formats.{self.format}").render(report))

    def write(self, content: str) -> None:
        """Write to stdout, or to the file: whole or not at all."""
        self.write_parts([content.encode("utf-8", "backslashreplace")])

    def write_parts(self, parts: Iterable[bytes]) -> None:
        """The same for what comes in parts and may be more than memory should hold."""
        if self.findings is not None:
            return
        if self.path is None:
            sys.stdout.flush()
            sys.stdout.buffer.writelines(parts)
            sys.stdout.buffer.flush()
        else:
            from opskit.actions import outfile

            outfile.write_file(self.path, parts)

    def repaint(self, content: str) -> None:
        """Put a live table over the last one on the terminal."""
        self.write(("\n" if os.environ.get("TERM") == "dumb" else "\x1b[H\x1b[2J") + content)


def exit_code(report: Report) -> int:
    """1 if an error or a warning was found, unless the report has a code of its own."""
    if report.exit_code is not None or not report.findings:
        return report.exit_code or 0
    from opskit.analysis.finding import is_failure

    return int(is_failure(report.findings))


def progress(line: str) -> None:
    """Write a line about the progress to stderr, if that is a terminal."""
    if sys.stderr.isatty():
        click.echo(printable(line), err=True)
