r"""The machine at the time of a crash: hs_err's section SYSTEM, with the container's limits (os_linux.cpp, cgroupSubsystem).

OS:Red Hat Enterprise Linux release 8.2 (Ootpa)                       JDK 8; from 17 on, the name is on the next line
rlimit (soft/hard): STACK 8192k/infinity , CORE 0k/infinity , NPROC 31235/31235 , NOFILE 1024/262144
load average: 5.02 5.70 8.54
/proc/sys/vm/max_map_count (maximum number of memory map areas a process may have): 65530
container_type: cgroupv2
cpu_quota: 200000                                                     or `no quota`, -1
memory_limit_in_bytes: 536870912                                      or `524288 k`, `unlimited`, `not supported`, -1
CPU: total 10 (initial active 10) …
Memory: 4k page, physical 7653248k(7073968k free), swap 0k(0k free)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.jvm.logs.crashes.record import Machine
from opskit.quantities import bytes_of, integer

if TYPE_CHECKING:
    from opskit.jvm.logs.crashes.sections import Sections

_PHYSICAL = re.compile(r"physical ([0-9]{1,18}[kKMG]) ?\(([0-9]{1,18}[kKMG]) free\)")
_SWAP = re.compile(r"swap ([0-9]{1,18}[kKMG]) ?\(([0-9]{1,18}[kKMG]) free\)")
_CPUS = re.compile(r"total ([0-9]{1,6})")
_SIZE = re.compile(r"([0-9]{1,18}) ?([kKMG]?)B?")
_MOST_LIMITS = 64
# JDK 8 to 24 call it memory_limit_in_bytes; newer ones may drop the unit.
_LIMITS = ("memory_limit_in_bytes", "memory_limit", "memory_hard_limit_in_bytes")
_USAGE, _MOST = ("memory_usage_in_bytes", "memory_usage"), ("memory_max_usage_in_bytes", "memory_max_usage")


def parse_machine(found: Sections, maps: int | None) -> Machine:
    """The machine. `maps`: how many mappings the section of dynamic libraries has."""
    memory = found.value("Memory") or ""
    physical, swap = _PHYSICAL.search(memory), _SWAP.search(memory)
    cpus = _CPUS.match(found.value("CPU") or "")
    listed = integer(found.value("Total number of mappings") or "")
    return Machine(
        _os(found),
        integer(cpus[1]) if cpus else None,
        bytes_of(physical[1]) if physical else None,
        _free_bytes(found, bytes_of(physical[1]), bytes_of(physical[2])) if physical else None,
        bytes_of(swap[2]) if swap else None,
        found.value("load average"),
        _limits(found.line("rlimit")),
        found.value("container_type"),
        _first_size(found, _LIMITS),
        _first_size(found, _USAGE),
        _first_size(found, _MOST),
        _container_cpus(found),
        integer(found.value("/proc/sys/vm/max_map_count") or ""),
        maps if listed is None else listed,
        integer(found.value("/proc/sys/kernel/threads-max") or ""),
        integer(found.value("/proc/sys/kernel/pid_max") or ""),
        _size_in(found, "CommitLimit"),
        _size_in(found, "Committed_AS"),
        _size_in(found, "Resident Set Size"),
        _size_in(found, "Virtual Size"),
    )


def size_of(text: str | None) -> int | None:
    """Bytes in `536870912`, `524288 k` or `1 kB`; None for `unlimited`, `not supported` and -1."""
    found = _SIZE.fullmatch((text or "").strip())
    return bytes_of(found[1] + found[2]) if found else None


def _size_in(found: Sections, title: str) -> int | None:
    """The size at the beginning of a value: `5748208 kB`, `50380K (peak: …)`."""
    size = _SIZE.match(found.value(title) or "")
    return bytes_of(size[1] + size[2]) if size else None


def _free_bytes(found: Sections, memory: int | None, free: int | None) -> int | None:
    """MemAvailable, unless the line tells of a container. JDK 8 and 11 print MemFree, which lacks the page cache."""
    available = _size_in(found, "MemAvailable")
    return free if available is None or _size_in(found, "MemTotal") != memory else available


def _first_size(found: Sections, titles: tuple[str, ...]) -> int | None:
    return next((size_of(found.value(title)) for title in titles if found.has(title)), None)


def _os(found: Sections) -> str | None:
    """The name, on one of the lines that follow the title; the kernel where there is no other."""
    name = (found.value("OS") or "").removeprefix("Bsd")  # macOS, JDK 8
    if name and "=" not in name:
        return name.removeprefix("uname:").strip()
    for line in (name, *found.below("OS")):
        key, _, value = line.partition("=")
        if key in ("PRETTY_NAME", "DISTRIB_DESCRIPTION"):
            return value.strip('"')
    return found.value("uname")


def _limits(line: str | None) -> dict[str, str]:
    if line is None:
        return {}
    _, _, text = line.partition(":")
    pairs = (part.split() for part in text.split(",", _MOST_LIMITS)[:_MOST_LIMITS])
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def _container_cpus(found: Sections) -> str | None:
    """The CPUs of the quota: `2`, `0.5`; None without a quota."""
    quota, period = (integer(found.value(title) or "") for title in ("cpu_quota", "cpu_period"))
    return f"{quota / period:g}" if quota and period else None
