"""Stage reads that hang, and run a program beside them: `unshare -m python hungreads.py DIRECTORY CODE`. Needs root.

DIRECTORY gets a file system whose server does not answer. The memory of one process is locked, as by a page fault on a dead
network mount: a reader of /proc/PID/mem waits for a page of that file system and holds the lock, a thread of the process waits to
change its mappings, and each later reader waits behind it: `ps`, `top`, who reads /proc/PID/cmdline.
The program finds the directory in sys.argv[1] and the PID in sys.argv[2]. All ends with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from silentfuse import SilentFuse

if TYPE_CHECKING:
    from collections.abc import Callable

_LOCKED = """
import mmap, sys, threading, time
held = mmap.mmap(int(sys.argv[1]), 1 << 20, mmap.MAP_SHARED, mmap.PROT_READ)
with open("/proc/self/maps") as maps:
    print(next(line for line in maps if line.endswith("/data\\n")).split("-")[0], flush=True)
def change():
    sys.stdin.readline()
    mmap.mmap(-1, 1 << 20)
threading.Thread(target=change, daemon=True).start()
time.sleep(600)
"""
_READER = "import os, sys; os.pread(os.open(f'/proc/{sys.argv[1]}/mem', os.O_RDONLY), 1, int(sys.argv[2], 16))"


def _wait_until(is_so: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 20
    while not is_so():
        if time.monotonic() > until_s:
            sys.exit("the stage does not come about")
        time.sleep(0.01)


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def main(directory: str, code: str) -> None:
    """Stage, run, and end all."""
    fuse = SilentFuse(directory)
    data = os.open(f"{directory}/data", os.O_RDWR)
    os.close(os.dup(data))  # the kernel learns that there is no flush()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "pass_fds": [data]}
    locked = subprocess.Popen([sys.executable, "-c", _LOCKED, str(data)], text=True, **pipes)
    address = locked.stdout.readline().strip()
    fuse.silent.set()
    reader = subprocess.Popen([sys.executable, "-c", _READER, str(locked.pid), address])
    _wait_until(lambda: "request_wait" in _text(f"/proc/{reader.pid}/wchan"))
    locked.stdin.write("\n")
    locked.stdin.flush()
    tasks = f"/proc/{locked.pid}/task"
    _wait_until(
        lambda: any(_text(f"{tasks}/{tid}/stat").rpartition(")")[2].split()[0] == "D" for tid in os.listdir(tasks))
    )
    try:
        subprocess.run([sys.executable, "-c", code, directory, str(locked.pid)], check=False, timeout=60)
    finally:
        reader.kill()
        locked.kill()
        os._exit(0)  # the kernel ends what waits for the server


if __name__ == "__main__":
    main(*sys.argv[1:])
