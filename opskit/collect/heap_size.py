"""How much a walk of a JVM's heap has to read, at most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.jvm.perfdata.counters import heap
from opskit.proc.files.status import parse_status
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.host import Host
    from opskit.jvm.perfdata.hsperfdata import PerfData


class HeapSize(NamedTuple):
    """`bytes`: the used heap, or the process's resident memory where that is unknown (`what` says which); None: neither is known."""

    bytes: int | None
    what: str


def heap_size(host: Host, pid: int, perf: PerfData | None) -> HeapSize:
    """The used heap by hsperfdata. It is unknown before the first collection of most collectors."""
    sizes = heap(perf) if perf else None
    if sizes and sizes.used_bytes:
        return HeapSize(sizes.used_bytes, "heap used")
    status = host.fs.maybe(parse_status, pid, "status")
    return HeapSize(status and status.bytes_of("VmRSS"), "resident memory (the used heap is unknown)")
