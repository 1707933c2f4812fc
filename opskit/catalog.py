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

    __slots__ = ("captured", "group", "help", "hidden", "module", "name", "quick")

    def __init__(
        self, name: str, group: str, line: str, quick: Quick | None = None, module: str | None = None, *, hidden: bool = False
    ) -> None:  # fmt: skip
        self.name, self.group, self.help, self.hidden, self.quick = name, group, line, hidden, quick
        self.captured = CAPTURED.get(name, ())
        self.module = module or name.replace("-", "_")


# What a capture runs of each command, so that all that a replay reads is in it: {pid} is each JVM, each process that was named, and
# those that doctor names; {jvm} each JVM. Options that only show more, or choose among what was read, need no line.
CAPTURED = {
    "doctor": ("", "{jvm} --only jvms"),
    "pipes": ("--ends --fifos --threads --by-user", "--fill", "{pid} --fill"),
    "tcp": ("-v", "--listen", "{pid} -v"),
    "cswitch": ("", "{pid}"),
    "irqs": ("-v",),
    "io": ("-v", "{pid} -v"),
    "limits": ("--all", "{pid} --all"),
    "fds": ("", "--deleted", "{pid} -v"),
    "dentry": ("",),
    "mem": ("", "--files", "{pid} -v"),
    "oom": ("",),
    "clock": ("", "-w -c 1", "{pid}"),
    "jvms": ("",),
    "hsperf-check": ("", "{jvm}"),
    "jmx": ("{jvm}",),
    "crash": ("-v",),
    "compare": ("live live",),
    "safepoints": ("{jvm}",),
}

# What a capture with more samples than one window needs runs as well: each look reads more of those that are busy then.
CAPTURED_WATCHED = ("cswitch -w", "irqs -w")

# What a capture with --ask runs as well, after JVMs have replied.
CAPTURED_ASKED = (
    "doctor --ask", "doctor {jvm} --ask", "jpmp {jvm}", "jpmp {jvm} --locks", "jmap-diff {jvm}", "mem {jvm} --ask", "jmx {jvm} --ask",
    "tcp {jvm} --ask", "fds {jvm} --ask", "io {jvm} --ask", "cswitch {jvm} --ask",
)  # fmt: skip

COMMANDS = (
    Command("doctor", "Linux", "Find what is wrong with a host or process: every check at once."),
    Command("capture", "Linux", "Save the evidence before a restart, for every command later."),
    Command("compare", "Linux", "Show why one replica is slow: what differs from a good one."),
    Command("pipes", "Linux", "List open pipes, their processes, and who is blocked on them.", Quick("open pipes", 75, 0.5)),
    Command("tcp", "Linux", "Show what makes connections slow: network or application.", Quick("TCP connections", 55, 1.0)),
    Command("cswitch", "Linux", "Show which threads wait for a CPU, and what takes it.", Quick("waits for a CPU", 60, 1.0)),
    Command("irqs", "Linux", "Show which CPU is saturated by interrupts, and where to pin.", Quick("interrupts", 15, 1.0)),
    Command("io", "Linux", "Show who reads and writes, in what sizes, and which device is slow.", Quick("reads and writes", 40, 1.0)),
    Command("limits", "Linux", "Show why a thread cannot start, and how many more can.", Quick("limits on threads and cgroups", 30, 1.0)),
    Command("fds", "Linux", "Show which file descriptors leak, and deleted files still held.", Quick("open files", 15)),
    Command("dentry", "Linux", "Show the memory in dentry and inode caches; drop them safely.", Quick("dentry caches", 15)),
    Command("mem", "Linux", "Show who holds the memory, and what will be killed for it.", Quick("memory", 25)),
    Command("oom", "Linux", "Show whom the OOM killer killed, and why.", Quick("OOM kills", 15, 1.0)),
    Command("clock", "Linux", "Show whether the clock is right, set, slow, or off by a time zone.", Quick("the clock", 30)),
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
    "memory-pressure": Quick("swap and memory pressure", 8, 1.0),
    "disks": Quick("space on file systems", 18),
    "devices": Quick("errors of block devices", 6, 1.0),
    "network": Quick("network interfaces", 10, 1.0),
    "processes": Quick("zombies and stopped processes", 15, 0.5),
    "kernel": Quick("kernel errors", 30),
    "thermal": Quick("CPU temperatures", 5, 1.0),
    "units": Quick("systemd units", 20, ask=True),
    "java-threads": Quick("Java threads", 100, ask=True, last=True),
}
CHECKS = {**{each.name: each.quick for each in COMMANDS if each.quick is not None}, **HOST_CHECKS}

SYMPTOMS = (
    ("something is wrong; where to begin?", "opskit doctor"),
    ("what is wrong with this process?", "opskit PID"),
    ("before a restart: save the evidence", "opskit capture -o incident.tar.gz"),
    ("it happens only at night", "opskit capture --when 'stopped>20'"),
    ("one replica is slower than the others", "opskit compare BAD GOOD"),
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
        "pipe-full-writer-blocked", "pipe-end-of-file-missing", "fifo-open-blocked",
        "virtual-threads-pinned", "pool-exhausted", "oom-reported", "oom-counted",
        "oom-killed-by-daemon", "oom-no-victim", "jvm-native-memory-refused", "java-heap-exhausted", "exit-137",
        "crash-stack-overflow", "crash-mapped-file", "crash-large-pages", "crash-hardware", "crash-use-after-unmap", "crash-illegal-instruction",
        "crash-native-library", "crash-agent", "crash-foreign-function", "crash-jdk-library", "crash-library-missing", "crash-wrong-libc",
        "crash-native-heap", "crash-abort", "crash-signal-sent", "crash-timeout", "crash-unsafe-access", "crash-compiled-code", "crash-compiler", "crash-gc",
        "crash-jvm-internal", "crash-unexplained",
    ),
    "soon": (
        "disk-nearly-full", "swap-nearly-full", "raid-degraded",
        "threads-nearly-none-left", "memory-heap-outgrows-limit", "memory-commit-limit",
        "file-max-nearly-used", "inotify-instances-nearly-used", "inotify-watches-nearly-used",
        "epoll-watches-nearly-used",
        "clock-unsynchronised", "clock-timezone-offset", "clock-stepped", "clock-rtc-offset", "clock-faked", "clock-offset",
        "tcp-listen-queue-fills", "tcp-ports-nearly-exhausted", "tcp-orphans", "conntrack-nearly-full",
    ),
    "slow": (
        "io-pressure",
        "dentry-share", "lock-contended", "thread-ping-pong", "ttsp-dominates", "bias-revocations", "thread-dumps-sampled",
        "jvm-gc-cpu", "jvm-paused",
        "tcp-application-does-not-read", "tcp-listen-overflows", "tcp-host-retransmits", "tcp-host-out-of-order",
        "tcp-buffers-small", "tcp-syn-queue-full", "clock-source-slow",
        "io-tiny-reads", "io-tiny-writes", "io-sync-dominates",
        "irq-on-isolated-cpu", "irq-far-node", "irq-backlog-drops",
        "thread-uses-whole-cpu", "load-not-cpu",
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
_NOT_READ = ("tcp-application-does-not-read", "tcp-peer-does-not-read")
# What follows where nothing in a process goes on, and in a JVM that is slowed down.
_OF_A_STUCK_PROCESS = (
    *_NOT_READ, "tcp-listen-queue-full", "tcp-listen-queue-fills", "pipe-full-writer-blocked", "zombies",
)  # fmt: skip
# Their entity is the one that waits; the cause is in the process that should read.
HELD_UP_BY_ANOTHER = frozenset({"pipe-full-writer-blocked", "tcp-peer-does-not-read"})
_OF_A_SLOW_JVM = ("ttsp-dominates", "late-to-safepoint", "jvm-gc-share", "jvm-paused")
# What only the host's checks find.
_OF_HOST_CHECKS = {
    "stuck": ("unit-failed", "kernel-task-hung"),
    "slow": ("network-link-slow", "network-drops", "udp-receive-buffer-full"),
    "soon": (
        "neighbour-table-nearly-full",
        "kernel-tainted",
        "unit-job-failed",
        "program-crashes",
        "zombies",
    ),
    "tidy": ("kernel-warning", "network-errors-counted"),
}
FINDINGS: dict[str, tuple[str, tuple[str, ...]]] = {
    **{code: (class_, ()) for class_, codes in (*_EXPLAIN_NONE.items(), *_OF_HOST_CHECKS.items()) for code in codes},
    # Processes that make no progress.
    "process-stopped": ("stuck", (*_OF_A_STUCK_PROCESS, "attach-stopped", "safepoint-not-reached", "lock-contended")),
    "safepoint-not-reached": ("stuck", (*_OF_A_STUCK_PROCESS, "attach-stopped", "attach-probe-failed", "ttsp-dominates", "jvm-paused", "lock-contended")),
    "io-stuck": ("stuck", (*_OF_A_STUCK_PROCESS, "kernel-task-hung", "safepoint-not-reached", "pool-exhausted", "lock-contended")),
    "jvm-deadlock": (
        "stuck",
        (*_OF_A_STUCK_PROCESS, "lock-contended", "pool-exhausted", "connections-exhausted", "virtual-threads-pinned", "tcp-close-wait"),
    ),
    "pipe-deadlock": ("stuck", ("pipe-full-writer-blocked",)),
    "pool-waits-for-itself": ("stuck", ("pool-exhausted", "connections-exhausted")),
    "connections-exhausted": ("stuck", ("pool-exhausted",)),
    # Memory.
    "memory-short": ("soon", ("swapping", "swap-nearly-full", "memory-pressure", "major-faults")),
    "huge-pages-unused": ("soon", ("memory-short",)),
    "tmpfs-large": ("soon", ("memory-short",)),
    "memory-unaccounted": ("soon", ("memory-short",)),
    "shared-memory-unheld": ("soon", ("tmpfs-large", "memory-short")),
    "deleted-files-in-memory": ("soon", ("tmpfs-large", "memory-short")),
    "swapping": ("slow", ("memory-pressure", "major-faults", "io-pressure", *_OF_A_SLOW_JVM)),
    "memory-pressure": ("slow", ("major-faults", *_OF_A_SLOW_JVM)),
    "major-faults": ("slow", _OF_A_SLOW_JVM),
    "io-cache-thrash": ("slow", ("memory-pressure", "major-faults")),
    "memory-near-limit": (
        "soon",
        ("memory-throttled", "memory-heap-outgrows-limit", "oom-killed", "oom-counted", "io-cache-thrash", "memory-pressure", "major-faults"),
    ),
    "memory-throttled": ("slow", ("memory-pressure", "major-faults", *_OF_A_SLOW_JVM)),
    "oom-killed": ("stuck", ("oom-reported", "oom-counted", "exit-137")),
    "memory-keeps-growing": ("soon", ("memory-heap-outgrows-limit",)),
    **dict.fromkeys(
        (
            "memory-in-arenas", "memory-in-malloc", "memory-in-class-loaders", "memory-in-thread-stacks", "memory-in-direct-buffers",
            "memory-in-metaspace", "memory-in-code-cache", "memory-in-shared-memory", "memory-in-anonymous-mappings",
            "memory-in-other-processes", "memory-in-tmpfs", "memory-of-dead-process",
        ),
        ("soon", ("memory-keeps-growing", "memory-heap-outgrows-limit")),
    ),
    "dentry-negative": ("slow", ("dentry-pressure", "dentry-share")),
    "dentry-pressure": ("soon", ("dentry-share",)),
    "dentry-cgroup": ("soon", ("memory-near-limit", "memory-pressure")),
    # CPUs.
    "cpu-throttled": ("slow", ("jvm-cpu-wait", "tcp-listen-queue-fills", *_NOT_READ, *_OF_A_SLOW_JVM)),
    "cpu-stolen": ("slow", ("runnable-above-cpus", "jvm-cpu-wait", "ttsp-dominates", "late-to-safepoint")),
    "cpu-temperature-critical": ("soon", ("cpu-thermal-throttled",)),
    "cpu-thermal-throttled": ("slow", ("cpu-frequency-capped", "runnable-above-cpus", "jvm-cpu-wait")),
    "cpu-frequency-capped": ("slow", ("runnable-above-cpus", "jvm-cpu-wait")),
    "runnable-above-cpus": ("slow", ("jvm-cpu-wait", "ttsp-dominates", "late-to-safepoint")),
    "jvm-cpu-wait": ("slow", ("ttsp-dominates", "late-to-safepoint")),
    "thread-pinned-to-busy-cpu": ("slow", ("jvm-cpu-wait", "ttsp-dominates", "late-to-safepoint")),
    "irq-pinned-thread": ("slow", ("jvm-cpu-wait", "ttsp-dominates", "late-to-safepoint", *_NOT_READ)),
    "irq-cpu-saturated": ("slow", ("irq-backlog-drops", "tcp-host-retransmits")),
    # JVMs.
    "late-to-safepoint": ("slow", ("ttsp-dominates",)),
    "class-keeps-growing": ("soon", ("heap-nearly-full", "jvm-gc-share", "jvm-gc-cpu")),
    "metaspace-keeps-growing": ("soon", ("class-keeps-growing", "jvm-gc-share")),
    "direct-memory-keeps-growing": ("soon", ("class-keeps-growing",)),
    "zlib-memory-keeps-growing": ("soon", ("class-keeps-growing",)),
    "heap-nearly-full": (
        "soon",
        ("jvm-young-collections-free-little", "jvm-gc-share", "jvm-gc-cpu", "lock-contended", *_NOT_READ, "tcp-listen-queue-fills"),
    ),
    "jvm-young-collections-free-little": ("slow", ("jvm-gc-share", "jvm-gc-cpu")),
    "jvm-gc-share": ("slow", ("jvm-gc-cpu", "lock-contended", *_NOT_READ, "tcp-listen-queue-fills")),
    "crash-java-heap": ("stuck", ("java-heap-exhausted",)),
    **dict.fromkeys(
        ("crash-map-count", "crash-threads", "crash-address-space", "crash-native-memory", "crash-compressed-oops", "crash-overcommit"),
        ("stuck", ("jvm-native-memory-refused",)),
    ),
    # Storage.
    "device-offline": (
        "stuck",
        ("storage-error", "filesystem-error", "file-system-read-only", "io-device-hung", "io-device-slow", "io-stuck", "raid-degraded"),
    ),
    "storage-error": (
        "soon",
        ("filesystem-error", "file-system-read-only", "io-device-hung", "io-device-slow", "io-stuck", "raid-degraded"),
    ),
    "filesystem-error": ("soon", ("file-system-read-only", "kernel-task-hung")),
    "file-system-read-only": ("stuck", ("tmp-read-only",)),
    "file-server-silent": ("stuck", ("io-stuck", "kernel-task-hung")),
    "io-device-hung": ("stuck", ("io-stuck", "kernel-task-hung")),
    "io-device-slow": ("slow", ("io-stuck",)),
    "io-cgroup-throttled": ("slow", ("io-stuck", "io-sync-dominates", "major-faults")),
    "deleted-files-held": ("soon", ("disk-full", "disk-nearly-full")),
    "disk-full": ("soon", ("tmp-full",)),
    "disk-inodes-used-up": ("soon", ("tmp-full",)),
    # Network.
    "tcp-listen-queue-full": ("stuck", ("tcp-listen-overflows", "tcp-syn-queue-full", "tcp-listen-queue-fills")),
    "tcp-peer-does-not-read": ("stuck", ("connections-exhausted", "pool-exhausted", "lock-contended")),
    "tcp-peer-does-not-answer": ("stuck", ("connections-exhausted", "pool-exhausted", "lock-contended")),
    "tcp-mtu-black-hole": ("stuck", ("tcp-peer-does-not-answer", "connections-exhausted", "pool-exhausted")),
    "tcp-connect-unanswered": ("slow", ("connections-exhausted", "pool-exhausted")),
    "tcp-ports-exhausted": ("stuck", ("tcp-ports-nearly-exhausted", "connections-exhausted", "pool-exhausted")),
    "tcp-network-loses": ("slow", ("tcp-host-retransmits",)),
    "tcp-memory-pressure": ("slow", ("tcp-orphans", "tcp-host-retransmits")),
    "conntrack-full": ("stuck", ("conntrack-nearly-full", "tcp-connect-unanswered", "tcp-host-retransmits")),
    "network-link-down": ("stuck", ("tcp-host-retransmits",)),
    "network-half-duplex": ("slow", ("network-errors", "tcp-host-retransmits")),
    "network-errors": ("slow", ("tcp-host-retransmits", "tcp-host-out-of-order")),
    "network-saturated": ("slow", ("network-drops", "tcp-host-retransmits")),
    "link-flapping": ("slow", ("network-errors", "tcp-host-retransmits")),
    "neighbour-table-full": ("stuck", ("neighbour-table-nearly-full", "tcp-connect-unanswered")),
    "tcp-close-wait": ("soon", ("fds-keep-growing", "rlimit-nearly-used")),
    # Limits.
    "pipes-keep-growing": ("soon", ("fds-keep-growing", "rlimit-nearly-used")),
    "fds-keep-growing": ("soon", ("rlimit-nearly-used",)),
    "rlimit-nearly-used": ("soon", ("attach-no-descriptor",)),
    "threads-none-left": ("stuck", ("threads-nearly-none-left",)),
    "stack-above-ram": ("stuck", ("threads-none-left",)),
    "seccomp-refuses-threads": ("stuck", ("threads-none-left",)),
    # The kernel, the hardware, the clock.
    "hardware-error": ("soon", ("kernel-oops", "kernel-tainted")),
    "kernel-oops": ("soon", ("kernel-tainted", "kernel-task-hung", "kernel-lockup")),
    "kernel-lockup": ("slow", ("kernel-tainted",)),
    "clock-daemon-unsynchronised": ("soon", ("clock-unsynchronised", "clock-offset")),
    "clock-two-daemons": ("soon", ("clock-stepped", "clock-offset")),
    # Tools that do not reach a JVM.
    **dict.fromkeys(
        ("attach-stopped", "attach-no-descriptor", "attach-listener-ended", "attach-disabled", "attach-xrs"),
        ("tools", ("attach-probe-failed",)),
    ),
    **dict.fromkeys(
        ("hsperf-off", "hsperf-nameless", "hsperf-dir-owner", "hsperf-dir-mode", "hsperf-dir-symlink"), ("tools", ("hsperf-file-missing",))
    ),
    **dict.fromkeys(("tmp-read-only", "tmp-full", "tmp-closed"), ("tools", ("hsperf-file-missing", "attach-probe-failed"))),
    "tmp-setgid": ("tools", ("attach-socket-group",)),
    "attach-socket-owner": ("tools", ("attach-socket-group",)),
}  # fmt: skip
