"""java.lang:type=Threading, ClassLoading and Compilation, by HotSpot's own counters: the MBeans answer from the same ones.

Virtual threads and HotSpot's hidden threads (compilers, the service thread) are in none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.jmx.made import COUNTERS, MEMORY, bean

if TYPE_CHECKING:
    from opskit.collect.jmx.facts import Bean, Value
    from opskit.collect.jmx.sources import Sources

COMPILATION, COMPILER_PROPERTY = "java.lang:type=Compilation", "sun.management.compiler"
_SERVICE = "_ZN13ThreadService"
_CONTENTION, _CPU_TIME, _ALLOCATED = (
    f"{_SERVICE}{name}E"
    for name in (
        "37_thread_monitoring_contention_enabled",
        "24_thread_cpu_time_enabled",
        "32_thread_allocated_memory_enabled",
    )
)
# Without threads that are ending, which the counters in hsperfdata still have.
_LIVE, _DAEMON = (f"{_SERVICE}{name}E" for name in ("21_atomic_threads_count", "28_atomic_daemon_threads_count"))
THREAD_VARIABLES = (_CONTENTION, _CPU_TIME, _ALLOCATED, _LIVE, _DAEMON)
_MS_PER_S = 1000
_ELSE = "--agent reads them"


def thread_beans(sources: Sources) -> list[Bean]:
    """The beans of what is counted."""
    beans = [_threading(sources), _class_loading(sources), _compilation(sources)]
    if sources.perf is not None:
        asked = "java.lang:type=Threading AllThreadIds, CurrentThread…, TotalThreadAllocatedBytes"
        sources.missing.append(f"{asked}: only code in the JVM can ask for them; {_ELSE}")
    return [each for each in beans if each.attributes]


def _threading(sources: Sources) -> Bean:
    live, daemon = (sources.variable(name, 4) for name in (_LIVE, _DAEMON))
    counted: dict[str, Value] = {
        "ThreadCount": sources.number("java.threads.live") if live is None else None,
        "DaemonThreadCount": sources.number("java.threads.daemon") if daemon is None else None,
        "PeakThreadCount": sources.number("java.threads.livePeak"),
        "TotalStartedThreadCount": sources.number("java.threads.started"),
    }
    supported = (
        "ThreadCpuTimeSupported", "CurrentThreadCpuTimeSupported", "ThreadContentionMonitoringSupported",
        "ObjectMonitorUsageSupported", "SynchronizerUsageSupported", "ThreadAllocatedMemorySupported",
    )  # fmt: skip
    enabled = {
        "ThreadContentionMonitoringEnabled": _CONTENTION,
        "ThreadCpuTimeEnabled": _CPU_TIME,
        "ThreadAllocatedMemoryEnabled": _ALLOCATED,
    }
    fixed: dict[str, Value] = dict.fromkeys(supported, True) if sources.perf is not None else {}
    read: dict[str, Value] = {"ThreadCount": live, "DaemonThreadCount": daemon}
    read |= {
        name: None if (found := sources.variable(variable, 1)) is None else bool(found)
        for name, variable in enabled.items()
    }
    return bean("java.lang:type=Threading", (COUNTERS, counted), (COUNTERS, fixed), (MEMORY, read))


def _class_loading(sources: Sources) -> Bean:
    loaded, unloaded = (_classes(sources, f"{what}Classes") for what in ("loaded", "unloaded"))
    values: dict[str, Value] = {"TotalLoadedClassCount": loaded, "UnloadedClassCount": unloaded}
    if loaded is not None and unloaded is not None:
        values["LoadedClassCount"] = max(0, loaded - unloaded)
    verbose: dict[str, Value] = {"Verbose": sources.logs_info("class", "load")}
    return bean("java.lang:type=ClassLoading", (COUNTERS, values), (MEMORY, verbose))


def _classes(sources: Sources, what: str) -> int | None:
    """Of the application's and of shared (CDS) classes."""
    found = [sources.number(f"java.cls.{name}") for name in (what, f"shared{what[0].upper()}{what[1:]}")]
    return None if None in found else sum(each or 0 for each in found)


def _compilation(sources: Sources) -> Bean:
    seconds = sources.perf.ticks_s("java.ci.totalTime") if sources.perf is not None else None
    values: dict[str, Value] = {}
    if seconds is not None:
        values = {
            "TotalCompilationTime": int(seconds * _MS_PER_S),
            "CompilationTimeMonitoringSupported": True,
        }  # a number
    return bean(COMPILATION, (COUNTERS, values))
