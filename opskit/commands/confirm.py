"""Nothing changes the machine without being asked to: --yes, or a typed yes on a terminal."""

from __future__ import annotations

import sys

import click


def agreed(yes: bool, question: str) -> bool:
    """Whether to go ahead. Without --yes and without a terminal on both sides: no, and nothing is asked.

    The caller prints what would be done before, and "Nothing was changed; add --yes" after a no.
    """
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    try:
        answer = click.prompt(f"{question} Type yes to go on", default="no", err=True, show_default=False)
    except click.Abort:  # end of input; Ctrl-C at a prompt is a no as well
        return False
    return str(answer).strip().lower() == "yes"
