"""Where a command's report goes: stdout, a terminal or a file; which format; and what goes to stderr instead."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

import click

from opskit import __version__, shell
from opskit.errors import NotSupported, UsageError
from opskit.escape import printable
from opskit.render.report import About

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opskit.host import Host
    from opskit.render.report import Report

SUFFIXES = {
    ".txt": "text",
    ".text": "text",
    ".log": "text",
    ".json": "json",
    ".md": "markdown",
    ".markdown": "markdown",
}
_KNOWN_SUFFIXES = {
    ".speedscope.json": "speedscope",
    **SUFFIXES,
    ".csv": "csv",
    ".svg": "svg",
    ".png": "png",
    ".folded": "folded",
    ".collapsed": "folded",
}
_STDOUT = ("-", "/dev/stdout")  # by its name a redirected stdout would be a file that is replaced
CSV = {".csv": "csv"}  # for the commands that have it
PICTURES = {".svg": "svg", ".png": "png"}


class Output(NamedTuple):
    """The chosen format and place. `path` None is stdout."""

    format: str
    path: str | None
    color: bool
    terminal: bool

    @classmethod
    def choose(
        cls,
        format_: str | None,
        output: str | None,
        no_color: bool = False,
        suffixes: Mapping[str, str] | Sequence[str] = SUFFIXES,
        *,
        needs_plot: bool = True,
        plotted: bool = True,
    ) -> Output:
        """Settle format and place before any work is done. Raises UsageError and CannotWrite.

        `suffixes`: the formats of the command. `plotted`: matplotlib draws svg and png.
        """
        if not isinstance(suffixes, dict):
            suffixes = {suffix: name for suffix, name in _KNOWN_SUFFIXES.items() if name in suffixes}
        path = None if output in (None, *_STDOUT) else output
        terminal = path is None and sys.stdout.isatty()
        if path is not None:
            format_ = format_ or _format_of(path, suffixes)
            from opskit.actions import outfile

            outfile.check(path)
        if needs_plot and plotted and format_ in PICTURES.values():
            _check_can_draw()
        no_color = no_color or bool(click.get_current_context().find_root().params.get("no_color"))
        color = terminal and not no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return cls(format_ or ("table" if terminal else "text"), path, color, terminal)

    @property
    def told_at_the_end(self) -> bool:
        """Whether a watch is told once and whole, and not sample by sample."""
        return self.format == "json" or self.format in PICTURES.values()

    def emit(self, report: Report, *, fit_height: bool = False) -> None:
        """Render and write. Findings and footer go to stderr where the format has no place for them."""
        if report.draw is not None and self.format not in ("table", "text", "json", "markdown", "csv"):
            drawn = report.draw(self.format)
            self.write_bytes(drawn if isinstance(drawn, bytes) else drawn.encode("utf-8", "backslashreplace"))
        elif self.format in PICTURES.values():
            from opskit.render.pictures import plot

            self.write_bytes(plot.draw(report, self.format))
        else:
            self.write(self.render(report, fit_height=fit_height))
        self.say_aside(report)

    def say_aside(self, report: Report) -> None:
        """Say on stderr what the format leaves out: the footer, and the findings where -f text is rows alone."""
        if self.format in ("table", "json", "markdown"):
            return
        lines = list(report.footer)
        if report.findings and (self.format != "text" or report.text is not None):
            from opskit.render.views.findings import finding_lines

            lines = [*finding_lines(report.findings), *lines]
        for line in lines:
            click.echo(printable(line), err=True)

    def render(self, report: Report, *, fit_height: bool = False) -> str:
        """The report in the chosen format."""
        if self.format == "table":
            from opskit.render.formats import table

            if not self.terminal:
                return table.render(report)
            size = os.get_terminal_size(sys.stdout.fileno())
            return table.render(
                report, size.columns or 80, (size.lines or 24) if fit_height else None, color=self.color
            )
        rendered: str = import_module(f"opskit.render.formats.{self.format}").render(report)
        return rendered

    def write(self, content: str) -> None:
        """Write to stdout, or to the file: whole or not at all."""
        self.write_bytes(content.encode("utf-8", "backslashreplace"))

    def write_bytes(self, data: bytes) -> None:
        """Write to stdout, or to the file: whole or not at all."""
        self.write_parts([data])

    def write_parts(self, parts: Iterable[bytes]) -> None:
        """The same for what comes in parts and may be more than memory should hold."""
        if self.path is None:
            sys.stdout.flush()
            sys.stdout.buffer.writelines(parts)
            sys.stdout.buffer.flush()
        else:
            write_file(self.path, parts)

    def repaint(self, content: str) -> None:
        """Put a live table over the last one on the terminal."""
        self.write("\x1b[H\x1b[2J" + content)


def about(host: Host, target: Mapping[str, object] | None = None) -> About:
    """The head of every report."""
    words = [os.path.basename(sys.argv[0]) or "opskit", *sys.argv[1:]]
    command_line = shell.command(*("opskit" if word == "__main__.py" else word for word in words))
    return About(host.name, host.now().strftime("%Y-%m-%dT%H:%M:%SZ"), __version__, command_line, target)


def exit_code(report: Report) -> int:
    """1 where an error or a warning was found, unless the report says otherwise."""
    if report.exit_code is not None or not report.findings:
        return report.exit_code or 0
    from opskit.analysis.finding import is_failure

    return int(is_failure(report.findings))


def progress(line: str) -> None:
    """A line about what is going on: on stderr, and only on a terminal."""
    if sys.stderr.isatty():
        click.echo(printable(line), err=True)


def _check_can_draw() -> None:
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise NotSupported("pictures need matplotlib, which is not installed: pip install 'opskit[plot]'")


def _format_of(path: str, suffixes: Mapping[str, str]) -> str:
    name = os.path.basename(path)
    if name in suffixes.values() or name == "table":
        raise UsageError(f"-o {path}: did you mean -f {name}? (-o takes a file: -o result.{name})")
    suffix = next((known for known in suffixes if name.lower().endswith(known)), None)
    if suffix is not None:
        return suffixes[suffix]
    ending = os.path.splitext(name)[1]
    if ending:
        raise UsageError(
            f"-o {path}: unknown suffix {ending!r}; known are {' '.join(suffixes)}, or say the format with -f"
        )
    return "text"


def make_directory(path: str) -> None:
    """Make the directory of --save where there is none. Raises CannotWrite."""
    from opskit.actions import outfile

    outfile.make_directory(path)


def write_file(path: str, data: bytes | Iterable[bytes]) -> None:
    """Write a file whole or not at all. Raises CannotWrite."""
    from opskit.actions import outfile

    outfile.write_file(path, data)
