"""Cgroups of real processes, of either version."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest


@contextlib.contextmanager
def new_cgroup(controller, name, needs="cgroup.procs"):
    """A cgroup of a controller with this name, in which the file `needs` exists; removed when its processes have ended. Or skip."""
    for top in (Path("/sys/fs/cgroup") / controller, Path("/sys/fs/cgroup")):
        place = top / name
        try:
            place.mkdir()
        except OSError:
            continue
        try:
            if any((place / each).exists() for each in needs.split()):
                yield place
                return
        finally:
            _remove(place)
    pytest.skip(f"needs a cgroup of {controller}")


@contextlib.contextmanager
def frozen(pid):
    """A process frozen in a cgroup of its own while the block runs. Or skip."""
    with new_cgroup("freezer", f"opskit-test-{pid}", "freezer.state cgroup.freeze") as place:
        old = (place / "freezer.state").exists()
        switch, on, off = (place / "freezer.state", "FROZEN", "THAWED") if old else (place / "cgroup.freeze", "1", "0")
        state, reached = (switch, "FROZEN") if old else (place / "cgroup.events", "frozen 1")
        try:
            (place / "cgroup.procs").write_text(str(pid))
            switch.write_text(on)
            while reached not in state.read_text():
                time.sleep(0.01)
            yield
        finally:
            switch.write_text(off)
            (place.parent / "cgroup.procs").write_text(str(pid))


def _remove(place):
    deadline = time.monotonic() + 30
    while place.exists() and time.monotonic() < deadline:
        try:
            place.rmdir()
        except OSError:
            time.sleep(0.05)
