"""What a machine is made of and how it is set: hardware, kernel, kernel parameters, mounts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.collect.compare.facts import BYTES, CONFIGURED, COUNT, HOST, Fact, Known, fact_map
from opskit.collect.compare.mounts import mount_facts
from opskit.collect.compare.sysctls import sysctl_facts
from opskit.jvm.launch import parse_release
from opskit.proc.config.adjtime import parse_rtc_zone
from opskit.proc.files.cpu_times import parse_cpu_list, parse_cpu_times
from opskit.proc.files.cpuinfo import parse_cpuinfo
from opskit.proc.files.meminfo import parse_meminfo
from opskit.proc.fs import optional
from opskit.quantities import integer, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.host import Host

_CPU, _CLOCK = ("sys", "devices", "system", "cpu"), ("sys", "devices", "system", "clocksource", "clocksource0")
_THP = ("sys", "kernel", "mm", "transparent_hugepage")
_CHOSEN = re.compile(r"\[([\w+\-. ]{1,40})\]")
_MOST_BLOCKS, _MOST_VULNERABILITIES, _MOST_GOVERNORS = 64, 40, 256
_QUEUE = ("scheduler", "rotational", "read_ahead_kb", "nr_requests")
# Words of the kernel's command line that name a disk, an image or a console of this machine.
_IDENTITY = ("root", "BOOT_IMAGE", "resume", "initrd", "console", "ip", "nfsroot", "rd.lvm.lv", "rd.luks.uuid", "rd.md.uuid", "systemd.machine_id", "ds", "hostname", "boot", "earlyprintk", "pci", "virtio_mmio.device", "crashkernel")  # fmt: skip


def machine_facts(host: Host) -> Known:
    """All of them. What cannot be read is not among them."""
    facts = [
        *_kernel(host),
        *_huge_pages(host),
        *sysctl_facts(host.fs),
        *_hardware(host),
        *_system(host),
        *_disks(host),
    ]
    whole = ["sysctl.", "boot."] if any(fact.key.startswith("boot.") for fact in facts) else ["sysctl."]
    mounts = mount_facts(host.fs)
    return Known(fact_map([*facts, *mounts]), tuple(whole + (["mount."] if mounts else [])))


def _text(host: Host, *parts: str) -> str | None:
    found = host.fs.maybe_root(str.strip, *parts)
    return found or None


def _kernel(host: Host) -> Iterator[Fact]:
    release = host.fs.maybe(str.strip, "sys", "kernel", "osrelease")
    if release:
        yield Fact("kernel.release", CONFIGURED, "kernel", "kernel release", release)
    for word in (host.fs.maybe(str.split, "cmdline") or [])[:200]:
        name, _, value = word.partition("=")
        if word in ("-", "--"):  # the rest is for init
            break
        if name not in _IDENTITY and not name.startswith(("BOOT", "vmlinu")):
            yield Fact(f"boot.{name}", CONFIGURED, "kernel", f"boot parameter {name}", value or "on")
    for name in host.fs.names_root(*_CPU, "vulnerabilities")[:_MOST_VULNERABILITIES]:
        found = _text(host, *_CPU, "vulnerabilities", name)
        if found:
            yield Fact(f"mitigation.{name}", CONFIGURED, "kernel", f"mitigation of {name}", found[:200])


def _huge_pages(host: Host) -> Iterator[Fact]:
    for name in ("enabled", "defrag", "shmem_enabled", "khugepaged/defrag"):
        found = _text(host, *_THP, *name.split("/"))
        if found:
            chosen = _CHOSEN.search(found)
            yield Fact(f"thp.{name}", CONFIGURED, "kernel", f"transparent huge pages: {name}", chosen[1] if chosen else found[:40])  # fmt: skip
    ksm = _text(host, "sys", "kernel", "mm", "ksm", "run")
    if ksm:
        yield Fact("ksm.run", CONFIGURED, "kernel", "ksm run", ksm[:40])


def _hardware(host: Host) -> Iterator[Fact]:
    fs = host.fs
    online = fs.maybe_root(parse_cpu_list, *_CPU, "online") or frozenset(fs.maybe(parse_cpu_times, "stat", default={}))
    if online:
        yield Fact("host.cpus", HOST, "CPU", "CPUs online", len(online), COUNT)
    info = fs.maybe(parse_cpuinfo, "cpuinfo")
    if info is not None and info.model:
        yield Fact("host.cpu_model", HOST, "CPU", "CPU model", info.model)
    if host.machine:
        yield Fact("host.machine", HOST, "CPU", "architecture", host.machine)
    governors = {
        _text(host, *_CPU, f"cpu{cpu}", "cpufreq", "scaling_governor") for cpu in sorted(online)[:_MOST_GOVERNORS]
    }
    if known := sorted(each for each in governors if each):
        yield Fact("host.governor", HOST, "CPU", "frequency governor", ", ".join(known))
    top = {_text(host, *_CPU, f"cpu{cpu}", "cpufreq", "scaling_max_freq") for cpu in sorted(online)[:_MOST_GOVERNORS]}
    if known := sorted(each for each in top if each):
        yield Fact("host.max_frequency", HOST, "CPU", "highest frequency (kHz)", ", ".join(known))
    for name, parts in (
        ("no_turbo", ("intel_pstate", "no_turbo")),
        ("boost", ("cpufreq", "boost")),
        ("smt", ("smt", "control")),
    ):
        found = _text(host, *_CPU, *parts)
        if found:
            yield Fact(f"host.{name}", HOST, "CPU", {"no_turbo": "turbo off", "smt": "SMT"}.get(name, name), found)
    nodes = [
        name for name in fs.names_root("sys", "devices", "system", "node") if name[:4] == "node" and name[4:].isdigit()
    ]
    if nodes:
        yield Fact("host.nodes", HOST, "CPU", "NUMA nodes", len(nodes), COUNT)
    memory = fs.maybe(parse_meminfo, "meminfo", default={})
    for key, name in (("MemTotal", "memory"), ("SwapTotal", "swap"), ("HugePages_Total", "huge pages")):
        if key in memory:
            unit = COUNT if key.startswith("Huge") else BYTES
            yield Fact(f"host.{name.replace(' ', '_')}", HOST, "memory", name, memory[key], unit)


def _system(host: Host) -> Iterator[Fact]:
    source = _text(host, *_CLOCK, "current_clocksource")
    if source:
        yield Fact("host.clocksource", HOST, "clock", "clocksource", source)
    rtc = host.fs.maybe_root(parse_rtc_zone, "etc", "adjtime")
    if rtc:
        yield Fact("host.rtc_zone", HOST, "clock", "hardware clock keeps", str(rtc))
    zone = _zone(host)
    if zone:
        yield Fact("host.time_zone", HOST, "clock", "time zone", zone)
    rule = _zone_rule(host)
    if rule:
        yield Fact("host.zone_rule", HOST, "clock", "rule of the time zone", rule)
    release = host.fs.maybe_root(parse_release, "etc", "os-release", default={})
    if release.get("PRETTY_NAME"):
        yield Fact("host.os", HOST, "system", "operating system", release["PRETTY_NAME"][:100])
    for file, name in (("sys_vendor", "vendor"), ("product_name", "model")):
        found = _text(host, "sys", "class", "dmi", "id", file)
        if found:
            yield Fact(f"host.{name}", HOST, "system", f"machine {name}", found[:100])


def _zone(host: Host) -> str | None:
    """By the link /etc/localtime; Debian also has /etc/timezone."""
    fs = host.fs
    target = optional(fs.root_links, "etc", default={}).get("localtime", "")
    if "/zoneinfo/" in target:
        return target.rpartition("/zoneinfo/")[2][:100]
    return _text(host, "etc", "timezone")


def _zone_rule(host: Host) -> str | None:
    """The last line of /etc/localtime (tzfile(5)): `CET-1CEST,M3.5.0,M10.5.0/3`."""
    text = host.fs.maybe_root(str, "etc", "localtime", default="")
    return text.rstrip("\n").rpartition("\n")[2][:100] or None if text.startswith("TZif") else None


def _disks(host: Host) -> Iterator[Fact]:
    for name in host.fs.names_root("sys", "block")[:_MOST_BLOCKS]:
        if name.startswith(("loop", "ram", "zram", "sr", "fd", "dm-")):
            continue
        for file in _QUEUE:
            found = _text(host, "sys", "block", name, "queue", file)
            if found:
                chosen = _CHOSEN.search(found)
                yield Fact(f"disk.{name}.{file}", HOST, "disk", f"{name} {file}", chosen[1] if chosen else found[:40])
        sectors = integer(_text(host, "sys", "block", name, "size") or "")
        if sectors:
            yield Fact(f"disk.{name}.size", HOST, "disk", f"{name} size", size(sectors * 512))
