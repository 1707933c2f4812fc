"""Core files: made up with the notes of a small process, and real ones."""

from __future__ import annotations

import contextlib
import signal
import struct
import subprocess
from pathlib import Path

import pytest


def core_bytes(pid: int) -> bytes:
    """A core file that has nothing but the notes of one thread of a process."""
    notes = _note(1, bytes(336)) + _note(3, bytes(24) + struct.pack("<i", pid) + bytes(108))
    head = bytearray(64)
    head[:8] = b"\x7fELF\x02\x01\x01\0"
    struct.pack_into("<HH", head, 16, 4, 62)  # ET_CORE, EM_X86_64
    struct.pack_into("<Q", head, 32, 64)
    struct.pack_into("<HH", head, 54, 56, 1)
    return bytes(head) + struct.pack("<IIQQQQQQ", 4, 0, 64 + 56, 0, 0, len(notes), 0, 4) + notes


def _note(kind: int, content: bytes) -> bytes:
    return struct.pack("<III", 5, len(content), kind) + b"CORE\0\0\0\0" + content


@contextlib.contextmanager
def real_core(cwd: Path):
    """A core file that the kernel has written of a process that was killed here: (its PID, the file). Or skip."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern.startswith(("|", "/")):
        pytest.skip(f"core files go to {pattern}")
    process = subprocess.Popen(["prlimit", "--core=unlimited", "--", "sleep", "60"], cwd=cwd)
    while "sleep" not in Path(f"/proc/{process.pid}/comm").read_text():
        assert process.poll() is None
    process.send_signal(signal.SIGSEGV)
    process.wait()
    files = list(cwd.glob("core*"))
    if not files:
        pytest.skip("no core file was written")
    yield process.pid, files[0]
