"""Which format a command writes: -f, or the suffix of -o."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from opskit.errors import NotSupported, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

PICTURES = ("svg", "png")
SUFFIXES = {
    ".speedscope.json": "speedscope",
    ".txt": "text",
    ".text": "text",
    ".log": "text",
    ".json": "json",
    ".md": "markdown",
    ".markdown": "markdown",
    ".csv": "csv",
    ".prom": "prometheus",
    ".hgrm": "hgrm",
    ".svg": "svg",
    ".png": "png",
    ".folded": "folded",
    ".collapsed": "folded",
}


def format_of(path: str, formats: Sequence[str], unsuffixed: str = "text") -> str:
    """The format that a file's suffix stands for, of those that the command has; `unsuffixed` without one. Raises UsageError."""
    name = os.path.basename(path)
    if name in formats:
        raise UsageError(f"-o {path}: did you mean -f {name}? (-o takes a file: -o result.{name})")
    known = {suffix: named for suffix, named in SUFFIXES.items() if named in formats}
    for suffix, named in known.items():
        if name.lower().endswith(suffix):
            return named
    ending = os.path.splitext(name)[1]
    if ending:
        listed = " ".join(known)
        raise UsageError(f"-o {path}: unknown suffix {ending!r}; known are {listed}, or name the format with -f")
    return unsuffixed


def check_can_draw() -> None:
    """Raise NotSupported without matplotlib."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise NotSupported("pictures need matplotlib, which is not installed: pip install 'opskit[plot]'")
