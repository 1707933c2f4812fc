"""What tests of several commands need of this machine."""

from __future__ import annotations

import os
import subprocess

import pytest


@pytest.fixture(scope="session")
def machine_root(initial_pid_namespace):
    """Skip unless we are root of the machine itself, not of a container."""
    if os.geteuid() != 0 or not os.access("/proc/sys/vm/drop_caches", os.W_OK):
        pytest.skip("needs root of the machine itself, not of a container")


@pytest.fixture
def disk(tmp_path):
    """A directory on a file system that keeps negative dentries."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", tmp_path], capture_output=True, text=True, check=True).stdout
    if kind.strip() in ("tmpfs", "ramfs"):
        pytest.skip("needs a directory on disk: tmpfs keeps no negative dentries (set TMPDIR)")
    return tmp_path
