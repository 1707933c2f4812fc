"""How each JVM of a machine is set: JDK, collector, heap, flags, limits, cgroup, scheduling, libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.compare.facts import BYTES, CONFIGURED, COUNT, CPUS, Fact, JvmFacts, Known, fact_map
from opskit.collect.compare.libraries import jar_facts, java_home_of, object_facts
from opskit.collect.compare.mounts import mount_facts
from opskit.collect.compare.options import class_path_of, command_of, option_facts, options_of
from opskit.errors import NotSupported
from opskit.jvm.discover import HOTSPOT
from opskit.jvm.launch import jdk_release, parse_words
from opskit.jvm.perfdata.counters import collector, heap
from opskit.jvm.time_zone import java_zone_of
from opskit.proc.cgroup.limits import cpu_limit, memory_limit, pids_limit
from opskit.proc.cgroup.tree import ancestry
from opskit.proc.cpu_topology import cpuset_of
from opskit.proc.files.cpu_times import read_online_cpus
from opskit.proc.files.limits import UNLIMITED, parse_limits
from opskit.proc.files.stat import parse_placement
from opskit.proc.files.status import parse_status
from opskit.proc.fs import optional

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.host import Host
    from opskit.jvm.discover import Jvm

_BYTES = frozenset(("RLIMIT_FSIZE", "RLIMIT_DATA", "RLIMIT_STACK", "RLIMIT_CORE", "RLIMIT_RSS", "RLIMIT_MEMLOCK", "RLIMIT_AS", "RLIMIT_MSGQUEUE"))  # fmt: skip
# Variables that change how a program runs, and hold no secrets.
_VARIABLES = ("LD_PRELOAD", "MALLOC_ARENA_MAX", "MALLOC_CONF", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES", "LANG", "LC_ALL", "TZ", "OMP_NUM_THREADS", "JAVA_TOOL_OPTIONS_SET")  # fmt: skip
_POLICIES = {0: "normal", 1: "FIFO", 2: "RR", 3: "batch", 5: "idle", 6: "deadline"}
_PROPERTIES = ("java.version", "java.vm.version", "java.vm.vendor", "java.vm.name", "java.home", "java.class.path")


def jvm_facts(host: Host, jvm: Jvm) -> JvmFacts:
    """The configured facts of a JVM. Raises GONE and DENIED where it cannot be read at all."""
    fs, pid, perf = host.fs, jvm.pid, jvm.perf
    words = fs.maybe(parse_words, pid, "cmdline", default=[])
    variables = dict(each.partition("=")[::2] for each in fs.maybe(parse_words, pid, "environ", default=[]))
    properties = {name: perf.text(f"java.property.{name}") or "" for name in _PROPERTIES} if perf else {}
    options = options_of(
        words, [f"{key}={value}" for key, value in variables.items()], perf.text("java.rt.vmArgs") if perf else None
    )
    maps = fs.maybe(str, pid, "maps", default="")
    targets = optional(fs.fd_targets, pid, default=[])
    opened = [target.decode("utf-8", "replace") for target in targets if target.endswith(b".jar")]
    shown = {fact.key for fact in option_facts(options_of(words, (), None))}
    are_all = perf is not None or bool(variables)
    jars, jars_known = jar_facts(class_path_of(words, properties), opened)
    objects = object_facts(maps, java_home_of(jvm.libjvm, properties))
    own_mounts = [] if _shares_mounts(host, pid) else mount_facts(fs, pid)
    said = [*option_facts(options)]
    facts = [
        *_jdk(host, jvm, properties), *_heap(jvm), *said, *_limits(host, pid), *_cgroup(host, pid),
        *_process(host, pid, options, variables), *jars, *objects,
        *(each._replace(key=f"jvm_{each.key}", name=f"{each.name} (of the JVM)") for each in own_mounts),
    ]  # fmt: skip
    whole = [
        *(("flag.", "property.", "agent.", "switch.") if options or words else ()), *(("jar.",) if jars_known else ()),
        *(("object.",) if objects else ()), *(("variable.",) if variables else ()), *(("jvm_mount.",) if own_mounts else ()),
    ]  # fmt: skip
    missing = [("counters of the JVM", str(jvm.no_perf))] if perf is None and jvm.no_perf is not None else []
    command = command_of(jvm, words)
    line = " ".join(words) or command
    return JvmFacts(
        pid, jvm.main, command, f"{line} {perf.text('java.rt.vmArgs') or '' if perf else ''}",
        Known(fact_map(facts), tuple(whole), tuple(missing), frozenset(fact.key for fact in said) - shown if are_all else None), (str(pid), str(jvm.ns_pid)), jvm,
    )  # fmt: skip


def _shares_mounts(host: Host, pid: int) -> bool:
    own, first = (optional(host.fs.link, each, "ns", "mnt") for each in (pid, 1))
    return own is None or first is None or own == first


def _jdk(host: Host, jvm: Jvm, properties: Mapping[str, str]) -> Iterator[Fact]:
    release = {} if properties.get("java.version") else jdk_release(host.fs, jvm)
    version = properties.get("java.version") or release.get("JAVA_VERSION")
    full = properties.get("java.vm.version")
    if version:
        yield Fact("jvm.jdk", CONFIGURED, "JDK", "JDK", version)
    if full:
        yield Fact("jvm.build", CONFIGURED, "JDK", "JDK build", full)
    vendor = properties.get("java.vm.vendor") or release.get("IMPLEMENTOR")
    if vendor:
        yield Fact("jvm.vendor", CONFIGURED, "JDK", "JDK vendor", vendor)
    kind = properties.get("java.vm.name") or (None if jvm.kind == HOTSPOT else jvm.kind)
    if kind:
        yield Fact("jvm.kind", CONFIGURED, "JDK", "JVM", kind)


def _heap(jvm: Jvm) -> Iterator[Fact]:
    perf = jvm.perf
    if perf is None:
        return
    name, sizes = collector(perf), heap(perf)
    if name:
        yield Fact("jvm.collector", CONFIGURED, "collector", "collector", name)
    if sizes is not None:
        yield Fact("jvm.heap_max", CONFIGURED, "heap", "maximum heap", sizes.max_bytes, BYTES)
    for key, title in (("sun.gc.policy.gcThreads", "GC threads"), ("sun.ci.threads", "compiler threads")):
        count = perf.number(key)
        if count is not None:
            yield Fact(f"jvm.{title.replace(' ', '_').lower()}", CONFIGURED, "heap", title, count, COUNT)
    for number, title in ((0, "young generation"), (1, "old generation")):
        top = perf.number(f"sun.gc.generation.{number}.maxCapacity")
        text = perf.text(f"sun.gc.generation.{number}.name")
        if top is not None and top >= 0:
            yield Fact(f"jvm.generation.{number}.max", CONFIGURED, "heap", f"limit of the {title}", top, BYTES)
        if text:
            yield Fact(f"jvm.generation.{number}.name", CONFIGURED, "heap", f"{title}: name", text)


def _limits(host: Host, pid: int) -> Iterator[Fact]:
    for name, limit in host.fs.maybe(parse_limits, pid, "limits", default={}).items():
        soft = "unlimited" if limit.soft == UNLIMITED else limit.soft
        unit = BYTES if name in _BYTES else COUNT
        yield Fact(f"limit.{name}", CONFIGURED, "limits", name, soft, unit)


def _cgroup(host: Host, pid: int) -> Iterator[Fact]:
    fs = host.fs
    try:
        online = read_online_cpus(fs)
    except NotSupported:
        online = []
    found = {name: optional(ancestry, fs, pid, name) for name in ("cpu", "memory", "pids", "cpuset", "io")}
    levels = {name: each.levels for name, each in found.items() if each is not None}
    cpus: float | None = len(online) or None
    if "cpuset" in levels and online:
        allowed = cpuset_of(fs, levels["cpuset"], frozenset(online))
        cpus = len(allowed)
        yield Fact("cgroup.cpuset", CONFIGURED, "cgroup", "CPUs of the cpuset", cpus, COUNT)
    status = fs.maybe(parse_status, pid, "status")
    if "cpu" in levels:
        quota = cpu_limit(fs, levels["cpu"])
        yield Fact("cgroup.cpu_quota", CONFIGURED, "cgroup", "CPU quota", "none" if quota.cpus is None else round(quota.cpus, 3), CPUS)  # fmt: skip
        cpus = min(cpus, quota.cpus) if cpus is not None and quota.cpus is not None else cpus
        weight = levels["cpu"][0]
        name = "cpu.shares" if weight.version == 1 else "cpu.weight"
        value = weight.number(fs, name)
        if value is not None:
            yield Fact(f"cgroup.{name}", CONFIGURED, "cgroup", name, value, COUNT)
    if status is not None and status.fields.get("Cpus_allowed_list"):
        yield Fact("process.affinity", CONFIGURED, "cgroup", "CPUs allowed", status.fields["Cpus_allowed_list"])
    if cpus is not None:
        yield Fact("jvm.cpus", CONFIGURED, "cgroup", "CPUs available", max(1, -(-round(cpus * 1000) // 1000)), COUNT)
    if "memory" in levels:
        limit = memory_limit(fs, levels["memory"]).limit_bytes
        yield Fact(
            "cgroup.memory_limit", CONFIGURED, "cgroup", "memory limit", "none" if limit is None else limit, BYTES
        )
        for name in ("memory.high", "memory.swap.max", "memory.low", "memory.swappiness", "memory.oom.group"):
            text = levels["memory"][0].load(fs, name)
            if text is not None:
                yield Fact(f"cgroup.{name}", CONFIGURED, "cgroup", name, text[:40])
    if "pids" in levels:
        counts = [
            each.limit
            for level in levels["pids"]
            if (each := pids_limit(fs, level)) is not None and each.limit is not None
        ]
        top = min(counts, default=UNLIMITED)
        yield Fact("cgroup.pids", CONFIGURED, "cgroup", "limit of tasks", "none" if top == UNLIMITED else top, COUNT)
    if "io" in levels and levels["io"][0].version == 2:
        for name in ("io.max", "io.weight"):
            text = levels["io"][0].load(fs, name)
            if text:
                yield Fact(f"cgroup.{name}", CONFIGURED, "cgroup", name, text[:200])


def _process(host: Host, pid: int, options: Sequence[str], variables: Mapping[str, str]) -> Iterator[Fact]:
    fs = host.fs
    placed = fs.maybe(parse_placement, pid, "stat")
    if placed is not None:
        yield Fact("process.nice", CONFIGURED, "scheduling", "nice value", placed.nice, COUNT)
        yield Fact(
            "process.policy",
            CONFIGURED,
            "scheduling",
            "scheduling policy",
            _POLICIES.get(placed.policy, str(placed.policy)),
        )
    score = fs.maybe(str.strip, pid, "oom_score_adj")
    if score is not None:
        yield Fact("process.oom_score_adj", CONFIGURED, "scheduling", "oom_score_adj", score[:20])
    status = fs.maybe(parse_status, pid, "status")
    if status is not None:
        for key, title in (
            ("THP_enabled", "transparent huge pages"),
            ("Seccomp", "seccomp mode"),
            ("NoNewPrivs", "no_new_privs"),
            ("CapEff", "capabilities"),
        ):
            if status.fields.get(key):
                yield Fact(f"process.{key}", CONFIGURED, "process", title, status.fields[key][:40])
        memory_nodes = status.fields.get("Mems_allowed_list")
        if memory_nodes:
            yield Fact("process.nodes", CONFIGURED, "cgroup", "NUMA nodes allowed", memory_nodes[:40])
    zone = java_zone_of(fs, pid, list(options), variables.get("TZ"), host.now(), variables.get("TZDIR"))
    if zone.utc_offset_s is not None and not zone.is_missing:
        yield Fact(
            "process.zone",
            CONFIGURED,
            "process",
            "time zone",
            f"{zone.name or 'unnamed'}, UTC{zone.utc_offset_s / 3600:+g} h",
        )
    for name in _VARIABLES:
        if name in variables:
            yield Fact(f"variable.{name}", CONFIGURED, "environment", name, variables[name][:300])
