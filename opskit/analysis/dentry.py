"""The dentry and inode caches: how much of RAM they take, what of it can be given back, and what that means. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from opskit import shell
from opskit.analysis.finding import Finding
from opskit.analysis.slope import slope
from opskit.quantities import percent, size, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opskit.proc.cgroup.slab import CgroupSlab
    from opskit.proc.files.dentry_state import DentryState
    from opskit.proc.files.slabinfo import Slab

DENTRY_NAMES = ("dentry", "dentry_cache")  # the second one up to Linux 2.6.21
DENTRY_BYTES = 192  # sizeof(struct dentry) on 64-bit machines, for where slabinfo cannot be read

LARGE_SHARE = 0.10  # of RAM: from here on a cache is worth a word
LITTLE_SHARE = 0.01  # of RAM: less than this is not worth dropping
MOSTLY = 0.5
_PAGE_SIZES = (4 << 10, 8 << 10, 16 << 10, 64 << 10)
_SAME_MOMENT = 0.1
RECLAIM_FROM_BYTES = 16 << 20  # less is not worth a command

_INODES = re.compile(r"(?:(?P<owner>\w+?)_)?(?:inode(?:_cache|_slab|_info|s)?|znode_cache|icache)")
_NOT_INODES = ("fscrypt_inode_info", "jbd2_inode")  # kept beside an inode, and not one for each
_BESIDE = ("lsm_inode_cache",)  # memory of an inode that is another object beside it
_ODD_INODES = {"jfs_ip": "jfs", "jffs2_i": "jffs2", "bdev_cache": "bdev", "xfs_inode": "xfs"}
_OWNERS = {None: "other", "shmem": "tmpfs"}  # other: sysfs, pipes, devices and what has no cache of its own


class Cache(NamedTuple):
    """One slab cache. `kind`: dentry, inode or other; `owner`: the file system of an inode cache.

    `shared_with`: names of other caches that SLUB merged into this one; its bytes are theirs as well.
    """

    name: str
    kind: str
    owner: str | None
    size_bytes: int
    objects: int
    active_objects: int
    object_bytes: int
    shared_with: tuple[str, ...] = ()


class Facts(NamedTuple):
    """What was read of the machine; None (or empty) where it could not be. Sizes in bytes, `meminfo` by its own keys."""

    state: DentryState | None
    caches: tuple[Cache, ...] | None
    meminfo: Mapping[str, int]
    cgroups: tuple[CgroupSlab, ...] = ()
    vfs_cache_pressure: int | None = None
    drop_slab: int | None = None
    drop_pagecache: int | None = None

    @property
    def dentries(self) -> int | None:
        """All dentries; where only slabinfo could be read, the objects in use of its cache."""
        if self.state is not None:
            return self.state.dentries
        caches = [cache for cache in self._of_kind("dentry") or () if not cache.shared_with]
        return caches[0].active_objects if caches else None

    @property
    def unused(self) -> int | None:
        """Dentries that nothing holds."""
        return None if self.state is None else self.state.unused

    @property
    def negative(self) -> int | None:
        """Unused dentries that stand for absent files."""
        return None if self.state is None else self.state.negative

    @property
    def in_use(self) -> int | None:
        """Dentries that something holds: an open file, a working directory, a dentry below."""
        return None if self.state is None else max(self.state.dentries - self.state.unused, 0)

    @property
    def negative_share(self) -> float | None:
        """Negative ones of all dentries, 0 to 1."""
        share = _share(self.negative, self.dentries)
        return None if share is None else min(share, 1.0)  # the two are counted one after the other

    @property
    def dentry_slab_bytes(self) -> int | None:
        """The cache that holds the dentries."""
        return _total(self._of_kind("dentry"))

    @property
    def inode_slab_bytes(self) -> int | None:
        """All caches of inodes together."""
        return _total(self._of_kind("inode"))

    @property
    def inodes(self) -> int | None:
        """Inodes in use, of all file systems."""
        if self.caches is None:
            return None
        return sum(cache.active_objects for cache in self.caches if cache.kind == "inode" and cache.name not in _BESIDE)

    @property
    def dentry_estimate_bytes(self) -> int | None:
        """The dentry slab; where slabinfo is not to be had, the dentries times their usual size."""
        if self.dentry_slab_bytes is not None:
            return self.dentry_slab_bytes
        return None if self.dentries is None else self.dentries * DENTRY_BYTES

    @property
    def dentry_and_inode_bytes(self) -> int | None:
        """Both together, None unless both are known."""
        if self.dentry_slab_bytes is None or self.inode_slab_bytes is None:
            return None
        return self.dentry_slab_bytes + self.inode_slab_bytes

    @property
    def reclaimable_bytes(self) -> int | None:
        """SReclaimable: slab that the kernel may give back, as far as nothing holds it."""
        return self.meminfo.get("SReclaimable")

    @property
    def unreclaimable_bytes(self) -> int | None:
        """SUnreclaim: slab that stays."""
        return self.meminfo.get("SUnreclaim")

    @property
    def available_bytes(self) -> int | None:
        """MemAvailable (since Linux 3.14)."""
        return self.meminfo.get("MemAvailable")

    @property
    def free_bytes(self) -> int | None:
        """MemFree."""
        return self.meminfo.get("MemFree")

    @property
    def page_cache_bytes(self) -> int | None:
        """Cached and Buffers, with shared memory in it."""
        cached, buffers = self.meminfo.get("Cached"), self.meminfo.get("Buffers")
        return None if cached is None or buffers is None else cached + buffers

    @property
    def ram_bytes(self) -> int | None:
        """MemTotal."""
        return self.meminfo.get("MemTotal")

    def of_ram(self, amount: int | None) -> float | None:
        """An amount of bytes as a share of RAM, 0 to 1."""
        return _share(amount, self.ram_bytes)

    def _of_kind(self, kind: str) -> list[Cache] | None:
        return None if self.caches is None else [cache for cache in self.caches if cache.kind == kind]


class Owned(NamedTuple):
    """The inode caches of one file system together."""

    owner: str
    caches: tuple[str, ...]
    size_bytes: int
    objects: int


def _share(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


def _total(caches: Sequence[Cache] | None) -> int | None:
    """The sum; None where slabinfo could not be read, and where it does not list any such cache."""
    return sum(cache.size_bytes for cache in caches) if caches else None


def classify(slabs: Sequence[Slab], merged: Mapping[str, tuple[str, ...]], page_bytes: int) -> tuple[Cache, ...]:
    """The caches, largest first. A cache whose own name tells nothing is a dentry's where `merged` says so."""
    names = {slab.name for slab in slabs}
    caches = []
    for slab in slabs:
        others = merged.get(slab.name, ())
        kind, owner = _kind(slab.name)
        if kind == "other" and not names.intersection(DENTRY_NAMES) and set(others).intersection(DENTRY_NAMES):
            kind = "dentry"
        caches.append(
            Cache(
                slab.name, kind, owner, slab.bytes(page_bytes), slab.objects, slab.active_objects, slab.object_bytes,
                others,
            )
        )  # fmt: skip
    return tuple(sorted(caches, key=lambda cache: (-cache.size_bytes, cache.name)))


def _kind(name: str) -> tuple[str, str | None]:
    if name in DENTRY_NAMES:
        return "dentry", None
    if name in _ODD_INODES:
        return "inode", _ODD_INODES[name]
    match = _INODES.fullmatch(name)
    if match is None or name in _NOT_INODES:
        return "other", None
    return "inode", _OWNERS.get(match["owner"], match["owner"])


def inodes_by_owner(caches: Sequence[Cache]) -> list[Owned]:
    """The inode caches a file system, largest first; empty ones left out."""
    groups: dict[str, list[Cache]] = {}
    for cache in caches:
        if cache.kind == "inode" and cache.size_bytes:
            groups.setdefault(cache.owner or "", []).append(cache)
    found = [
        Owned(
            owner,
            tuple(cache.name for cache in members),
            sum(cache.size_bytes for cache in members),
            sum(cache.active_objects for cache in members),
        )
        for owner, members in groups.items()
    ]
    return sorted(found, key=lambda owned: (-owned.size_bytes, owned.owner))


class CgroupShare(NamedTuple):
    """A memory cgroup's slab. `own_bytes`: what its children do not account for; `at_most_bytes`: v1's upper bound."""

    path: str
    directory: str
    reclaimable_bytes: int | None
    own_bytes: int | None
    dentry_inode_bytes: int | None
    at_most_bytes: int | None
    usage_bytes: int | None
    limit_bytes: int | None
    reclaims: bool


def cgroup_shares(cgroups: Sequence[CgroupSlab], page_bytes: int) -> list[CgroupShare]:
    """The cgroups whose own slab is largest first; those that are known to hold none are left out."""
    children: dict[str, int] = {}
    for group in cgroups:
        parent = group.path.rpartition("/")[0] or "/"
        children[parent] = children.get(parent, 0) + (group.slab_reclaimable_bytes or group.kernel_bytes or 0)
    shares = []
    for group in cgroups:
        total = group.slab_reclaimable_bytes if group.kernel_bytes is None else group.kernel_bytes
        own = None if total is None else max(total - children.get(group.path, 0), 0)
        caches = classify(group.caches, {}, page_bytes)
        share = CgroupShare(
            group.path,
            group.directory,
            group.slab_reclaimable_bytes,
            own if group.kernel_bytes is None else None,
            sum(cache.size_bytes for cache in caches if cache.kind != "other") if caches else None,
            group.kernel_bytes,
            group.usage_bytes,
            group.limit_bytes,
            group.reclaims,
        )
        if own or share.dentry_inode_bytes:
            shares.append((-(own or 0), share.path, share))
    return [share for _, _, share in sorted(shares, key=lambda entry: entry[:2])]


class Change(NamedTuple):
    """A number before and after a drop; `is_bytes` tells an amount of memory from a count."""

    name: str
    before: int | None
    after: int | None
    is_bytes: bool

    @property
    def by(self) -> int | None:
        """After minus before."""
        return None if self.before is None or self.after is None else self.after - self.before


def changes(before: Facts, after: Facts) -> list[Change]:
    """What a drop is measured by."""
    names = (
        *("dentries", "unused", "negative", "dentry_slab_bytes", "inode_slab_bytes", "reclaimable_bytes"),
        *("page_cache_bytes", "free_bytes", "available_bytes"),
    )
    return [Change(name, getattr(before, name), getattr(after, name), name.endswith("_bytes")) for name in names]


def freed_bytes(level: str, before: Facts, after: Facts) -> int | None:
    """What a drop of "dentries", "pagecache" or "all" gave back: by so much reclaimable slab and page cache shrank.

    Negative where the caches grew faster than they were dropped; None where the kernel does not tell them.
    """
    names = {"dentries": ("reclaimable_bytes",), "pagecache": ("page_cache_bytes",)}.get(
        level, ("reclaimable_bytes", "page_cache_bytes")
    )
    total = 0
    for change in changes(before, after):
        if change.name in names:
            if change.by is None:
                return None
            total -= change.by
    return total


WATCHED = ("dentries", "unused", "negative", "dentry_slab_bytes", "inode_slab_bytes", "reclaimable_bytes")


class Sample(NamedTuple):
    """One look of several: when (s), the numbers that WATCHED names, and the bytes of each cache."""

    at_s: float
    numbers: Mapping[str, int | None]
    cache_bytes: Mapping[str, int]


def sample(at_s: float, facts: Facts) -> Sample:
    """What a watch keeps of a look."""
    numbers = {name: getattr(facts, name) for name in WATCHED}
    return Sample(at_s, numbers, {cache.name: cache.size_bytes for cache in facts.caches or ()})


def growth_per_min(samples: Sequence[Sample]) -> dict[str, float | None]:
    """Per number: how much it grows in a minute (a least-squares line's slope); None with a single sample."""
    return {name: _per_min((one.at_s, one.numbers[name]) for one in samples) for name in WATCHED}


def cache_growth_per_min(samples: Sequence[Sample]) -> dict[str, float | None]:
    """Per cache: bytes a minute."""
    names = dict.fromkeys(name for one in samples for name in one.cache_bytes)
    return {name: _per_min((one.at_s, one.cache_bytes.get(name)) for one in samples) for name in names}


def _per_min(points: Iterable[tuple[float, int | None]]) -> float | None:
    per_s = slope([(at_s, number) for at_s, number in points if number is not None])
    return None if per_s is None else per_s * 60


def verdict(facts: Facts) -> list[str]:
    """What it means, a sentence a line; what matters first."""
    sentences = (_dentry_sentence(facts), _inode_sentence(facts), _unreclaimable_sentence(facts), little_to_win(facts))
    return [sentence for sentence in sentences if sentence]


def little_to_win(facts: Facts) -> str | None:
    """The sentence that dropping is not worth it; None where it may be, or where that is not known."""
    share = facts.of_ram(facts.reclaimable_bytes)
    if share is None or share >= LITTLE_SHARE:
        return None
    return f"Dropping dentries and inodes would win little: reclaimable slab is {percent(share)} of RAM."


def _dentry_sentence(facts: Facts) -> str:
    amount, share = facts.dentry_estimate_bytes, facts.of_ram(facts.dentry_estimate_bytes)
    if amount is None:
        return "How much the dentry cache holds is unknown: neither slabinfo nor dentry-state could be read."
    about = "" if facts.dentry_slab_bytes is not None else "about "
    of_ram = "" if share is None else f" ({percent(share)} of RAM)"
    start = f"The dentry cache holds {about}{size(amount)}{of_ram}"
    large = share is not None and share >= LARGE_SHARE
    negative = facts.negative_share
    if not large:
        start += ": it is not what eats the memory" if share is not None else ""
    elif _mostly(facts.in_use, facts.dentries):
        start += f", {percent(_share(facts.in_use, facts.dentries))} of it in use and not to be had by dropping"
    elif facts.available_bytes is not None:
        start += ", reclaimable and already counted in MemAvailable"
    else:
        start += ", reclaimable (this kernel has no MemAvailable, and `free` counts it as used)"
    if negative is not None and negative >= MOSTLY:
        start += (
            f"; {percent(negative)} of it are negative entries: a program keeps looking for files that are not there"
        )
    elif negative is not None:
        start += f"; {percent(negative)} of it are negative entries"
    if not large:
        return start + "."
    if negative is None:
        return start + ". Dropping helps for now; finding who makes them helps for good."
    remedy = "finding it helps for good" if negative >= MOSTLY else "they come back with use"
    return start + f". Dropping helps for now; {remedy}."


def _inode_sentence(facts: Facts) -> str | None:
    share = facts.of_ram(facts.inode_slab_bytes)
    if share is None or share < LARGE_SHARE or facts.caches is None:
        return None
    first = inodes_by_owner(facts.caches)[0]
    return (
        f"Inode caches hold {size(facts.inode_slab_bytes)} ({percent(share)} of RAM), most of it for {first.owner} "
        f"({size(first.size_bytes)}): a program walks, or creates, many files."
    )


def _unreclaimable_sentence(facts: Facts) -> str | None:
    share = facts.of_ram(facts.unreclaimable_bytes)
    if share is None or share < LARGE_SHARE:
        return None
    return (
        f"Unreclaimable slab holds {size(facts.unreclaimable_bytes)} ({percent(share)} of RAM): no drop frees that; "
        f"its owner is the driver or subsystem that the largest caches belong to."
    )


def _mostly(part: int | None, whole_: int | None) -> bool:
    share = _share(part, whole_)
    return share is not None and share >= MOSTLY


def findings(facts: Facts, groups: Sequence[CgroupShare], max_percent: float | None = None) -> list[Finding]:
    """What deserves a word; `max_percent` (of RAM) is what dentries and inodes together may take."""
    found = []
    both = facts.dentry_and_inode_bytes
    share = facts.of_ram(both)
    if max_percent is not None and share is not None and share * 100 > max_percent:
        found.append(
            Finding(
                "dentry-share",
                "error",
                "host",
                f"dentries and inodes take {percent(share)} of RAM, more than {max_percent:g} %",
                f"slabinfo: {size(both)} of {size(facts.ram_bytes)}",
                "opskit dentry --culprit",
            )
        )
    negative = facts.negative
    if negative is not None and _mostly(negative, facts.dentries):
        held = negative * (_object_bytes(facts) or DENTRY_BYTES)
        if (facts.of_ram(held) or 0) >= LITTLE_SHARE:
            found.append(
                Finding(
                    "dentry-negative",
                    "warning",
                    "host",
                    f"{whole(negative)} negative dentries (about {size(held)}) stand for files that are not there",
                    "/proc/sys/fs/dentry-state",
                    "opskit dentry --culprit",
                )
            )
    for group in groups:
        slab = group.reclaimable_bytes if group.reclaimable_bytes is not None else group.dentry_inode_bytes
        if _mostly(slab, group.limit_bytes):
            found.append(
                Finding(
                    "dentry-cgroup",
                    "warning",
                    group.path,
                    f"reclaimable slab takes {percent(_share(slab, group.limit_bytes))} of this cgroup's limit",
                    f"{size(slab)} of {size(group.limit_bytes)}",
                    reclaim_command(group),
                )
            )
    if facts.vfs_cache_pressure == 0:
        found.append(
            Finding(
                "dentry-pressure",
                "warning",
                "vm.vfs_cache_pressure",
                "0: the kernel never reclaims dentries and inodes, which can end in out-of-memory",
                "/proc/sys/vm/vfs_cache_pressure",
                "sysctl vm.vfs_cache_pressure=100",
            )
        )
    if facts.drop_slab:
        found.append(
            Finding(
                "dentry-dropped",
                "note",
                "host",
                f"somebody dropped dentries and inodes {whole(facts.drop_slab)} times since boot",
                "/proc/vmstat: drop_slab",
                "grep -rs drop_caches /etc/cron* /etc/systemd /var/spool/cron",
            )
        )
    return found


def exceeds(facts: Facts, max_percent: float) -> bool | None:
    """Whether dentries and inodes take more than that of RAM; None where it cannot be told.

    Where slabinfo cannot be read, SReclaimable, which holds both, may still be small enough.
    """
    share = facts.of_ram(facts.dentry_and_inode_bytes)
    if share is not None:
        return share * 100 > max_percent
    bound = facts.of_ram(facts.reclaimable_bytes)
    return False if bound is not None and bound * 100 <= max_percent else None


def reclaim_command(group: CgroupShare) -> str | None:
    """How to make one cgroup give memory back (cgroup v2 since Linux 5.19)."""
    if not group.reclaims or not group.own_bytes:
        return None
    return shell.command("echo", group.own_bytes, shell.Syntax(">"), f"{group.directory}/memory.reclaim")


def _object_bytes(facts: Facts) -> int | None:
    return next((cache.object_bytes for cache in facts.caches or () if cache.kind == "dentry"), None)


def ways(facts: Facts, groups: Sequence[CgroupShare], *, deletes: int | None) -> list[str]:
    """What to type, the gentlest first. `deletes`: fs.dentry-negative, None where this kernel has not got it."""
    found = []
    large = (facts.of_ram(facts.dentry_estimate_bytes) or 0) >= LARGE_SHARE
    if _mostly(facts.negative, facts.dentries) or (large and facts.negative is None):
        found.append("find the program that looks for absent files: opskit dentry --culprit")
    # Before Linux 2.6.19 the kernel did not tell what of the slabs can be given back.
    to_win = facts.dentry_estimate_bytes if facts.reclaimable_bytes is None else facts.reclaimable_bytes
    if (facts.of_ram(to_win) or 0) < LITTLE_SHARE:
        return found
    pressure = facts.vfs_cache_pressure
    if pressure is not None:
        more = 100 if pressure < 100 else pressure * 2
        prefer = shell.command("sysctl", f"vm.vfs_cache_pressure={more}")
        found.append(f"let the kernel prefer these caches: {prefer} (now {pressure})")
    command = reclaim_command(groups[0]) if groups else None
    if command is not None and (groups[0].own_bytes or 0) >= RECLAIM_FROM_BYTES:
        found.append(f"give back one cgroup's: {command}")
    if deletes == 0 and _mostly(facts.negative, facts.dentries):
        found.append("let deleted files leave no negative entry: sysctl fs.dentry-negative=1")
    found.append("give back all that nothing holds, host-wide: opskit dentry --drop")
    return found


def page_bytes(meminfo: Mapping[str, int], vmstat: Mapping[str, int], default: int) -> int:
    """Another machine's page size: what it counts in bytes against what it counts in pages; `default` where they disagree."""
    for key, pages_key in (
        ("SReclaimable", "nr_slab_reclaimable"),
        ("Mapped", "nr_mapped"),
        ("MemFree", "nr_free_pages"),
    ):
        pages = vmstat.get(pages_key, 0)
        for candidate in _PAGE_SIZES:
            # The two files were read one after the other.
            if pages > 0 and abs(meminfo.get(key, 0) / pages / candidate - 1) < _SAME_MOMENT:
                return candidate
    return default
