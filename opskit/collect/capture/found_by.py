"""Which checks of doctor can find a code: `--when finding=CODE` runs these alone."""

from __future__ import annotations

# By check: codes, or how they begin (with a dash at the end).
_CODES: dict[str, tuple[str, ...]] = {
    "pipes": ("pipe-", "pipes-", "fifo-"),
    "tcp": ("tcp-", "conntrack-"),
    "cswitch": ("thread-ping-pong", "thread-uses-", "thread-pinned-", "cpu-throttled", "cpu-stolen", "runnable-", "jvm-cpu-wait", "irq-pinned-thread"),
    "irqs": ("irq-", "irqbalance-"),
    "io": ("io-pressure", "io-stuck", "io-device-", "io-cgroup-"),
    "limits": ("threads-", "stack-", "seccomp-", "rlimit-"),
    "fds": ("file-max-", "inotify-", "epoll-", "rlimit-"),
    "dentry": ("dentry-",),
    "mem": ("memory-commit-limit", "memory-short", "memory-unaccounted", "memory-throttled", "memory-near-limit", "huge-pages-", "tmpfs-"),
    "oom": ("oom-counted", "oom-killed"),
    "clock": ("clock-",),
    "jvms": (
        "memory-heap-outgrows-limit", "memory-near-limit", "safepoint-not-reached", "heap-nearly-full", "jvm-young-", "lock-contended", "jvm-deadlock",
        "process-stopped", "oom-killed", "cpu-throttled", "jvm-gc-share",
    ),
    "hsperf-check": ("attach-", "hsperf-", "tmp-"),
    "safepoints": ("ttsp-", "bias-", "thread-dumps-", "jvm-paused", "late-to-", "jvm-gc-share"),
    "cpu": ("load-", "cpu-offline", "cpu-stolen", "runnable-"),
    "memory-pressure": ("swap-", "swapping", "memory-pressure"),
    "disks": ("disk-", "shared-memory-unheld", "file-system-", "deleted-files-held"),
    "devices": ("raid-", "device-", "storage-", "filesystem-"),
    "network": ("network-", "udp-", "neighbour-", "link-"),
    "processes": ("zombies", "process-stopped"),
    "kernel": (
        "kernel-", "program-", "file-server-", "hardware-", "threads-nearly-", "file-max-", "conntrack-nearly-", "tcp-syn-queue-full", "tcp-memory-",
        "neighbour-", "network-errors", "link-", "storage-", "filesystem-",
    ),
    "thermal": ("cpu-temperature-", "cpu-thermal-", "cpu-frequency-"),
    "units": ("unit-",),
    "java-threads": ("virtual-", "pool-", "connections-", "jvm-gc-cpu", "lock-contended", "jvm-deadlock", "cpu-throttled", "jvm-cpu-wait"),
}  # fmt: skip


def checks_of(code: str) -> tuple[str, ...]:
    """The names of the checks; none: doctor does not find it."""
    return tuple(
        check
        for check, codes in _CODES.items()
        if any(code == each or (each.endswith("-") and code.startswith(each)) for each in codes)
    )
