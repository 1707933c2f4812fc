"""The memory of another process: /proc/PID/mem (proc_pid_mem(5)). Needs ptrace rights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.fs import optional

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS

_ADDRESSES = 1 << 63  # pread(2) takes a signed offset


def read_memory(fs: ProcFS, pid: int, address: int, size: int) -> bytes:
    """So many bytes, fewer before a hole; none where nothing is mapped, the process has ended, or rights are missing."""
    if not 0 < address < _ADDRESSES - size:
        return b""
    found: bytes = optional(fs.read_at, fs.path(pid, "mem"), address, size, default=b"")
    return found
