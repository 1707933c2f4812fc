"""The attributes of the JVM's own MBeans: their units, whether they only rise, and their names in Prometheus.

The names are those of the Java client's JVM metrics (https://prometheus.github.io/client_java/instrumentation/jvm/).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.jvm.object_names import properties_of
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

BYTES, MILLISECONDS, NANOSECONDS, RATIO, DATE, ID, PLAIN = "bytes", "ms", "ns", "ratio", "date", "id", ""


class Known(NamedTuple):
    """`metric`: the name in Prometheus; "": made of the ObjectName. `label`: for the property `name`; `labels`: fixed ones."""

    unit: str = PLAIN
    metric: str = ""
    help: str = ""
    label: str = "name"
    labels: Mapping[str, str] = {}
    rises: bool = False


_PARTS = {"init": "initial", "used": "used", "committed": "committed", "max": "maximum; -1: undefined"}


def _usage(attribute: str, metric: str, what: str, label: str = "name", **labels: str) -> dict[str, Known]:
    """The four numbers of a MemoryUsage."""
    return {
        f"{attribute}.{part}": Known(BYTES, metric and f"{metric}_{part}_bytes", f"{what}: {said}", label, labels)
        for part, said in _PARTS.items()
    }


def _each(unit: str, *names: str, rises: bool = False) -> dict[str, Known]:
    return {name: Known(unit, rises=rises) for name in names}


_BY_TYPE: Mapping[str, Mapping[str, Known]] = {
    "java.lang:Memory": {
        **_usage("HeapMemoryUsage", "jvm_memory", "memory of an area, bytes", area="heap"),
        **_usage("NonHeapMemoryUsage", "jvm_memory", "memory of an area, bytes", area="nonheap"),
        "ObjectPendingFinalizationCount": Known(
            PLAIN, "jvm_memory_objects_pending_finalization", "objects that wait for their finalizer"
        ),
    },
    "java.lang:MemoryPool": {
        **_usage("Usage", "jvm_memory_pool", "memory of a pool, bytes", "pool"),
        **_usage("CollectionUsage", "jvm_memory_pool_collection", "memory of a pool after its last collection, bytes", "pool"),
        **_usage("PeakUsage", "", "the most memory of a pool, bytes"),
        **_each(BYTES, "UsageThreshold", "CollectionUsageThreshold"),
        **_each(PLAIN, "UsageThresholdCount", "CollectionUsageThresholdCount", rises=True),
    },
    "java.lang:GarbageCollector": {
        "CollectionCount": Known(PLAIN, "jvm_gc_collection_seconds_count", "time in a collector", "gc", rises=True),
        "CollectionTime": Known(MILLISECONDS, "jvm_gc_collection_seconds_sum", "time in a collector", "gc", rises=True),
        **_each(MILLISECONDS, "LastGcInfo.startTime", "LastGcInfo.endTime", "LastGcInfo.duration"),
    },
    "java.lang:Threading": {
        "ThreadCount": Known(PLAIN, "jvm_threads_current", "live threads"),
        "DaemonThreadCount": Known(PLAIN, "jvm_threads_daemon", "live daemon threads"),
        "PeakThreadCount": Known(PLAIN, "jvm_threads_peak", "the most threads that lived at a time"),
        "TotalStartedThreadCount": Known(PLAIN, "jvm_threads_started", "threads that were started", rises=True),
        **_each(ID, "AllThreadIds"),
        **_each(NANOSECONDS, "CurrentThreadCpuTime", "CurrentThreadUserTime", rises=True),
        **_each(BYTES, "CurrentThreadAllocatedBytes", "TotalThreadAllocatedBytes", rises=True),
    },
    "java.lang:ClassLoading": {
        "LoadedClassCount": Known(PLAIN, "jvm_classes_currently_loaded", "classes that are loaded"),
        "TotalLoadedClassCount": Known(PLAIN, "jvm_classes_loaded", "classes that were ever loaded", rises=True),
        "UnloadedClassCount": Known(PLAIN, "jvm_classes_unloaded", "classes that were unloaded", rises=True),
    },
    "java.lang:Compilation": {
        "TotalCompilationTime": Known(
            MILLISECONDS, "jvm_compilation_time_seconds", "time in JIT compilation, of all its threads", rises=True
        ),
    },
    "java.lang:Runtime": {
        "StartTime": Known(DATE, "process_start_time_seconds", "start of the JVM, seconds since 1970"),
        **_each(MILLISECONDS, "Uptime"),
        **_each(ID, "Pid"),
    },
    "java.lang:OperatingSystem": {
        "OpenFileDescriptorCount": Known(PLAIN, "process_open_fds", "open file descriptors"),
        "MaxFileDescriptorCount": Known(PLAIN, "process_max_fds", "limit of open file descriptors"),
        "ProcessCpuTime": Known(NANOSECONDS, "process_cpu_seconds", "CPU time of the process", rises=True),
        "CommittedVirtualMemorySize": Known(BYTES, "process_virtual_memory_bytes", "virtual memory of the process, bytes"),
        **_each(RATIO, "ProcessCpuLoad", "SystemCpuLoad", "CpuLoad"),
        **_each(
            BYTES, "TotalMemorySize", "FreeMemorySize", "TotalPhysicalMemorySize", "FreePhysicalMemorySize",
            "TotalSwapSpaceSize", "FreeSwapSpaceSize",
        ),
    },
    "java.nio:BufferPool": {
        "Count": Known(PLAIN, "jvm_buffer_pool_used_buffers", "buffers of a pool", "pool"),
        "MemoryUsed": Known(BYTES, "jvm_buffer_pool_used_bytes", "memory of the buffers of a pool, bytes", "pool"),
        "TotalCapacity": Known(BYTES, "jvm_buffer_pool_capacity_bytes", "capacity of the buffers of a pool, bytes", "pool"),
    },
}  # fmt: skip
_MEMORY_OF_COLLECTION = ("LastGcInfo.memoryUsageBeforeGc.", "LastGcInfo.memoryUsageAfterGc.")
_UNKNOWN = Known()


def known_of(bean: str, path: str) -> Known:
    """What is known of an attribute; of an application's: nothing."""
    domain, properties, _ = properties_of(bean)
    kind = f"{domain}:{properties.get('type', '')}"
    if kind == "java.lang:GarbageCollector" and path.startswith(_MEMORY_OF_COLLECTION):
        return Known(BYTES)
    return _BY_TYPE.get(kind, {}).get(path, _UNKNOWN)
