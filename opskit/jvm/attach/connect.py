"""The client of a JVM: of one that runs here, or of one in a capture, whose replies were recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.jvm.attach.client import AttachClient
from opskit.jvm.attach.target import DEFAULT_TIMEOUT_S

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS


def client_of(fs: ProcFS, pid: int, timeout_s: float = DEFAULT_TIMEOUT_S, *, may_start: bool = True) -> AttachClient:
    """As AttachClient, for any tree: nothing is ever sent to a JVM in a capture's stead."""
    if fs.replies is None:
        return AttachClient(fs, pid, timeout_s, may_start=may_start)
    from opskit.jvm.attach.recorded import RecordedClient

    return RecordedClient(fs, fs.replies, pid, timeout_s, may_start=may_start)
