"""Words about a process's memory that findings and the verdict share. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.mem.headroom import MIB, flag_size

if TYPE_CHECKING:
    from opskit.analysis.mem.result import Headroom
    from opskit.collect.mem.facts import Facts
    from opskit.proc.cgroup.memory import MemoryGroup


def who(facts: Facts) -> str:
    """`4242 (orders)`: the main class or jar of a JVM, the command of another process."""
    return f"{facts.process.pid} ({facts.jvm.main if facts.jvm and facts.jvm.main else facts.process.command})"


def fate(level: MemoryGroup | None) -> str:
    """What happens at the limit of a cgroup, or where the machine's memory ends."""
    if level is None:
        return "can be killed when the machine runs out of memory"
    if level.kills_disabled:
        return "can be stopped for good (oom_kill_disable)"
    return "can be killed" + (" with all processes of its cgroup" if level.group_kill else "")


def ways_out(headroom: Headroom) -> str:
    """`-Xmx190m, or a limit of 460 MiB`; empty where there is none."""
    ways = [f"-Xmx{flag_size(headroom.fix_heap_bytes)}"] if headroom.fix_heap_bytes else []
    ways += [f"a limit of {headroom.fix_limit_bytes // MIB:,} MiB"] if headroom.fix_limit_bytes else []
    return ", or ".join(ways)
