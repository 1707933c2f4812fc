"""The type of --since and --until: a date, or a time since the start of what is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.analysis.moments import moment_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.analysis.moments import Moment


def moment(elapsed: str) -> Callable[[str], Moment]:
    """A parser of such values; `elapsed` names what a duration counts from, for its message."""

    def parse(text: str) -> Moment:
        if found := moment_of(text):
            return found
        dates = "write a date as in the log (2026-01-31T10:05, 2026-01-31T10:05:30+0100)"
        raise click.BadParameter(f"{text!r} is not a time; {dates} or {elapsed} (90s, 5m, 2h)")

    return parse
