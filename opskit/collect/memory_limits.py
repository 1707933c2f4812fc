"""What ends the growth of a JVM outside of its heap: its own flags, its cgroup's memory limit, the machine's memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.collect.jmap_diff import Limits, Room
from opskit.errors import OpskitError
from opskit.proc.cgroup.memory import memory_groups
from opskit.proc.cgroup.tree import visible_levels
from opskit.proc.files.limits import UNLIMITED
from opskit.proc.files.meminfo import parse_meminfo
from opskit.quantities import integer

if TYPE_CHECKING:
    from opskit.host import Host
    from opskit.jvm.attach.client import AttachClient

_NO_LIMIT = 1 << 62  # the JVM writes the largest number that fits, rounded down to its alignment


def read_limits(client: AttachClient) -> Limits:
    """The limits of one JVM by its flags; what it does not answer is unknown."""
    heap, direct = (_flag(client, name) for name in ("MaxHeapSize", "MaxDirectMemorySize"))
    is_default = direct == 0
    return Limits(
        heap,
        _flag(client, "MaxMetaspaceSize"),
        _flag(client, "CompressedClassSpaceSize"),
        heap if is_default else direct,
        is_default,
    )


def _flag(client: AttachClient, name: str) -> float | None:
    try:
        answer = client.execute("printflag", name).decode("ascii", "replace")
    except OpskitError:
        return None
    match = re.fullmatch(rf"-XX:{name}=([0-9]+)\s*", answer)
    value = integer(match[1]) if match else None
    return UNLIMITED if value is not None and value >= _NO_LIMIT else value


def read_room(host: Host, pid: int) -> Room | None:
    """The tightest of the machine's available memory and what the cgroups' limits leave, without what can be reclaimed."""
    available = host.fs.maybe(parse_meminfo, "meminfo", default={}).get("MemAvailable")
    rooms = [Room("the machine's memory", available)] if available is not None else []
    for group in memory_groups(host.fs, visible_levels(host.fs, pid, "memory")[0]):
        if group.left_bytes is not None:
            rooms.append(Room(f"the memory limit of cgroup {group.path}", group.left_bytes))
    return min(rooms, key=lambda room: room.free_bytes, default=None)
