"""The agreement to change the machine: --yes, or a typed yes on a terminal."""

from __future__ import annotations

import select
import sys

import click

_SIGNALS_EVERY_S = 0.2


def agreed(yes: bool, question: str) -> bool:
    """Whether to go ahead. Without --yes and without a terminal on both sides: no, and nothing is asked."""
    if yes:
        return True
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):  # a closed stdin is None
        return False
    click.echo(f"{question} Type yes to go on: ", nl=False, err=True)
    try:
        return _typed_line().strip().lower() == "yes"
    except KeyboardInterrupt:  # Ctrl-C at a question is a no as well
        click.echo(err=True)
        return False


def _typed_line() -> str:
    """What is typed; empty at the end of input. A Ctrl-C just before the read() would go unseen until the next key."""
    while not select.select([sys.stdin], [], [], _SIGNALS_EVERY_S)[0]:
        continue
    return sys.stdin.readline()
