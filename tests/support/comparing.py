"""Machines as `opskit compare` sees them, built by hand."""

from __future__ import annotations

from opskit.collect.compare.facts import (
    CONFIGURED,
    COUNT,
    CPUS,
    HOST,
    MEASURED,
    SHARE,
    Fact,
    Facts,
    JvmFacts,
    Known,
    Machine,
    fact_map,
)

WHOLE = ("flag.", "property.", "agent.", "switch.", "jar.", "sysctl.", "mount.", "boot.")


def setting(key, value, area="flags", unit=""):
    """A configured fact."""
    return Fact(key, HOST if key.startswith("host.") else CONFIGURED, area, key, value, unit)


def share(key, value, unit=SHARE, **more):
    """A measured fact."""
    return Fact(key, MEASURED, "CPU", key, value, unit, **more)


def known(*facts):
    """These facts, of which the others are not set."""
    return Known(fact_map(list(facts)), WHOLE)


def jvm(pid=7, main="Main", *facts, command=None, line=""):
    """A JVM with these facts."""
    return JvmFacts(pid, main, command or main, line or f"java {main}", known(*facts), (str(pid),))


def machine(label="x.tgz", *facts, jvms=(), name="web-1", window_s=1.0):
    """A machine with these facts."""
    return Machine(
        label,
        "capture",
        name,
        "2026-11-24T00:00:00Z",
        2,
        window_s,
        known(*facts),
        tuple(jvms),
        (name,),
        options=("--from", label),
    )


def sides(bad=(), good=(), *, jvm_bad=None, jvm_good=None, window_s=1.0):
    """Two machines, with one JVM each where its facts are given."""
    jvms = [() if facts is None else (jvm(pid, "Main", *facts),) for pid, facts in ((4007, jvm_bad), (4008, jvm_good))]
    return Facts(
        machine("bad.tgz", *bad, jvms=jvms[0], window_s=window_s),
        machine("good.tgz", *good, jvms=jvms[1], name="web-2", window_s=window_s),
    )


def throttled_sides():
    """BAD has half a CPU and a steal of 20 %, GOOD four CPUs and neither; a kernel parameter differs, too."""
    return sides(
        [setting("host.cpus", 2, "CPU", COUNT), setting("sysctl.vm.swappiness", "10", "sysctl"), share("host.cpu.steal", 0.2)],
        [setting("host.cpus", 4, "CPU", COUNT), setting("sysctl.vm.swappiness", "60", "sysctl"), share("host.cpu.steal", 0.0)],
        jvm_bad=[
            share("jvm.throttled", 0.8, events=20), setting("cgroup.cpu_quota", 0.5, "cgroup", CPUS), setting("jvm.cpus", 1, "cgroup", COUNT),
        ],
        jvm_good=[
            share("jvm.throttled", 0.0, events=0), setting("cgroup.cpu_quota", "none", "cgroup", CPUS), setting("jvm.cpus", 4, "cgroup", COUNT),
        ],
    )  # fmt: skip
