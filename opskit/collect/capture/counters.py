"""What a capture reads again at each sample: counters and gauges, in one fixed order. All else is read once."""

from __future__ import annotations

import re

# Below PROC. A file that a machine lacks costs one failed open a sample.
HOST = (
    "stat", "schedstat", "softirqs", "interrupts", "vmstat", "meminfo", "loadavg", "uptime", "diskstats", "zoneinfo", "buddyinfo",
    "pressure/cpu", "pressure/memory", "pressure/io", "pressure/irq", "slabinfo", "sys/fs/dentry-state", "sys/fs/inode-nr",
    "sys/fs/file-nr", "sys/kernel/ns_last_pid", "sys/net/netfilter/nf_conntrack_count",
)  # fmt: skip
NETWORK = (
    "dev", "snmp", "snmp6", "netstat", "sockstat", "sockstat6", "softnet_stat", "udp", "udp6", "raw", "icmp", "packet",
    "stat/arp_cache", "stat/ndisc_cache", "stat/nf_conntrack", "stat/rt_cache",
)  # fmt: skip
NETWORKS = ("thread-self/net", "1/net")
PROCESS = ("stat", "status", "schedstat", "io")
THREAD = ("stat", "schedstat", "status", "io", "syscall", "wchan")

# Below a cgroup's directory; either version.
CGROUP = (
    "cpu.stat", "cpuacct.usage", "memory.current", "memory.stat", "memory.events", "memory.events.local", "memory.pressure",
    "memory.swap.current", "memory.swap.events", "cpu.pressure", "io.pressure", "io.stat", "pids.current", "pids.events",
    "memory.usage_in_bytes", "memory.failcnt", "memory.oom_control", "memory.memsw.usage_in_bytes", "memory.max_usage_in_bytes",
    "memory.kmem.usage_in_bytes", "cgroup.freeze", "cgroup.events", "freezer.state", "blkio.throttle.io_service_bytes",
    "blkio.throttle.io_serviced", "blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_serviced_recursive",
)  # fmt: skip

# Below SYS, by the directory whose entries have them.
DEVICES = (
    ("class/net", ("statistics/*", "carrier", "carrier_changes", "operstate", "speed")),
    ("block", ("stat", "inflight", "device/ioerr_cnt", "device/iodone_cnt", "device/iorequest_cnt", "device/iotmo_cnt", "mm_stat", "bd_stat")),
    ("class/thermal", ("temp", "cur_state")),
    ("devices/system/cpu", (
        "cpufreq/scaling_cur_freq", "thermal_throttle/core_throttle_count", "thermal_throttle/package_throttle_count",
        "thermal_throttle/core_throttle_total_time_ms", "thermal_throttle/package_throttle_total_time_ms",
    )),
    ("fs/ext4", ("errors_count", "warning_count", "msg_count")),
    ("fs/btrfs", ("devinfo/*/error_stats",)),
)  # fmt: skip

_PERFDATA = re.compile(r"/hsperfdata_[^/]+/[0-9]+\Z")
_POSITION = re.compile(r"/[0-9]+/fdinfo/[0-9]+\Z")
_OF_PROCESS = re.compile(r"/(?:[0-9]+|self|thread-self)/(?:task/[0-9]+/)?(?P<name>[a-z_]+)\Z")
_DEVICE_FILES = frozenset(name.rpartition("/")[2] for _, names in DEVICES for name in names)


def is_counter(path: str) -> bool:
    """Whether a file is read again at each sample."""
    if _PERFDATA.search(path) or _POSITION.search(path):
        return True
    name = path.rpartition("/")[2]
    found = _OF_PROCESS.search(path)
    if found is not None and name in (*PROCESS, *THREAD):
        return True
    if path.startswith("/sys/fs/cgroup/") or "/fs/cgroup/" in path:
        return name in CGROUP
    if "/sys/" in path and "/statistics/" in path:
        return True
    below = path.partition("/proc/")[2]
    return below in HOST or any(path.endswith(f"/{each}") for each in NETWORK) or name in _DEVICE_FILES
