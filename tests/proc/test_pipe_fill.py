"""What is queued in pipes."""

from __future__ import annotations

import subprocess

from opskit.proc.fs import ProcFS
from opskit.proc.pipe_fill import read_fills
from opskit.proc.pipe_scan import PipeScanner

SWAP = """
import os
reading, writing = os.pipe()
os.write(writing, b"x" * 100)
print(os.readlink(f"/proc/self/fd/{reading}"))
input()
other = os.pipe()
os.dup2(other[0], reading), os.dup2(other[1], writing)
print("swapped")
input()
"""


def test_an_fd_that_is_another_pipe_since_the_scan(spawn):
    """Its fill is unknown, not that of the other pipe."""
    process = spawn(SWAP, stdin=subprocess.PIPE)
    key = process.line.encode()
    holders = PipeScanner(ProcFS(), ends=True).scan([process.pid]).holders
    fill = read_fills(ProcFS(), holders)[key]
    assert (fill.queued_bytes, fill.reason) == (100, None)
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "swapped\n"
    fill = read_fills(ProcFS(), holders)[key]
    assert (fill.queued_bytes, fill.reason) == (None, f"{process.pid} has closed it")
