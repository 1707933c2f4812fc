"""Captured trees, and their outputs without what differs between runs."""

from __future__ import annotations

import re
from typing import NamedTuple


class Link(NamedTuple):
    """A symbolic link in a captured tree."""

    target: str


def steady(out):
    """Replace the time, the version and the path of the tree, which differ between runs."""
    out = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "2026-01-02T03:04:05Z", out)
    out = re.sub(r"opskit \d+\.\d+\.\d+", "opskit VERSION", out)
    out = re.sub(r'"version": "[^"]*"', '"version": "VERSION"', out)
    return re.sub(r"(--root |--proc )\S+?(?=[ \"`]|$)", r"\1DIR", out, flags=re.MULTILINE)
