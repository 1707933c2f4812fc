"""A block device as slow as a test needs it: a loop device over a file of silentfuse.py, and a process that reads and writes it.

with slow_disk(delay_s=0.15) as (name, pid): ...
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import struct
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE, FAR = 4096, 1 << 20
_CONFIGURE, _GET_FREE, _AUTOCLEAR = 0x4C0A, 0x4C82, 4  # loop(4)
_CLONE_NEWNS, _PRIVATE, _DETACH = 0x20000, 0x44000, 2
_TRIES = 20


@contextlib.contextmanager
def slow_disk(delay_s: float, pace_s: float = 0.0) -> Iterator[tuple[str, int]]:
    """The name of the device, and the PID of a process that reads a page of it and writes the next one, in turn, each `pace_s`.

    `delay_s`: what the device needs for each. Skips where it cannot be made.
    """
    if os.geteuid():
        pytest.skip("needs root")
    with tempfile.TemporaryDirectory(prefix="opskit-disk-") as there:
        command = [sys.executable, __file__, there, str(delay_s), str(pace_s)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            words = process.stdout.readline().split()
            if not words:
                pytest.skip("cannot make a loop device over a FUSE file")
            yield words[0], int(words[1])
        finally:
            process.communicate("\n", timeout=60)


def _stage(there: str, delay_s: float, pace_s: float) -> None:
    from silentfuse import SilentFuse

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "unshare")
    libc.mount(b"none", b"/", None, ctypes.c_ulong(_PRIVATE), None)
    server = SilentFuse(there)
    device, held = _attach(f"{there}/data")
    user = subprocess.Popen([sys.executable, __file__, device, str(pace_s)], stdout=subprocess.PIPE)
    try:
        assert user.stdout is not None
        user.stdout.readline()
        server.delay_s = delay_s
        print(device.removeprefix("/dev/"), user.pid, flush=True)
        sys.stdin.readline()
    finally:
        user.kill()
        server.hurry.set()
        user.wait()
        os.close(held)
        libc.umount2(os.fsencode(there), _DETACH)


def _attach(path: str) -> tuple[str, int]:
    """A loop device over a file, and an fd of it: it is freed when nobody has it open any more."""
    file = os.open(path, os.O_RDWR)
    control = os.open("/dev/loop-control", os.O_RDWR)
    # fd, block size, struct loop_info64 with its flags, reserved.
    config = struct.pack("=II52xI176x64x", file, 0, _AUTOCLEAR)
    try:
        for _ in range(_TRIES):
            device = f"/dev/loop{fcntl.ioctl(control, _GET_FREE)}"
            held = os.open(device, os.O_RDWR)
            try:
                fcntl.ioctl(held, _CONFIGURE, config)
            except OSError as error:  # another one took it
                os.close(held)
                if error.errno != errno.EBUSY:
                    raise
            else:
                return device, held
    finally:
        os.close(control)
        os.close(file)
    raise OSError(errno.EBUSY, "loop devices")


def _use(device: str, pace_s: float) -> None:
    """Past the page cache, at places that are far from each other."""
    fd, memory = os.open(device, os.O_RDWR | os.O_DIRECT), mmap.mmap(-1, PAGE)
    os.preadv(fd, [memory], 0)
    print(flush=True)
    due_s, at = time.monotonic(), 0
    while True:
        at += 1
        (os.pwritev if at % 2 else os.preadv)(fd, [memory], at % 1000 * FAR)
        due_s += pace_s
        time.sleep(max(0.0, due_s - time.monotonic()))


if __name__ == "__main__":
    if len(sys.argv) > 3:
        _stage(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
    else:
        _use(sys.argv[1], float(sys.argv[2]))
