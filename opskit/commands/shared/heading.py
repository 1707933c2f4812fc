"""The head of every report: the machine, the time, the command line."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from opskit import __version__, shell
from opskit.commands.shared.machine import without_capture
from opskit.render.report import About

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.host import Host


def about(host: Host, target: Mapping[str, object] | None = None) -> About:
    """The head of every report."""
    name = os.path.basename(sys.argv[0]) or "opskit"
    words: Sequence[str] = sys.argv[1:]
    if host.is_recorded:  # a report is the same as on the machine itself
        words = without_capture(words)
    command_line = shell.command("opskit" if name == "__main__.py" else name, *map(_without_password, words))
    return About(host.name, host.now().strftime("%Y-%m-%dT%H:%M:%SZ"), __version__, command_line, target)


def _without_password(word: str) -> str:
    """A word of the command line; of a URL without the password."""
    if "://" not in word:
        return word
    from opskit.redact import redact_text

    return redact_text(word)
