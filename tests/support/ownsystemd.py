"""A systemd of its own as PID 1 of a PID namespace, with units of the test and a cgroup2 tree of its own; /proc/sys is read-only there."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

SYSTEMD = next((path for path in ("/lib/systemd/systemd", "/usr/lib/systemd/systemd") if os.path.exists(path)), None)
_SCRIPT = """
mount --bind /proc/sys /proc/sys
mount -o remount,ro,bind /proc/sys
mount -t tmpfs run /run
mkdir -p /run/systemd/system
mount -t cgroup2 cgroup2 /sys/fs/cgroup
exec env container=opskit-test SYSTEMD_UNIT_PATH="$0" "$1" --system --unit=stage.target
"""
_NAMESPACES = ("--mount", "--pid", "--ipc", "--uts", "--net", "--cgroup")
_UNIT = "[Unit]\nDescription={0}\nDefaultDependencies=no\n{1}\n"
START_S = 30


@contextlib.contextmanager
def own_systemd(**units):
    """The command line that enters it; `units`: name of a service -> the lines of its section [Service]. Or skip."""
    if SYSTEMD is None or shutil.which("systemctl") is None or os.geteuid() != 0:
        pytest.skip("needs systemd and root")
    top = next(
        (
            each
            for each in (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
            if (each / "cgroup.controllers").exists()
        ),
        None,
    )
    if top is None:
        pytest.skip("needs cgroup2")
    group = top / f"opskit-test-systemd-{os.getpid()}"
    place = Path(tempfile.mkdtemp(prefix="opskit-test-systemd-"))
    process = None
    try:
        group.mkdir()
        wants = " ".join(f"{name}.service" for name in units)
        (place / "stage.target").write_text(_UNIT.format("Stage", f"Wants={wants}"))
        for name, lines in units.items():
            (place / f"{name}.service").write_text(_UNIT.format(name, f"[Service]\n{lines}"))
        process = _start(group, place)
        yield _entry(process, len(units))
    finally:
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(place)
        deadline = time.monotonic() + START_S
        for each in sorted(group.rglob("*/"), reverse=True):
            _remove(each, deadline)
        _remove(group, deadline)


def _start(group, place):
    enter = f"echo 0 > {group}/cgroup.procs && exec " + " ".join(
        ["unshare", *_NAMESPACES, "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
    )
    command = ["sh", "-ec", enter + ' sh -ec "$0" "$@"', _SCRIPT, str(place), SYSTEMD]
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _entry(process, units):
    """Wait until systemd has done its work."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        entry = ("nsenter", "-t", children[0] if children else "0", "-m", "-p", "-i", "-u", "-n", "-C", "--")
        if children and Path(f"/proc/{children[0]}/comm").read_text() == "systemd\n":
            asked = subprocess.run(
                [*entry, "systemctl", "is-system-running"], capture_output=True, text=True, check=False
            )
            if asked.stdout.strip() in ("running", "degraded"):
                return entry
        time.sleep(0.05)
    return pytest.skip("systemd does not start here")


def _remove(group, deadline):
    while group.exists() and time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.02)
