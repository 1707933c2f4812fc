"""What findings of class tidy are called when they are counted: `1 stale attach socket`, `34 stale attach sockets`."""

from __future__ import annotations

from opskit.quantities import plural

TIDY = {
    "dentry-dropped": ("drop of caches", "drops of caches"),
    "attach-socket-leftover": ("stale attach socket", "stale attach sockets"),
    "attach-trigger-leftover": ("stale attach trigger file", "stale attach trigger files"),
    "hsperf-file-stale": ("stale hsperfdata file", "stale hsperfdata files"),
    "hsperf-leftover": ("hsperfdata file of an ended JVM", "hsperfdata files of ended JVMs"),
    "memory-in-mapped-files": ("process with much memory in mapped files", "processes with much memory in mapped files"),
    "memory-in-page-cache": ("cgroup with much page cache", "cgroups with much page cache"),
    "memory-in-huge-pages": ("process with memory in huge pages", "processes with memory in huge pages"),
    "memory-in-reserved-huge-pages": ("reserve of huge pages", "reserves of huge pages"),
    "tcp-time-wait-full": ("full TIME_WAIT table", "full TIME_WAIT tables"),
    "tcp-drops-counted": ("counter of dropped packets", "counters of dropped packets"),
    "network-errors-counted": ("interface with errors since boot", "interfaces with errors since boot"),
    "clock-leap-second": ("leap second", "leap seconds"),
    "clock-rate": ("clock rate", "clock rates"),
    "clock-time-namespace": ("time namespace", "time namespaces"),
    "clock-zone-differs": ("process with another time zone", "processes with another time zone"),
    "clock-zone-missing": ("missing time zone", "missing time zones"),
    "clock-daemon-powerless": ("time daemon that may not set the clock", "time daemons that may not set the clock"),
    "clock-server-unsynchronised": ("unsynchronised time server", "unsynchronised time servers"),
    "io-writes-cancelled": ("process whose writes were cancelled", "processes whose writes were cancelled"),
    "irqbalance-ignores-isolated": ("irqbalance on isolated CPUs", "irqbalances on isolated CPUs"),
    "cpu-offline": ("note on offline CPUs", "notes on offline CPUs"),
    "kernel-warning": ("warning of the kernel", "warnings of the kernel"),
    "crash-jdk-old": ("crash of an old JDK", "crashes of old JDKs"),
    "hdr-log-cut": ("cut latency log", "cut latency logs"),
    "hdr-precision-differs": ("latency log of another precision", "latency logs of another precision"),
    "hdr-service-time-alone": ("latency log of service times", "latency logs of service times"),
    "hdr-times-mixed": ("latency log of mixed times", "latency logs of mixed times"),
}  # fmt: skip
NOTE = "note"  # stands for the codes that have no words of their own


def counted(code: str, number: int) -> str:
    """`34 stale attach sockets`; `2 notes` for NOTE."""
    return plural(number, *TIDY.get(code, ("note", "notes")))
