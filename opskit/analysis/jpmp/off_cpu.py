"""How long the threads of a sampled JVM did not run, by the kernel's counters. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from opskit.analysis.jpmp.stacks import OffCpu

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.collect.jpmp.collect import Sampled


def off_cpu(live: Sampled, cpu_ms: Mapping[int, float]) -> dict[int, OffCpu]:
    """The time of each thread with frames, by native id, in the part of the run in which dumps show it."""
    seen: Counter[int] = Counter()
    for dump in live.dumps:
        # A mounted virtual thread has the native id of its carrier.
        seen.update(
            {thread.native_id for thread in dump.threads if thread.stack.frames and thread.native_id is not None}
        )
    queued_ms = live.load.waited_ms if live.load is not None else {}
    found = {}
    for native_id, dumps in seen.items():
        queued = queued_ms.get(native_id, 0.0)
        lived_ms = 1000 * live.elapsed_s * dumps / len(live.dumps)
        found[native_id] = OffCpu(max(lived_ms - cpu_ms.get(native_id, 0.0) - queued, 0.0), queued)
    return found
