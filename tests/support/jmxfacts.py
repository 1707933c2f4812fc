"""Facts of a JVM's MBeans, made by hand."""

from __future__ import annotations

from opskit.collect.jmx.facts import Attribute, Bean, Facts

MIB = 1 << 20


def usage(used, committed, most=-1, init=0):
    """A MemoryUsage."""
    return {"committed": committed, "init": init, "max": most, "used": used}


def bean(name, source="hsperfdata", **attributes):
    """An MBean whose attributes have these values."""
    return Bean(name, tuple(Attribute(each, value, source) for each, value in attributes.items()))


def failing(name, attribute, error, source="agent"):
    """An MBean with an attribute that throws."""
    return Bean(name, (Attribute(attribute, None, source, error),))


def pool(name, used, committed, most=-1):
    """A memory pool."""
    return bean(
        f"java.lang:type=MemoryPool,name={name}", Name=name, Type="HEAP", Usage=usage(used, committed, most),
        Valid=True, MemoryManagerNames=["G1 Young Generation", "G1 Old Generation"],
    )  # fmt: skip


def collector(name, runs, time_ms, **more):
    """A collector."""
    return bean(f"java.lang:type=GarbageCollector,name={name}", CollectionCount=runs, CollectionTime=time_ms, **more)


def beans(used=357826560, runs=12):
    """The MBeans of a JVM with G1."""
    return (
        bean("java.lang:type=Memory", HeapMemoryUsage=usage(used, 512 * MIB, 1024 * MIB, 64 * MIB),
             NonHeapMemoryUsage=usage(62 * MIB, 66 * MIB, -1, 7667712), ObjectPendingFinalizationCount=0, Verbose=False),
        pool("G1 Eden Space", 300 * MIB, 400 * MIB), pool("G1 Old Gen", used - 300 * MIB, 112 * MIB, 1024 * MIB),
        pool("Metaspace", 40 * MIB, 41 * MIB),
        collector("G1 Young Generation", runs, 85, LastGcInfo={
            "GcThreadCount": 2, "duration": 7, "endTime": 5007, "id": runs, "startTime": 5000,
            "memoryUsageAfterGc": {"G1 Eden Space": usage(0, 400 * MIB), "G1 Old Gen": usage(41 * MIB, 112 * MIB)},
        }),
        collector("G1 Old Generation", 0, 0, LastGcInfo=None),
        bean("java.lang:type=Threading", "memory", ThreadCount=42, DaemonThreadCount=12, PeakThreadCount=50,
             TotalStartedThreadCount=61, AllThreadIds=[1, 2, 9]),
        bean("java.lang:type=ClassLoading", LoadedClassCount=3402, TotalLoadedClassCount=3410, UnloadedClassCount=8),
        bean("java.lang:type=Compilation", Name="HotSpot 64-Bit Tiered Compilers", TotalCompilationTime=1234),
        bean("java.lang:type=OperatingSystem", "proc", OpenFileDescriptorCount=120, MaxFileDescriptorCount=1048576,
             ProcessCpuLoad=0.125, ProcessCpuTime=4_500_000_000, SystemLoadAverage=0.5, CpuLoad=-1.0, TotalMemorySize=8 << 30),
        bean("java.lang:type=Runtime", Uptime=327000, StartTime=1700000000123, VmName="OpenJDK 64-Bit Server VM",
             InputArguments=["-Xmx1g", "-Dpassword=(hidden)"], SystemProperties={"java.version": "17.0.9", "a b": ""}),
        bean("java.nio:type=BufferPool,name=direct", "memory", Count=3, MemoryUsed=600006, TotalCapacity=600006, Name="direct"),
    )  # fmt: skip


def facts(made=None, **given):
    """A look at that JVM."""
    return Facts(4242, "Shop", "17.0.9", beans() if made is None else tuple(made), at_s=100.0)._replace(**given)


HOSTILE = (
    bean('a.b:type=Evil,name="x,y=\x1b[31m*"', "agent", **{
        "Line\nBreak": "one\r\ntwo\x1b[2J\u202e", "Big": "x" * (1 << 20), "Map": {"k e\ty": [{"n\n": 1}, None], "nan": float("nan")},
        "Rate": 2.5, "Empty": [], "Nothing": {}, "Huge": 10**30, "Infinite": float("inf"), "per_s": 3, "Total": 4, "total": 5,
    }),
    bean("9domain:Type=x y,Key-1=a,key_1=b", "agent", Count=7, Active=True),
    failing("a.b:type=Throws", "Value", "java.lang.UnsupportedOperationException: not\nsupported"),
)  # fmt: skip
FIRST = facts()
LATER = facts(beans(used=357826560 + 20 * MIB, runs=14), at_s=110.0)
APPLICATION = facts((*beans()[:1], *HOSTILE), missing=("the CPU load needs a window: opskit jmx 4242 -i 1",))
