"""A line on a terminal's stderr while a long run goes on: what is done, and the seconds left. It is erased before the result."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from types import TracebackType

    from opskit.host import Host

_LONG_S = 2.0  # shorter runs show nothing


class Progress:
    """Counts down while the host sleeps, in a `with` block."""

    def __init__(
        self, host: Host, on_interrupt: str = "Ctrl-C prints what there is so far", *, long_s: float = _LONG_S
    ) -> None:
        """`on_interrupt`: what Ctrl-C does. `long_s`: shorter runs show nothing."""
        self._on_interrupt, self._long_s = on_interrupt, long_s
        self._host, self._sleep = host, host.sleep
        self._begun_s = host.monotonic()
        self._what, self._ends_s = "", 0.0
        self._is_shown = False

    def __enter__(self) -> Progress:  # noqa: PYI034  (Self is newer than Python 3.9)
        self._begun_s = self._host.monotonic()
        if sys.stderr.isatty():
            self._host.sleep = self._sleep_and_count
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._host.sleep = self._sleep
        if self._is_shown:
            self._write("")

    def expect(self, what: str, left_s: float) -> None:
        """Show what is being done, and how long the whole run still takes."""
        self._what, self._ends_s = what, self._host.monotonic() + left_s
        if sys.stderr.isatty() and (self._is_shown or left_s > self._long_s):
            self._show()

    def sampled(self, number: int, samples: int, interval_s: float) -> None:
        """Show that so many samples are taken. Samples that take long make the run longer than their planned interval."""
        each_s = max(interval_s, (self._host.monotonic() - self._begun_s) / max(number - 1, 1))
        self.expect(f"sample {number} of {samples}", (samples - number) * each_s)

    def _sleep_and_count(self, seconds: float) -> None:
        until_s = self._host.monotonic() + seconds
        while (left_s := until_s - self._host.monotonic()) > 0:
            if self._is_shown:
                self._show()
            self._sleep(min(left_s, 1.0))

    def _show(self) -> None:
        self._is_shown = True
        left_s = max(round(self._ends_s - self._host.monotonic()), 0)
        self._write(f"{self._what}; {left_s:,} s left; {self._on_interrupt}")

    def say(self, line: str) -> None:
        """Show a line without an end that is known."""
        if sys.stderr.isatty():
            self._is_shown = True
            self._write(f"{line}; {self._on_interrupt}")

    def _write(self, line: str) -> None:
        width = os.get_terminal_size(sys.stderr.fileno()).columns or 80  # a line that wraps could not be erased
        click.echo(f"\r\x1b[K{line[: width - 1]}", err=True, nl=False)
