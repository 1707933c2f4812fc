"""Read the dentry and inode caches: dentry-state, meminfo, slabinfo, vmstat, and the slabs of memory cgroups."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from opskit.errors import NotPermitted, NotSupported
from opskit.proc.cgroup.slab import CgroupSlab, read_cgroup_slabs
from opskit.proc.files.dentry_state import DentryState, parse_dentry_state
from opskit.proc.files.meminfo import parse_meminfo
from opskit.proc.files.slabinfo import Slab, merged_names, parse_slabinfo, read_aliases
from opskit.proc.files.vmstat import page_size, parse_vmstat
from opskit.proc.fs import DENIED, GONE, Refused
from opskit.proc.rights import how_to_be_allowed
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opskit.host import Host

T = TypeVar("T")


class Request(NamedTuple):
    """What to read. `needs_slabs`: without slabinfo there is no answer (a picture shows slabs only). `of_host`: without cgroups and aliases."""

    needs_slabs: bool = False
    of_host: bool = False


class Facts(NamedTuple):
    """What was read; None or empty where it could not be. `meminfo` in bytes and `vmstat`: by the kernel's names.

    `merged`: name in slabinfo -> other names of that cache. `dentry_negative`: sysctl fs.dentry-negative.
    `missing`: what could not be read, and why. `at_s`: seconds since the collector was made.
    """

    state: DentryState | None
    slabs: tuple[Slab, ...] | None
    meminfo: Mapping[str, int]
    page_bytes: int
    vmstat: Mapping[str, int] = {}
    merged: Mapping[str, tuple[str, ...]] = {}
    cgroups: tuple[CgroupSlab, ...] = ()
    vfs_cache_pressure: int | None = None
    dentry_negative: int | None = None
    missing: tuple[str, ...] = ()
    at_s: float = 0.0


class Collector:
    """The samples of a watch."""

    def __init__(self, host: Host, ask: Request) -> None:
        self._host, self._ask, self._begun = host, ask, host.monotonic()

    def look(self) -> Facts:
        """Take one sample. Raises as `collect`."""
        return collect(self._host, self._ask)._replace(at_s=self._host.monotonic() - self._begun)


def collect(host: Host, ask: Request) -> Facts:
    """Read once. Raises BadInput for a malformed file, NotPermitted, and NotSupported if there is nothing to read."""
    fs = host.fs
    missing: list[str] = []

    def load(parse: Callable[[str], T], *parts: str) -> T | None:
        path = fs.path(*parts)
        try:
            return fs.load(parse, *parts)
        except GONE:
            missing.append(f"{path} does not exist")
        except Refused as error:
            missing.append(f"{path} was not read: {error.strerror}")
        except DENIED:
            missing.append(f"{path} is for root only; {how_to_be_allowed(fs, '', 'opskit', 'dentry')}")
        return None

    release = fs.maybe(str.strip, "sys", "kernel", "osrelease")
    state = load(lambda text: parse_dentry_state(text, release), "sys", "fs", "dentry-state")
    meminfo = load(parse_meminfo, "meminfo") or {}
    slabs = load(parse_slabinfo, "slabinfo")
    if slabs is None and ask.needs_slabs:
        raise NotPermitted(
            f"a picture shows the slabs, and {fs.path('slabinfo')} cannot be read; "
            f"{how_to_be_allowed(fs, '', 'opskit', 'dentry', '-o', 'FILE')}"
        )
    if state is None and slabs is None and not meminfo:
        raise NotSupported(f"no dentry cache to read: {'; '.join(missing)}")
    vmstat = fs.maybe(parse_vmstat, "vmstat", default={}, strict=True)
    if state is not None and state.negative is None:
        missing.append("this kernel does not count negative dentries (Linux 5.0 and later do)")
    # With --proc alone, /sys and the cgroups here belong to another machine than the tree.
    whole_tree = bool(fs.root) or host.is_own
    cgroups = tuple(read_cgroup_slabs(fs)) if whole_tree and not ask.of_host else ()
    if cgroups and all(group.slab_reclaimable_bytes is None and not group.caches for group in cgroups):
        missing.append(
            "memory cgroups are v1 here, and this kernel does not report their slabs: "
            "kernel memory is an upper bound, which includes stacks and page tables"
        )
    aliases = read_aliases(fs) if slabs is not None and whole_tree and not ask.of_host else {}
    page_bytes = host.page_bytes if host.is_own else page_size(vmstat, meminfo, host.page_bytes)
    merged = merged_names(aliases, [slab.name for slab in slabs or ()])
    sysctls = host.sysctl("vm", "vfs_cache_pressure"), host.sysctl("fs", "dentry-negative")
    held = None if slabs is None else tuple(slabs)
    return Facts(state, held, meminfo, page_bytes, vmstat, merged, cgroups, *sysctls, tuple(missing))
