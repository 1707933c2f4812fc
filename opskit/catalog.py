"""The program as data: its commands, what to type at which symptom, and every finding's code. `--help` reads it: keep it cheap.

A code's paragraph in docs/findings.md has the code as its anchor.
"""

from __future__ import annotations

SCHEMA = 1  # of the JSON objects; raised when a key is removed or changes its meaning


class Quick:
    """A check of `opskit doctor`: what it looks at, the window of its rates, its CPU time at 1,000 processes and 4 JVMs.

    `ask`: it sends something or runs a program, and takes part only with --ask. `last`: after those whose findings choose its JVMs.
    """

    __slots__ = ("ask", "cpu_ms", "last", "of", "window_s")

    def __init__(self, of: str, cpu_ms: int, window_s: float = 0.0, *, ask: bool = False, last: bool = False) -> None:
        self.of, self.cpu_ms, self.window_s, self.ask, self.last = of, cpu_ms, window_s, ask, last


class Command:
    """A command: its name, group and line of help, its module, by default the name with underscores, and its part in doctor."""

    __slots__ = ("group", "help", "hidden", "module", "name", "quick")

    def __init__(
        self, name: str, group: str, line: str, quick: Quick | None = None, module: str | None = None, *, hidden: bool = False
    ) -> None:  # fmt: skip
        self.name, self.group, self.help, self.hidden, self.quick = name, group, line, hidden, quick
        self.module = module or name.replace("-", "_")


COMMANDS = (
    Command("doctor", "Linux", "Find what is wrong with a host or process: every check at once."),
    Command("pipes", "Linux", "List open pipes, their processes, and who is blocked on them.", Quick("open pipes", 95, 0.5)),
    Command("tcp", "Linux", "Show what makes connections slow: network or application.", Quick("TCP connections", 55, 1.0)),
    Command("cswitch", "Linux", "Show which threads wait for a CPU, and what takes it.", Quick("waits for a CPU", 60, 1.0)),
    Command("irqs", "Linux", "Show which CPU is saturated by interrupts, and where to pin.", Quick("interrupts", 15, 1.0)),
    Command("io", "Linux", "Show who reads and writes, in what sizes, and which device is slow.", Quick("reads and writes", 60, 1.0)),
    Command("limits", "Linux", "Show why a thread cannot start, and how many more can.", Quick("limits on threads and cgroups", 30, 1.0)),
    Command("fds", "Linux", "Show which file descriptors leak, and deleted files still held.", Quick("open files", 15)),
    Command("dentry", "Linux", "Show the memory in dentry and inode caches; drop them safely.", Quick("dentry caches", 10)),
    Command("mem", "Linux", "Show who holds the memory, and what will be killed for it.", Quick("memory", 50)),
    Command("oom", "Linux", "Show whom the OOM killer killed, and why.", Quick("OOM kills", 20, 1.0)),
    Command("clock", "Linux", "Show whether the clock is right, set, slow, or off by a time zone.", Quick("the clock", 10)),
    Command("jvms", "JVM", "List JVMs: heap, CPU, limits, GC and safepoint time, attach.", Quick("JVMs", 50, 1.0)),
    Command("hsperf-check", "JVM", "Diagnose and repair why jstack or jps cannot reach a JVM.", Quick("attach files of JVMs", 40)),
    Command("attach-check", "JVM", "The same as hsperf-check.", module="hsperf_check", hidden=True),
    Command("jpmp", "JVM", "Profile a JVM's threads: stacks, CPU, locks, flame graphs."),
    Command("profile", "JVM", "Profile what a JVM or any process runs on the CPUs."),
    Command("jmap-diff", "JVM", "Compare class histograms: which classes grow."),
    Command("crash", "JVM", "Show why a JVM crashed: hs_err files, javacores, core files."),
    Command("jmx", "JVM", "Show MBeans as JMX names them, without a port or an agent."),
    Command("safepoints", "JVM", "JVM pauses: how long, what caused them, time to safepoint.", Quick("JVM pauses", 30, 1.0)),
    Command("hdr", "JVM", "Show the percentiles of latency logs (HdrHistogram)."),
)  # fmt: skip

# Checks that have no command of their own.
HOST_CHECKS = {
    "cpu": Quick("CPU saturation", 5, 1.0),
    "memory-pressure": Quick("swap and memory pressure", 10, 1.0),
    "disks": Quick("space on file systems", 15),
    "devices": Quick("errors of block devices", 10, 1.0),
    "network": Quick("network interfaces", 10, 1.0),
    "processes": Quick("zombies and blocked processes", 20, 0.5),
    "kernel": Quick("kernel errors", 20),
    "thermal": Quick("CPU temperatures", 5, 1.0),
    "units": Quick("systemd units", 20, ask=True),
    "java-threads": Quick("Java threads", 100, ask=True, last=True),
}
CHECKS = {**{each.name: each.quick for each in COMMANDS if each.quick is not None}, **HOST_CHECKS}

SYMPTOMS = (
    ("`Too many open files`", "opskit fds PID"),
    ("disk full, but du shows nothing", "opskit fds --deleted"),
    ("inotify: `No space left on device`", "opskit fds"),
    ("slow reads or writes; `%iowait`", "opskit io"),
    ("a process hangs in state D", "opskit io PID"),
    ("a pipeline hangs", "opskit pipes --ends --fill"),
    ("is it the network or the application?", "opskit tcp PID"),
    ("slow answers of a database or service", "opskit tcp PID --peer ADDR"),
    ("connections time out, or are refused", "opskit tcp --listen"),
    ("`Cannot assign requested address`", "opskit tcp -v"),
    ("`CLOSE_WAIT` piles up", "opskit tcp -v"),
    ("slow, and the CPUs are busy", "opskit cswitch"),
    ("do the threads get the CPU?", "opskit cswitch PID"),
    ("a CPU is busy with interrupts", "opskit irqs"),
    ("latency spikes, though CPUs are idle", "opskit irqs --jitter"),
    ("`unable to create native thread`", "opskit limits PID"),
    ("`can't start new thread`", "opskit limits PID"),
    ("memory is used, but by no process", "opskit mem"),
    ("who ate the memory", "opskit mem"),
    ("RSS far above -Xmx: will it be killed?", "opskit mem PID"),
    ("tmpfs or `/dev/shm` holds memory", "opskit mem --files"),
    ("a process vanished; exit status 137", "opskit oom"),
    ("the time is wrong, or jumps", "opskit clock -w"),
    ("log stamps or a replica are hours off", "opskit clock PID --server HOST"),
    ("which JVM uses CPU or memory", "opskit jvms -w"),
    ("`well-known file is not secure`", "opskit hsperf-check"),
    ("requests hang, and the JVM uses no CPU", "opskit jpmp PID"),
    ("a JVM hangs", "opskit jpmp PID --locks"),
    ("a JVM vanished, its log says nothing", "opskit jvms"),
    ("the JVM crashed (`hs_err_pid*.log`)", "opskit crash FILE"),
    ("exit status 134 or 139", "opskit crash"),
    ("a JVM or another process burns CPU", "opskit profile PID"),
    ("slower than before (two profiles)", "opskit jpmp NOW --diff OLD -o d.svg"),
    ("the heap fills up", "opskit jmap-diff PID --live -c 5"),
    ("`OutOfMemoryError: Metaspace`", "opskit jmap-diff PID --live -c 5"),
    ("pauses that GC does not explain", "opskit safepoints PID"),
    ("latency logs (.hdr, HdrHistogram)", "opskit hdr LOG"),
    ("latency before and after a change", "opskit hdr NOW --diff BEFORE"),
    ("a script needs MBeans; JMX is off", "opskit jmx PID"),
    ("metrics of a JVM for Prometheus", "opskit jmx PID -f prometheus"),
)

# Class of a finding: stuck (work has stopped), slow, soon (it will stop), tools (JVM tools fail), tidy (nothing is broken).
# First the codes that explain no other finding, then the others with the codes that they can explain.
_EXPLAIN_NONE = {
    "stuck": (
        "pipe-full-writer-blocked", "pipe-end-of-file-missing", "fifo-open-blocked", "threads-none-left",
        "virtual-threads-pinned", "pool-exhausted", "oom-killed", "oom-reported", "oom-counted",
        "oom-killed-by-daemon", "oom-no-victim", "jvm-native-memory-refused", "java-heap-exhausted", "exit-137",
        "crash-stack-overflow", "crash-mapped-file", "crash-large-pages", "crash-hardware", "crash-use-after-unmap", "crash-illegal-instruction",
        "crash-native-library", "crash-agent", "crash-foreign-function", "crash-jdk-library", "crash-library-missing", "crash-wrong-libc",
        "crash-native-heap", "crash-abort", "crash-signal-sent", "crash-timeout", "crash-unsafe-access", "crash-compiled-code", "crash-compiler", "crash-gc",
        "crash-jvm-internal", "crash-unexplained",
        "file-system-read-only",
    ),
    "soon": (
        "disk-nearly-full", "swap-nearly-full", "raid-degraded",
        "threads-nearly-none-left", "rlimit-nearly-used", "memory-commit-limit",
        "file-max-nearly-used", "inotify-instances-nearly-used", "inotify-watches-nearly-used",
        "epoll-watches-nearly-used", "disk-inodes-used-up", "disk-full",
        "clock-unsynchronised", "clock-timezone-offset", "clock-stepped", "clock-rtc-offset", "clock-faked", "clock-offset",
        "tcp-listen-queue-fills", "tcp-ports-nearly-exhausted", "tcp-orphans", "conntrack-nearly-full",
    ),
    "slow": (
        "io-pressure",
        "dentry-share", "lock-contended", "thread-ping-pong", "ttsp-dominates", "bias-revocations", "thread-dumps-sampled",
        "jvm-gc-cpu",
        "tcp-application-does-not-read", "tcp-listen-overflows", "tcp-host-retransmits", "tcp-host-out-of-order",
        "tcp-buffers-small", "tcp-syn-queue-full", "clock-source-slow",
        "io-tiny-reads", "io-tiny-writes", "io-sync-dominates", "io-cgroup-throttled",
        "irq-on-isolated-cpu", "irq-far-node", "irq-backlog-drops",
        "thread-uses-whole-cpu", "load-not-cpu", "cpu-frequency-capped",
    ),
    "tidy": (
        "dentry-dropped", "attach-socket-leftover", "attach-trigger-leftover", "hsperf-file-stale", "hsperf-leftover",
        "memory-in-mapped-files", "memory-in-page-cache", "memory-in-huge-pages", "memory-in-reserved-huge-pages",
        "tcp-time-wait-full", "tcp-drops-counted", "clock-leap-second", "clock-rate", "clock-time-namespace",
        "clock-zone-differs", "clock-zone-missing", "clock-daemon-powerless", "clock-server-unsynchronised",
        "io-writes-cancelled",
        "irqbalance-ignores-isolated", "cpu-offline",
        "crash-jdk-old",
        "hdr-log-cut", "hdr-precision-differs", "hdr-service-time-alone", "hdr-times-mixed",
    ),
    "tools": (
        "attach-socket-group", "attach-socket-mode", "attach-not-a-socket",
        "attach-socket-orphaned", "attach-socket-foreign", "attach-socket-deleted", "attach-socket-lost",
        "attach-trigger-owner", "attach-trigger-left", "attach-probe-failed", "hsperf-file-owner", "hsperf-file-group",
        "hsperf-file-mode", "hsperf-file-links", "hsperf-file-size", "hsperf-file-deleted", "hsperf-file-foreign",
        "hsperf-file-missing", "tmp-not-sticky", "tmp-private",
        "hdr-bad-lines", "hdr-intervals-left-out",
    ),
}  # fmt: skip
# What only the host's checks find.
_OF_HOST_CHECKS = {
    "stuck": ("unit-failed", "kernel-task-hung"),
    "slow": ("link-flapping", "network-link-slow", "network-drops", "udp-receive-buffer-full"),
    "soon": (
        "neighbour-table-nearly-full",
        "kernel-limit-reached",
        "kernel-tainted",
        "unit-job-failed",
        "program-crashes",
        "zombies",
    ),
    "tidy": ("kernel-warning", "network-errors-counted"),
}
FINDINGS: dict[str, tuple[str, tuple[str, ...]]] = {
    **{code: (class_, ()) for class_, codes in (*_EXPLAIN_NONE.items(), *_OF_HOST_CHECKS.items()) for code in codes},
    "process-stopped": (
        "stuck",
        ("pipe-full-writer-blocked", "tcp-application-does-not-read", "tcp-listen-queue-full", "zombies"),
    ),
    "network-link-down": ("stuck", ("tcp-peer-does-not-answer", "tcp-connect-unanswered", "tcp-host-retransmits")),
    "network-half-duplex": ("slow", ("network-errors", "tcp-network-loses", "tcp-host-retransmits")),
    "network-errors": ("slow", ("tcp-network-loses", "tcp-host-retransmits", "tcp-host-out-of-order")),
    "network-saturated": ("slow", ("network-drops", "tcp-network-loses", "tcp-host-retransmits")),
    "neighbour-table-full": ("stuck", ("neighbour-table-nearly-full", "tcp-connect-unanswered")),
    "hardware-error": ("soon", ("kernel-oops", "kernel-tainted")),
    "kernel-oops": ("soon", ("kernel-tainted", "kernel-task-hung", "kernel-lockup")),
    "storage-error": ("soon", ("filesystem-error", "io-device-slow", "io-device-hung")),
    "filesystem-error": ("soon", ("kernel-task-hung",)),
    "file-server-silent": ("stuck", ("io-stuck", "kernel-task-hung")),
    "kernel-lockup": ("slow", ("kernel-tainted",)),
    "crash-java-heap": ("stuck", ("java-heap-exhausted",)),
    **dict.fromkeys(
        (
            "crash-map-count",
            "crash-threads",
            "crash-address-space",
            "crash-native-memory",
            "crash-compressed-oops",
            "crash-overcommit",
        ),
        ("stuck", ("jvm-native-memory-refused",)),
    ),
    "oom-killed": ("stuck", ("oom-reported", "oom-counted", "exit-137")),
    "clock-daemon-unsynchronised": ("soon", ("clock-unsynchronised", "clock-offset")),
    "clock-two-daemons": ("soon", ("clock-stepped", "clock-offset")),
    "pipe-deadlock": ("stuck", ("pipe-full-writer-blocked",)),
    "tcp-listen-queue-full": ("stuck", ("tcp-listen-overflows", "tcp-syn-queue-full", "tcp-listen-queue-fills")),
    "tcp-peer-does-not-read": ("stuck", ("pool-exhausted", "connections-exhausted")),
    "tcp-peer-does-not-answer": ("stuck", ("pool-exhausted", "connections-exhausted")),
    "tcp-mtu-black-hole": ("stuck", ("tcp-peer-does-not-answer", "pool-exhausted", "connections-exhausted")),
    "tcp-connect-unanswered": ("slow", ("pool-exhausted", "connections-exhausted")),
    "tcp-ports-exhausted": ("stuck", ("tcp-ports-nearly-exhausted", "pool-exhausted", "connections-exhausted")),
    "tcp-network-loses": ("slow", ("tcp-host-retransmits",)),
    "io-device-hung": ("stuck", ("io-stuck", "kernel-task-hung")),
    "io-stuck": (
        "stuck",
        (
            "pool-exhausted",
            "tcp-application-does-not-read",
            "tcp-listen-queue-full",
            "safepoint-not-reached",
            "kernel-task-hung",
        ),
    ),
    "io-device-slow": ("slow", ("io-stuck", "io-pressure", "major-faults", "ttsp-dominates")),
    "tcp-close-wait": ("soon", ("fds-keep-growing", "rlimit-nearly-used")),
    "tcp-memory-pressure": ("slow", ("tcp-orphans", "tcp-host-retransmits")),
    "conntrack-full": ("stuck", ("conntrack-nearly-full", "tcp-connect-unanswered", "tcp-host-retransmits")),
    "pipes-keep-growing": ("soon", ("rlimit-nearly-used",)),
    "fds-keep-growing": ("soon", ("rlimit-nearly-used",)),
    "stack-above-ram": ("stuck", ("threads-none-left",)),
    "seccomp-refuses-threads": ("stuck", ("threads-none-left",)),
    "dentry-negative": ("slow", ("dentry-share", "dentry-cgroup")),
    "dentry-cgroup": ("soon", ("memory-pressure", "memory-near-limit")),
    "dentry-pressure": ("soon", ("dentry-share",)),
    "connections-exhausted": ("stuck", ("pool-exhausted",)),
    "pool-waits-for-itself": ("stuck", ("pool-exhausted", "connections-exhausted")),
    "jvm-deadlock": ("stuck", ("lock-contended", "tcp-application-does-not-read", "tcp-listen-queue-full")),
    "class-keeps-growing": ("soon", ("jvm-gc-share", "memory-near-limit")),
    "heap-nearly-full": ("soon", ("jvm-gc-share",)),
    "metaspace-keeps-growing": ("soon", ("class-keeps-growing", "jvm-gc-share", "memory-near-limit")),
    "direct-memory-keeps-growing": ("soon", ("class-keeps-growing", "memory-near-limit")),
    "zlib-memory-keeps-growing": ("soon", ("class-keeps-growing", "memory-near-limit")),
    "late-to-safepoint": ("slow", ("ttsp-dominates",)),
    "safepoint-not-reached": ("stuck", ("attach-stopped", "tcp-application-does-not-read", "tcp-listen-queue-full")),
    "cpu-throttled": ("slow", ("ttsp-dominates", "late-to-safepoint", "jvm-gc-share", "jvm-cpu-wait")),
    "memory-short": ("soon", ("memory-pressure", "swapping", "swap-nearly-full", "major-faults")),
    "memory-near-limit": ("soon", ("memory-pressure", "swapping", "major-faults")),
    "swapping": ("slow", ("memory-pressure", "major-faults", "ttsp-dominates", "jvm-gc-share", "io-pressure")),
    "device-offline": (
        "stuck",
        ("storage-error", "filesystem-error", "file-system-read-only", "io-device-hung", "io-stuck", "raid-degraded"),
    ),
    "storage-error": (
        "soon",
        ("filesystem-error", "file-system-read-only", "io-device-hung", "io-device-slow", "io-stuck", "raid-degraded"),
    ),
    "filesystem-error": ("soon", ("file-system-read-only",)),
    "huge-pages-unused": ("soon", ("memory-short",)),
    "tmpfs-large": ("soon", ("memory-short",)),
    "memory-unaccounted": ("soon", ("memory-short",)),
    "shared-memory-unheld": ("soon", ("tmpfs-large", "memory-short")),
    "deleted-files-held": ("soon", ("disk-full",)),
    "deleted-files-in-memory": ("soon", ("tmpfs-large", "memory-short")),
    "memory-pressure": ("slow", ("ttsp-dominates", "major-faults", "jvm-gc-share")),
    "cpu-stolen": ("slow", ("jvm-cpu-wait", "ttsp-dominates", "late-to-safepoint")),
    "thread-pinned-to-busy-cpu": ("slow", ("jvm-cpu-wait", "ttsp-dominates", "late-to-safepoint")),
    "runnable-above-cpus": ("slow", ("jvm-cpu-wait", "ttsp-dominates", "late-to-safepoint")),
    "cpu-thermal-throttled": ("slow", ("runnable-above-cpus", "jvm-cpu-wait")),
    "cpu-temperature-critical": ("soon", ("cpu-thermal-throttled",)),
    "io-cache-thrash": ("slow", ("major-faults", "memory-pressure")),
    "major-faults": ("slow", ("ttsp-dominates", "late-to-safepoint")),
    "jvm-cpu-wait": ("slow", ("ttsp-dominates", "late-to-safepoint")),
    "irq-cpu-saturated": ("slow", ("irq-backlog-drops", "jvm-cpu-wait", "tcp-host-retransmits")),
    "irq-pinned-thread": (
        "slow",
        ("jvm-cpu-wait", "ttsp-dominates", "late-to-safepoint", "tcp-application-does-not-read"),
    ),
    "jvm-gc-share": ("slow", ("jvm-gc-cpu",)),
    "jvm-young-collections-free-little": ("slow", ("jvm-gc-share",)),
    **dict.fromkeys(
        ("memory-heap-outgrows-limit", "memory-keeps-growing"),
        ("soon", ("memory-near-limit", "oom-killed", "oom-counted")),
    ),
    **dict.fromkeys(
        (
            "memory-in-arenas",
            "memory-in-malloc",
            "memory-in-class-loaders",
            "memory-in-thread-stacks",
            "memory-in-direct-buffers",
            "memory-in-metaspace",
            "memory-in-code-cache",
            "memory-in-shared-memory",
            "memory-in-anonymous-mappings",
            "memory-in-other-processes",
            "memory-in-tmpfs",
            "memory-of-dead-process",
        ),
        ("soon", ("memory-heap-outgrows-limit", "memory-keeps-growing", "memory-near-limit")),
    ),
    "memory-throttled": ("slow", ("ttsp-dominates", "memory-pressure", "swapping", "major-faults")),
    "jvm-stopped": ("stuck", ("zombies", "attach-stopped", "tcp-application-does-not-read", "tcp-listen-queue-full")),
    "attach-socket-owner": ("tools", ("attach-socket-group",)),
    "attach-stopped": ("tools", ("attach-probe-failed",)),
    "attach-no-descriptor": ("tools", ("attach-probe-failed",)),
    "attach-listener-ended": ("tools", ("attach-probe-failed",)),
    "attach-disabled": ("tools", ("attach-probe-failed",)),
    "attach-xrs": ("tools", ("attach-probe-failed",)),
    "hsperf-off": ("tools", ("hsperf-file-missing",)),
    "hsperf-nameless": ("tools", ("hsperf-file-missing",)),
    "hsperf-dir-owner": ("tools", ("hsperf-file-missing",)),
    "hsperf-dir-mode": ("tools", ("hsperf-file-missing",)),
    "hsperf-dir-symlink": ("tools", ("hsperf-file-missing",)),
    "tmp-read-only": ("tools", ("hsperf-file-missing", "attach-probe-failed")),
    "tmp-full": ("tools", ("hsperf-file-missing", "attach-probe-failed")),
    "tmp-closed": ("tools", ("hsperf-file-missing", "attach-probe-failed")),
    "tmp-setgid": ("tools", ("attach-socket-group",)),
}
