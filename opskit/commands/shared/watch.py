"""-w: the same report again and again on a fixed schedule, until the count is reached or Ctrl-C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.errors import NoSuchProcess
from opskit.escape import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.commands.shared.output import Output
    from opskit.host import Host
    from opskit.render.report import Report

DEFAULT_INTERVAL_S = 2.0


def schedule(host: Host, interval_s: float, count: int | None) -> Iterator[tuple[int, float]]:
    """Wait for each sample of a fixed schedule (start + n x interval); gives (number from 1, seconds it came late).

    A late sample is late, it does not shift those after it; slots that have passed altogether are skipped.
    """
    start = host.monotonic()
    number = slot = 0
    while count is None or number < count:
        late = host.monotonic() - (start + slot * interval_s)
        if late < 0:
            host.sleep(-late)
            late = 0.0
        number += 1
        yield number, late
        slot = max(slot + 1, int((host.monotonic() - start) // interval_s))


def run_watch(
    host: Host,
    out: Output,
    interval_s: float | None,
    count: int | None,
    take: Callable[[], Report],
    *,
    fit_height: bool,
) -> int:
    """Show each report as it comes: a live table on a terminal, a block a sample otherwise.

    JSON is one object and a picture one picture, told at the end by the last report, which knows all samples; a file is
    written at the end too.
    Exit code: 0; 130 after Ctrl-C, with what was gathered shown. A target that ends ends the watch.
    """
    screen = _Screen(out, fit_height)
    code = 0
    late_samples = 0
    try:
        for _, late in schedule(host, interval_s or DEFAULT_INTERVAL_S, count):
            late_samples += late > 0.5 * (interval_s or DEFAULT_INTERVAL_S)
            screen.show(take())
    except KeyboardInterrupt:
        code = 130
    except NoSuchProcess as ended:
        if screen.last is None:
            raise
        click.echo(printable(f"opskit: {ended}"), err=True)
    screen.finish()
    if late_samples:
        click.echo(
            f"{late_samples} samples came late: a look takes longer than the interval; give a longer -i", err=True
        )
    return code


class _Screen:
    def __init__(self, out: Output, fit_height: bool) -> None:
        self.out, self.fit_height = out, fit_height
        self.last: Report | None = None
        self.blocks: list[str] = []
        self.said: Sequence[str] = ()

    def show(self, report: Report) -> None:
        first, self.last = self.last is None, report
        if self.out.told_at_the_end:
            return
        block = self.out.render(report, fit_height=self.fit_height)
        if self.out.format == "table" and self.out.terminal:
            self.out.repaint(block)
        elif self.out.path is None:
            self.out.write(block if first else "\n" + block)
        else:
            self.blocks.append(block)
        if self.out.format == "text" and report.footer != self.said:
            self.said = report.footer
            for line in report.footer:
                click.echo(printable(line), err=True)

    def finish(self) -> None:
        if self.last is not None and self.out.told_at_the_end:
            self.out.emit(self.last)
        elif self.out.path is not None and self.blocks:
            self.out.write("\n".join(self.blocks))
