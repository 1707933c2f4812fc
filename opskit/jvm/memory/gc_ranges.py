"""What a collector keeps beside the Java heap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.memory import PAGE_BYTES, u64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory
    from opskit.proc.spans import Span

_CARD_BYTES = 128  # of the heap at least for one byte of the card table; 512 by default


def gc_spans(structs: VmStructs, memory: Memory, heap: Sequence[Span]) -> list[Span]:
    """The tables of the collector."""
    found = [_card_table(structs, memory, heap)]
    return [span for span in found if span is not None]


def _card_table(structs: VmStructs, memory: Memory, heap: Sequence[Span]) -> Span | None:
    """The card table, in whole pages; None: this collector has none."""
    names = ("BarrierSet", "_barrier_set"), ("CardTableBarrierSet", "_card_table"), ("CardTable", "_byte_map")
    barrier, table_at, map_at = map(structs.find, names)
    size_at = structs.find(("CardTable", "_byte_map_size"))
    if barrier is None or table_at is None or map_at is None or size_at is None:
        return None
    table = u64(memory, (u64(memory, barrier) or 0) + table_at) or 0
    start, size = u64(memory, table + map_at) or 0, u64(memory, table + size_at) or 0
    if not start or not 0 < size <= sum(end - begin for begin, end in heap) // _CARD_BYTES + PAGE_BYTES:
        return None
    return start // PAGE_BYTES * PAGE_BYTES, -(-(start + size) // PAGE_BYTES) * PAGE_BYTES
