"""List the modules that a run of opskit imports."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {
    "rich",
    "psutil",
    "matplotlib",
    "ctypes",
    "json",
    "subprocess",
    "socket",
    "tempfile",
    "asyncio",
}

_RUN = """
import sys
import click
before = set(sys.modules)
from opskit import cli
try:
    cli.run(sys.argv[1:])
finally:
    print("\\n@@", *sorted(set(sys.modules) - before))
"""


def imported(*words: object) -> set[str]:
    """The modules that a command line imports, without those of click."""
    done = subprocess.run([sys.executable, "-c", _RUN, *map(str, words)], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("@@")[2].split())
