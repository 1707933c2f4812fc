"""A process in a mount namespace of its own: what it mounts, only it sees."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager

import pytest


@contextmanager
def own_mounts(script):
    """The PID of a shell's successor that ran these commands in its own mount namespace; it ends with the block. Or skip."""
    process = subprocess.Popen(
        ["unshare", "-m", "sh", "-ec", f"{script}\necho ready\nexec sleep 60"], stdout=subprocess.PIPE, text=True
    )
    try:
        if process.stdout.readline() != "ready\n":
            pytest.skip("cannot make a mount namespace")
        yield process.pid
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
