"""-w: the same report again and again on a fixed schedule, until the count is reached or Ctrl-C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.collect.schedule import schedule, schedule_of_capture
from opskit.commands.shared.output import exit_code
from opskit.errors import NoMoreSamples, NoSuchProcess
from opskit.escape import printable
from opskit.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opskit.commands.shared.output import Output
    from opskit.commands.shared.run import Run
    from opskit.render.report import Report

INTERRUPTED = 130


def run_watch(
    run: Run, take: Callable[[], Report], *, fit_height: bool, sleep: Callable[[float], None] | None = None
) -> int:
    """Show each report as it comes: one live screen on a terminal, a block a sample otherwise, until its target ends.

    Files, JSON and pictures are written at the end. The exit code is the last report's; 130 after Ctrl-C.
    `sleep`: waits between the samples.
    """
    screen = _Screen(run.out, fit_height)
    interrupted = False
    late_samples = 0
    try:
        for _, late in _schedule(run, sleep):
            late_samples += late > 0.5 * run.interval_s
            screen.show(take())
    except KeyboardInterrupt:
        interrupted = True
    except NoMoreSamples:
        if screen.last is None:
            raise
    except NoSuchProcess as ended:
        if screen.last is None:
            raise
        click.echo(printable(f"opskit: {ended}"), err=True)
    screen.finish()
    if late_samples:
        late_ones = plural(late_samples, "sample")
        click.echo(f"{late_ones} came late: a look takes longer than the interval; give a longer -i", err=True)
    return INTERRUPTED if interrupted else exit_code(screen.last) if screen.last is not None else 0


def _schedule(run: Run, sleep: Callable[[float], None] | None) -> Iterator[tuple[int, float]]:
    if run.host.is_recorded and run.interval_s:  # otherwise the look waits itself
        return schedule_of_capture(run.host, run.interval_s if run.has_interval else 0.0, run.count, sleep)
    return schedule(run.host, run.interval_s, run.count, sleep)


class _Screen:
    def __init__(self, out: Output, fit_height: bool) -> None:
        self.out, self.fit_height = out, fit_height
        self.last: Report | None = None
        self.blocks: list[str] = []
        self.said: tuple[object, ...] = ()

    def show(self, report: Report) -> None:
        first, self.last = self.last is None, report
        if self.out.written_at_the_end:
            return
        block = self.out.render(report, fit_height=self.fit_height, screen=self.out.is_screen)
        if self.out.is_screen:
            self.out.repaint(block)
        elif not block:
            pass  # text that lists changes alone, and nothing has changed
        elif self.out.path is None:
            lists_changes = self.out.format == "text" and report.page is not None
            self.out.write(block if first or lists_changes else "\n" + block)
        else:
            self.blocks.append(block)
        aside = (*report.footer, *report.findings)
        if self.out.format == "text" and aside != self.said:
            self.said = aside
            self.out.say_aside(report)

    def finish(self) -> None:
        if self.last is not None and self.out.written_at_the_end:
            self.out.emit(self.last)
        elif self.out.path is not None and self.blocks:
            self.out.write("\n".join(self.blocks))
