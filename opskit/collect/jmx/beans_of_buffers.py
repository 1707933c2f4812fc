"""java.nio:type=BufferPool: direct and mapped ByteBuffers, exactly as the JVM's own classes count them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.jmx.made import MEMORY, bean
from opskit.errors import NotSupported
from opskit.jvm.memory.buffer_pools import read_buffer_pools

if TYPE_CHECKING:
    from opskit.collect.jmx.facts import Bean, Value
    from opskit.collect.jmx.sources import Sources

_PERSISTENT, _FIRST_PERSISTENT = "mapped - 'non-volatile memory'", 14


def buffer_beans(sources: Sources) -> list[Bean]:
    """The pools; those that cannot be read now are told in `sources.missing`."""
    if sources.memory is None:
        return []
    try:
        objects, classes = sources.objects(), sources.boot_classes()
        pools = sources.steady("java.nio:type=BufferPool", lambda: read_buffer_pools(objects, classes)) or {}
    except NotSupported as error:
        sources.missing.append(f"java.nio:type=BufferPool: {error}")
        return []
    beans = []
    for name, pool in pools.items():
        if name == _PERSISTENT and (sources.major or 0) < _FIRST_PERSISTENT:
            continue
        if pool is None:
            why = "its counters could not be read at this moment, as the collector moves them; try again"
            sources.missing.append(f"java.nio:type=BufferPool,name={name}: {why}")
            continue
        values: dict[str, Value] = {
            "Name": name, "Count": pool.buffers, "MemoryUsed": pool.memory, "TotalCapacity": pool.capacity
        }  # fmt: skip
        beans.append(bean(f"java.nio:type=BufferPool,name={name}", (MEMORY, values)))
    return beans
