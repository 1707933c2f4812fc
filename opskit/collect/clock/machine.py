"""The machine's clocksource, hardware clock and hypervisor, from /sys.

/sys/devices/system/clocksource/clocksource0/current_clocksource    tsc
/sys/class/rtc/rtc0/since_epoch                                     1795349811
/sys/class/rtc/rtc0/hctosys                                         1: the system clock was set from it at boot
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.clock.facts import Rtc, Source
from opskit.proc.config.adjtime import parse_rtc_zone
from opskit.proc.fs import optional
from opskit.quantities import integer

if TYPE_CHECKING:
    from opskit.host import Host
    from opskit.proc.fs import ProcFS
    from opskit.proc.kernel.clock_reads import ReadCost

_CLOCKSOURCE = ("sys", "devices", "system", "clocksource", "clocksource0")
_MOST_SOURCES, _MOST_RTCS, _CPU_BYTES = 20, 8, 8192
_GUEST_SOURCES = ("kvm-clock", "xen", "hyperv_clocksource_tsc_page", "hyperv_clocksource_msr", "vmware")
_GUEST_WORDS = ("qemu", "kvm", "vmware", "virtualbox", "xen", "amazon ec2", "google compute", "virtual machine", "bochs", "openstack", "parallels", "bhyve")  # fmt: skip


def read_source(fs: ProcFS, cost: ReadCost | None) -> Source:
    """The clocksource."""
    current = fs.maybe_root(str.split, *_CLOCKSOURCE, "current_clocksource", default=[])
    available = fs.maybe_root(str.split, *_CLOCKSOURCE, "available_clocksource", default=[])
    return Source(current[0] if current else None, tuple(available[:_MOST_SOURCES]), cost)


def read_rtc(host: Host) -> Rtc | None:
    """The hardware clock that sets the system clock at boot, or the first one; None: there is none that can be read."""
    fs = host.fs
    names = fs.names_root("sys", "class", "rtc")[:_MOST_RTCS]
    setters = [name for name in names if fs.maybe_root(_number, "sys", "class", "rtc", name, "hctosys") == 1]
    for name in (*setters, *names):
        seconds = fs.maybe_root(_number, "sys", "class", "rtc", name, "since_epoch")
        if seconds is not None:
            keeps = fs.maybe_root(parse_rtc_zone, "etc", "adjtime")
            return Rtc(name, seconds + 0.5 - host.now().timestamp(), keeps)
    return None


def is_virtual(fs: ProcFS, source: str | None) -> bool | None:
    """Whether a hypervisor runs this machine: by its CPU, its firmware or its clocksource; None: unknown."""
    if source in _GUEST_SOURCES or fs.root_exists("sys", "hypervisor", "type"):
        return True
    named = [
        fs.maybe_root(str.lower, "sys", "class", "dmi", "id", each) or "" for each in ("sys_vendor", "product_name")
    ]
    if any(word in name for name in named for word in _GUEST_WORDS):
        return True
    # Of one CPU: the whole file takes milliseconds on large machines.
    head = optional(fs.read_at, fs.path("cpuinfo"), 0, _CPU_BYTES, default=b"")
    flags = head.partition(b"\nflags")[2].partition(b"\n")[0].split()
    if b"hypervisor" in flags:
        return True
    return False if flags and any(named) else None


def _number(text: str) -> int | None:
    return integer(text.strip())
