"""Which difference follows from which, and which symptom a setting may explain. Patterns of keys, the nearest cause first.

A flag's effect stands for the flag: `-XX:+UseSerialGC` is an echo of the collector, and where the collector is the same, the flag
changes nothing.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

_COLLECTOR_FLAGS = ("flag.UseSerialGC", "flag.UseParallelGC", "flag.UseParallelOldGC", "flag.UseG1GC", "flag.UseZGC", "flag.UseShenandoahGC", "flag.UseConcMarkSweepGC", "flag.UseParNewGC", "flag.UseEpsilonGC", "flag.ZGenerational")  # fmt: skip
_HEAP_FLAGS = ("flag.MaxHeapSize", "flag.MaxRAMPercentage", "flag.MaxRAM", "flag.MaxRAMFraction", "flag.AggressiveHeap", "flag.UseContainerSupport")  # fmt: skip
_MEMORY = ("cgroup.memory_limit", "host.memory")
_PROCESSORS = ("flag.ActiveProcessorCount", "cgroup.cpu_quota", "cgroup.cpuset", "process.affinity", "host.cpus")
EFFECT_OF = {
    **dict.fromkeys(_COLLECTOR_FLAGS, "jvm.collector"),
    **dict.fromkeys(_HEAP_FLAGS, "jvm.heap_max"),
    "flag.ParallelGCThreads": "jvm.gc_threads",
    "flag.CICompilerCount": "jvm.compiler_threads",
    "property.user.timezone": "process.zone",
    "variable.TZ": "process.zone",
}
# What follows: (pattern of the key, patterns of its causes). The first pattern that fits counts.
_FOLLOWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    *((name, ("jvm.collector",)) for name in _COLLECTOR_FLAGS),
    *((name, ("jvm.heap_max",)) for name in _HEAP_FLAGS),
    ("flag.InitialHeapSize", ("jvm.heap_max",)),
    ("flag.UseLargePages", ()),
    ("flag.G1*", ("jvm.collector",)), ("flag.CMS*", ("jvm.collector",)), ("flag.Z*", ("jvm.collector",)), ("flag.Shenandoah*", ("jvm.collector",)),
    ("flag.ParallelGCThreads", ("jvm.gc_threads",)), ("flag.CICompilerCount", ("jvm.compiler_threads",)),
    ("jvm.build", ("jvm.jdk",)), ("jvm.vendor", ("jvm.jdk", "jvm.build")), ("jvm.kind", ("jvm.jdk", "jvm.vendor")),
    ("jvm.generation.*.name", ("jvm.collector", "jvm.jdk")),
    ("jvm.generation.*.max", ("flag.NewSize", "flag.MaxNewSize", "flag.NewRatio", "jvm.collector", "jvm.heap_max", "jvm.jdk")),
    ("jvm.cpus", _PROCESSORS), ("process.affinity", ("cgroup.cpuset", "host.cpus")), ("cgroup.cpuset", ("host.cpus",)),
    ("jvm.gc_threads", ("jvm.collector", *_PROCESSORS)), ("jvm.compiler_threads", (*_PROCESSORS, "jvm.jdk")),
    ("jvm.collector", (*_PROCESSORS, *_MEMORY, "jvm.jdk")), ("jvm.heap_max", (*_MEMORY, "jvm.collector")),
    ("process.nodes", ("host.nodes",)), ("process.zone", ("host.time_zone", "host.zone_rule")), ("host.zone_rule", ("host.time_zone",)),
    ("property.user.timezone", ("process.zone",)), ("variable.TZ", ("process.zone",)),
    ("object.libjemalloc*", ("variable.LD_PRELOAD",)), ("object.libtcmalloc*", ("variable.LD_PRELOAD",)),
    ("object.ld*", ("object.libc",)), ("object.lib[cmr]", ("host.os",)), ("object.libpthread", ("object.libc", "host.os")),
    ("object.libdl", ("object.libc", "host.os")), ("object.librt", ("object.libc", "host.os")), ("object.libm", ("object.libc", "host.os")),
    ("object.libstdc++", ("host.os",)), ("object.libz", ("host.os",)),
    ("limit.RLIMIT_NPROC", ("host.memory",)), ("limit.RLIMIT_SIGPENDING", ("limit.RLIMIT_NPROC", "host.memory")),
    ("limit.RLIMIT_MEMLOCK", ("kernel.release", "host.memory")),
    ("mitigation.*", ("boot.mitigations", "host.cpu_model", "kernel.release")), ("host.nodes", ("host.cpu_model", "host.cpus")),
    ("host.max_frequency", ("host.cpu_model", "host.boost", "host.no_turbo")), ("host.cpus", ("host.smt",)),
    ("host.model", ("host.vendor",)), ("host.huge_pages", ("sysctl.vm.nr_hugepages",)), ("thp.*", ("boot.transparent_hugepage",)),
    ("sysctl.vm.nr_hugepages_mempolicy", ("sysctl.vm.nr_hugepages",)),
    ("sysctl.vm.overcommit_kbytes", ("sysctl.vm.overcommit_ratio",)),
    ("sysctl.net.ipv4.conf.default.*", ("sysctl.net.ipv4.conf.all.*",)),
    ("sysctl.net.ipv4.udp_mem", ("host.memory",)), ("sysctl.net.ipv4.tcp_mem", ("host.memory",)), ("sysctl.net.ipv4.tcp_[rw]mem", ("host.memory",)),
    ("sysctl.net.ipv4.tcp_max_*", ("host.memory", "kernel.release")), ("sysctl.net.ipv?.*thresh*", ("host.memory",)),
    ("sysctl.net.netfilter.*", ("host.memory", "kernel.release")), ("sysctl.net.nf_conntrack_max", ("sysctl.net.netfilter.nf_conntrack_max", "host.memory")),
    ("sysctl.kernel.threads-max", ("host.memory",)), ("sysctl.kernel.pid_max", ("host.cpus",)), ("sysctl.kernel.sched_*", ("host.cpus", "kernel.release")),
    ("sysctl.kernel.msgmni", ("host.memory",)), ("sysctl.kernel.shm*", ("host.memory",)), ("sysctl.kernel.sem", ("kernel.release",)),
    ("sysctl.fs.file-max", ("host.memory",)), ("sysctl.fs.epoll.*", ("host.memory",)), ("sysctl.fs.inotify.*", ("host.memory",)),
    ("sysctl.user.*", ("host.memory",)), ("sysctl.vm.min_free_kbytes", ("host.memory", "host.nodes")), ("sysctl.vm.*_reserve_kbytes", ("host.memory",)),
    ("sysctl.vm.lowmem_reserve_ratio", ("host.memory", "kernel.release")), ("sysctl.net.core.somaxconn", ("kernel.release",)),
    ("mount./dev*", ("host.memory",)),
    # measured
    ("jvm.stopped", ("jvm.gc",)), ("jvm.waits", ("jvm.throttled",)), ("jvm.cpu", ("jvm.throttled", "jvm.gc", "jvm.stopped")),
    ("cgroup.pressure.cpu", ("jvm.throttled", "host.pressure.cpu")), ("cgroup.pressure.*", ("host.pressure.memory", "host.pressure.io")),
    ("host.pressure.cpu", ("jvm.throttled", "host.cpu.user", "host.cpu.system", "jvm.waits")), ("host.cpu.user", ("jvm.throttled", "jvm.cpu")),
    ("host.cpu.system", ("jvm.throttled",)), ("host.pswpout", ("host.pswpin",)), ("host.pgmajfault", ("host.pswpin",)), ("jvm.major_faults", ("host.pswpin", "host.pgmajfault")),
    ("host.pressure.memory", ("host.pswpin", "host.allocstall")), ("host.compact_stall", ("host.allocstall",)), ("host.cpu.iowait", ("host.pressure.io", "disk.*.busy")),
    ("host.pressure.io", ("disk.*.busy", "host.pswpin")), ("disk.*.busy", ("disk.*.await",)), ("host.swap_used", ("host.pswpin",)),
    ("jvm.rss", ("jvm.heap_max",)), ("jvm.switches", ("jvm.throttled",)),
)  # fmt: skip
_LOADERS = ("variable.LD_PRELOAD", "agent.*", "jvm.jdk", "jvm.collector", "flag.UseNUMA")  # of shared objects
# What a kernel has that another has not; its defaults stand above.
_BY_KERNEL = ("sysctl.*", "mitigation.*", "thp.*")
_MAY_EXPLAIN = (
    ("jvm.throttled", ("cgroup.cpu_quota", "cgroup.cpu.*")),
    ("jvm.waits", ("cgroup.cpu_quota", "cgroup.cpu.*", "cgroup.cpuset", "process.affinity", "process.nice", "process.policy", "host.cpus")),
    ("jvm.gc", ("jvm.heap_max", "jvm.collector", "jvm.gc_threads", "flag.*", "cgroup.cpu_quota", "jvm.jdk")),
    ("jvm.stopped", ("jvm.heap_max", "jvm.collector", "flag.*", "cgroup.cpu_quota", "jvm.jdk")),
    ("jvm.cpu", ("cgroup.cpu_quota", "jvm.collector", "flag.TieredCompilation", "flag.TieredStopAtLevel", "switch.-Xint", "agent.*", "jvm.jdk", "cgroup.cpuset")),
    ("host.psw*", ("cgroup.memory*", "sysctl.vm.swappiness", "host.memory", "host.swap", "jvm.heap_max")),
    ("jvm.swapped", ("cgroup.memory*", "sysctl.vm.swappiness", "host.memory", "host.swap", "jvm.heap_max")),
    ("jvm.major_faults", ("cgroup.memory_limit", "sysctl.vm.swappiness", "host.memory")),
    ("jvm.memory_share", ("cgroup.memory_limit", "jvm.heap_max")), ("jvm.fds_share", ("limit.RLIMIT_NOFILE",)),
    ("host.allocstall", ("thp.*", "sysctl.vm.min_free_kbytes", "cgroup.memory_limit", "host.memory")),
    ("host.cpu.*", ("host.cpus", "host.governor", "host.clocksource", "mitigation.*", "kernel.release", "host.cpu_model")),
    ("host.pressure.cpu", ("host.cpus", "cgroup.cpu_quota", "host.governor")), ("*pressure.memory", ("cgroup.memory_limit", "host.memory", "thp.*")),
    ("disk.*", ("mount.*", "disk.*", "sysctl.vm.dirty*")), ("*pressure.io", ("mount.*", "disk.*", "cgroup.io.*", "sysctl.vm.dirty*")),
    ("host.TcpExt.ListenOverflows", ("sysctl.net.core.somaxconn", "sysctl.net.ipv4.tcp_max_syn_backlog")),
    ("jvm.rss", ("jvm.heap_max", "variable.MALLOC_ARENA_MAX", "object.lib*malloc*", "thp.*", "jvm.jdk")),
    ("jvm.threads", ("jvm.gc_threads", "host.cpus", "cgroup.cpu_quota")),
)  # fmt: skip


def causes_of(key: str, *, is_of_one_side: bool = False) -> tuple[str, ...]:
    """The patterns of what a difference may follow from."""
    causes = next((causes for pattern, causes in _FOLLOWS if fnmatchcase(key, pattern)), ())
    if is_of_one_side and is_of_kernel(key):
        return ("kernel.release", *causes)
    return (*causes, *_LOADERS) if is_of_one_side and key.startswith("object.") else causes


def is_of_kernel(key: str) -> bool:
    """Whether a key that one side lacks may be one that its kernel has not."""
    return any(fnmatchcase(key, pattern) for pattern in _BY_KERNEL)


def may_explain(symptom: str, cause: str) -> bool:
    """Whether a setting may explain a measured difference."""
    patterns = next((causes for pattern, causes in _MAY_EXPLAIN if fnmatchcase(symptom, pattern)), ())
    return any(fnmatchcase(cause, pattern) for pattern in patterns)
