"""What a command does to the machine that it runs on: files it opens, sockets, processes, signals, by an audit hook."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager

# Events of what acts on the machine, or asks it something other than a file.
ACTS = (
    *("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.__new__", "ctypes.dlsym"),
    *("os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.system", "subprocess.Popen", "os.kill", "os.killpg", "signal.pthread_kill"),
    *("os.remove", "os.rename", "os.mkdir", "os.chmod", "os.chown", "os.link", "os.symlink", "os.truncate", "pty.spawn", "syslog.syslog"),
)  # fmt: skip
# By ctypes: names that are looked up without a call of the kernel for another process.
_HARMLESS = ("syscall", "PyObject", "Py")
_KERNEL = ("/proc", "/sys", "/dev", "/run")
_listeners: list[list[tuple[str, object]]] = []
_is_hooked = False


def _hear(event, arguments):
    if not _listeners:
        return
    if event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], (str, bytes)):
        path = os.fsdecode(arguments[0])
        if path.startswith(_KERNEL):
            _listeners[-1].append((event, path))
    elif event in ACTS and not (event == "ctypes.dlsym" and str(arguments[1]).startswith(_HARMLESS)):
        _listeners[-1].append((event, arguments))


@contextmanager
def heard():
    """A list of what was done: (event, path or arguments), of files only those of the kernel (/proc, /sys, /dev, /run)."""
    global _is_hooked  # noqa: PLW0603  (a hook stays for good)
    if not _is_hooked:
        sys.addaudithook(_hear)
        _is_hooked = True
    done: list[tuple[str, object]] = []
    _listeners.append(done)
    try:
        yield done
    finally:
        _listeners.remove(done)
