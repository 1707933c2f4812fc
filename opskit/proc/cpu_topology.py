"""Where the CPUs that are online are: SMT siblings, package, NUMA node, caches; which ones the scheduler leaves alone.

/sys/devices/system/cpu (Documentation/ABI/testing/sysfs-devices-system-cpu), /sys/devices/system/node, the cpuset cgroups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.cgroup.tree import visible_levels
from opskit.proc.files.cpu_times import parse_cpu_list, read_online_cpus
from opskit.proc.fs import ids
from opskit.quantities import bytes_of, integer, signed
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.proc.cgroup.tree import Level
    from opskit.proc.fs import ProcFS

_CPUS, _NODES = ("sys", "devices", "system", "cpu"), ("sys", "devices", "system", "node")
_EFFECTIVE = {1: "cpuset.effective_cpus", 2: "cpuset.cpus.effective"}
_MOST_CACHES = 16


class Place(NamedTuple):
    """One CPU. `siblings`: the SMT threads of its core, itself among them. `package`: the socket. None: unknown."""

    siblings: frozenset[int]
    package: int | None = None
    node: int | None = None


class Topology(NamedTuple):
    """The CPUs that are online, in order. `isolated`: isolcpus and isolated partitions; `tickless`: nohz_full."""

    online: tuple[int, ...]
    places: Mapping[int, Place]
    isolated: frozenset[int] = frozenset()
    tickless: frozenset[int] = frozenset()

    def place(self, cpu: int) -> Place:
        """Where a CPU is; a core of its own where that is unknown."""
        return self.places.get(cpu) or Place(frozenset({cpu}))


class Cache(NamedTuple):
    """A cache of a CPU: level 1 to 4, `Data`, `Instruction` or `Unified`, its size, the CPUs that share it."""

    level: int
    kind: str
    size_bytes: int
    shared: frozenset[int]


def read_topology(fs: ProcFS) -> Topology:
    """The CPUs of this machine. Raises NotSupported where it is unknown which ones are online."""
    online = read_online_cpus(fs)
    packages, nodes = _packages(fs, online), _nodes(fs)
    siblings = _groups(fs, online, "thread_siblings_list")
    places = {cpu: Place(siblings[cpu], packages[cpu], nodes.get(cpu)) for cpu in online}
    return Topology(tuple(online), places, _listed(fs, *_CPUS, "isolated"), _listed(fs, *_CPUS, "nohz_full"))


def read_cpuset(fs: ProcFS, pid: int | str, online: frozenset[int]) -> frozenset[int]:
    """The online CPUs that the cpuset cgroup of a process allows; all of them where it has none, or none is visible.

    A thread may narrow this down for itself (Cpus_allowed_list), and widen it again up to this set.
    """
    return cpuset_of(fs, visible_levels(fs, pid, "cpuset")[0], online)


def cpuset_of(fs: ProcFS, levels: tuple[Level, ...], online: frozenset[int]) -> frozenset[int]:
    """The same for the cgroups of the cpuset controller, a process's own first: the lowest one that has the file counts."""
    for level in levels:
        found = parse_cpu_list(level.load(fs, _EFFECTIVE[level.version]) or "")
        if found is not None:
            return found & online or online
    return online


def read_caches(fs: ProcFS, cpu: int) -> tuple[Cache, ...]:
    """The caches of a CPU, the nearest first; empty where the kernel does not know them."""
    base = (*_CPUS, f"cpu{cpu}", "cache")
    found = (_cache(fs, *base, name) for name in fs.names_root(*base)[:_MOST_CACHES] if name.startswith("index"))
    return tuple(sorted((cache for cache in found if cache), key=lambda cache: (cache.level, cache.kind)))


def _cache(fs: ProcFS, *base: str) -> Cache | None:
    level = fs.maybe_root(lambda text: integer(text.strip()), *base, "level")
    size = fs.maybe_root(lambda text: bytes_of(text.strip()), *base, "size")
    if not level or not size:
        return None
    return Cache(
        level, fs.maybe_root(str.strip, *base, "type", default=""), size, _listed(fs, *base, "shared_cpu_list")
    )


def _packages(fs: ProcFS, online: list[int]) -> dict[int, int | None]:
    """The package of each CPU: its number is read once for all of its CPUs. -1 is the kernel's word for unknown."""
    found: dict[int, int | None] = {}
    for cpu, members in _groups(fs, online, "core_siblings_list").items():
        if cpu not in found:
            number = fs.maybe_root(_number, *_CPUS, f"cpu{cpu}", "topology", "physical_package_id")
            found.update(dict.fromkeys(members, None if number is None or number < 0 else number))
    return found


def _groups(fs: ProcFS, online: list[int], name: str) -> dict[int, frozenset[int]]:
    """The group of each CPU by a file of its topology, which is read once a group; alone where it cannot be read."""
    found: dict[int, frozenset[int]] = {}
    present = frozenset(online)
    for cpu in online:
        if cpu not in found:
            members = _listed(fs, *_CPUS, f"cpu{cpu}", "topology", name) & present
            group = members if cpu in members else frozenset({cpu})
            found.update((member, group) for member in group if member not in found)
    return found


def _nodes(fs: ProcFS) -> dict[int, int]:
    numbers = [0, *ids(name[4:] for name in fs.names_root(*_NODES) if name.startswith("node"))]
    return {cpu: node for node in numbers for cpu in _listed(fs, *_NODES, f"node{node}", "cpulist")}


def _number(text: str) -> int | None:
    return signed(text.strip())


def _listed(fs: ProcFS, *parts: str) -> frozenset[int]:
    """A list of CPUs; empty for an empty file, for `(null)` (nohz_full where it is off), and where there is none."""
    return fs.maybe_root(parse_cpu_list, *parts, default=None) or frozenset()
