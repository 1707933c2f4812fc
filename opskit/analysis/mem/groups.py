"""Cgroups near their memory limit, of one look at all of them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding
from opskit.analysis.near_limit import is_near_limit
from opskit.quantities import percent, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.collect.mem.groups import GroupFacts, LimitedGroup

_MOST_SWAP_LEFT = 0.1  # of the limit: with more of it free a cgroup can grow on
_HOLDS_MOST = 0.5  # of what is used


def judge_groups(facts: GroupFacts) -> list[Finding]:
    """Of several near ones in a chain, which share the same memory, the one with the least left."""
    near = [each for each in facts.near if _is_near(each, facts.swap_free_bytes)]
    near.sort(key=lambda each: (each.group.left_bytes or 0, -len(each.chain)))
    chosen: list[LimitedGroup] = []
    for each in near:
        path = each.group.path
        if not any(path in other.chain or other.group.path in each.chain for other in chosen):
            chosen.append(each)
    return [*map(_near_finding, chosen), *_throttled(facts.near, facts.swap_free_bytes)]


def _is_near(each: LimitedGroup, swap_free_bytes: int) -> bool:
    group = each.group
    # v1 counts reclaimable slab as kernel memory.
    unsure = (group.kernel_bytes or 0) if group.slab_unknown else 0
    limit, used = group.limit_bytes, (group.pinned_bytes or 0) - unsure
    if limit is None or group.pinned_bytes is None:
        return False
    return is_near_limit(used, limit) and group.swap_left_bytes(swap_free_bytes) <= _MOST_SWAP_LEFT * limit


def _near_finding(each: LimitedGroup) -> Finding:
    group = each.group
    used, limit = group.pinned_bytes or 0, group.limit_bytes or 1
    end = "stopped (oom_kill_disable)" if group.kills_disabled else "killed"
    entity, next_, most = _about(each, used)
    return Finding(
        "memory-near-limit", "warning", entity,
        f"{size(group.left_bytes)} is left below the memory limit of {group.path}, {size(limit)}{most}",
        f"memory.stat of {group.path}: {size(used)} ({percent(used / limit)}) cannot be reclaimed; at the limit a process is {end}",
        next=next_, share=min(1.0, used / limit),
    )  # fmt: skip


def _throttled(groups: Sequence[LimitedGroup], swap_free_bytes: int) -> Iterator[Finding]:
    for each in groups:
        group = each.group
        used = group.pinned_bytes or 0
        if group.high_bytes is None or used < group.high_bytes or group.swap_left_bytes(swap_free_bytes):
            continue
        entity, next_, most = _about(each, used)
        yield Finding(
            "memory-throttled", "warning", entity,
            f"the processes of {group.path} are slowed down: what cannot be reclaimed, {size(used)}, is above memory.high, "
            f"{size(group.high_bytes)}{most}",
            f"memory.high and memory.stat of {group.path}", next=next_, share=min(1.0, used / max(1, group.high_bytes)),
        )  # fmt: skip


def _about(each: LimitedGroup, used: int) -> tuple[Entity, str, str]:
    """The entity, the next command, and who holds the most, where one process does."""
    holder = each.holder
    cgroup = Entity("cgroup", each.group.path)
    if holder is None and each.is_outside:
        return cgroup, shell.command("opskit", "mem"), "; its processes are not visible in this PID namespace"
    if holder is None:
        return cgroup, shell.command("opskit", "mem", "--files"), "; no process holds it: files in memory do"
    next_ = shell.command("opskit", "mem", holder.pid)
    if holder.bytes < _HOLDS_MOST * used:
        return cgroup, next_, f"; most of it: {holder.pid} ({holder.command}), {size(holder.bytes)}"
    return cgroup, next_, f"; {holder.pid} ({holder.command}) holds {size(holder.bytes)}"
