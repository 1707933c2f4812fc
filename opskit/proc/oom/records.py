"""What a report of the OOM killer says: sizes in bytes, None where the log does not tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.proc.oom.lines import When

MEMCG, HOST, CPUSET, POLICY = "cgroup", "host", "cpuset", "mempolicy"
KILLED, CHOSEN, PANIC, NONE, UNFINISHED = "killed", "chosen", "panic", "no victim", "unfinished"


class Task(NamedTuple):
    """A row of the table of tasks. `rss_bytes` is the resident memory, shared pages included."""

    pid: int
    uid: int | None
    name: str
    rss_bytes: int
    swap_bytes: int | None
    adj: int | None


class Usage(NamedTuple):
    """One counter of a memory cgroup. `limit_bytes` None: no limit; `failures`: how often the limit was hit."""

    usage_bytes: int
    limit_bytes: int | None
    failures: int


class Held(NamedTuple):
    """What the cgroup at its limit, or the host, held when there was no more. `cache_bytes`: page cache without shmem.

    `free_bytes`, `swap_free_bytes`, `swap_total_bytes`, `ram_bytes`, `huge_bytes` (reserved huge pages): of the host only.
    """

    anon_bytes: int | None = None
    shmem_bytes: int | None = None
    cache_bytes: int | None = None
    kernel_bytes: int | None = None
    swap_bytes: int | None = None
    free_bytes: int | None = None
    swap_free_bytes: int | None = None
    swap_total_bytes: int | None = None
    ram_bytes: int | None = None
    huge_bytes: int | None = None


class Kill(NamedTuple):
    """One victim. `outcome`: killed; chosen, where the log ends before the kill; panic or no victim, without a `pid`.

    `scope`: cgroup, host, cpuset, mempolicy, None if unknown. `cgroup`: the one at its limit; `task_cgroup`: the victim's own.
    `pid` is of the initial PID namespace. `name` is the first thread's: the process chose it. `uid` None: not told.
    `invoker`: the thread that asked for memory, which may be of any process. `manual`: asked for by sysrq.
    `group`: killed with all of its cgroup (memory.oom.group). `tasks`: the largest first, of `tasks_total`.
    `is_cut`: the log lacks the report's beginning. `is_mixed`: with the lines of another report among its own.
    """

    pid: int | None
    name: str
    outcome: str
    when: When
    scope: str | None = None
    constraint: str | None = None
    cgroup: str | None = None
    task_cgroup: str | None = None
    uid: int | None = None
    total_vm_bytes: int | None = None
    anon_bytes: int | None = None
    file_bytes: int | None = None
    shmem_bytes: int | None = None
    page_table_bytes: int | None = None
    adj: int | None = None
    score: int | None = None
    memory: Usage | None = None
    swap: Usage | None = None
    kernel: Usage | None = None
    held: Held | None = None
    invoker: str | None = None
    invoker_pid: int | None = None
    gfp: str | None = None
    order: int | None = None
    manual: bool = False
    group: str | None = None
    tasks: tuple[Task, ...] = ()
    tasks_total: int = 0
    page_bytes: int | None = None
    is_cut: bool = False
    is_mixed: bool = False

    @property
    def at_s(self) -> float:
        """Seconds since boot; 0 if unknown."""
        return self.when.uptime_s or 0.0

    @property
    def by_cgroup(self) -> bool:
        """Whether a cgroup was at its limit, not the machine."""
        return self.scope == MEMCG

    @property
    def rss_bytes(self) -> int | None:
        """All that was resident, by its last sentence, or by its row of the table."""
        if self.anon_bytes is None:
            return next((task.rss_bytes for task in self.tasks if task.pid == self.pid), None)
        return sum(part or 0 for part in (self.anon_bytes, self.file_bytes, self.shmem_bytes))


def bytes_of_stats(stats: Mapping[str, int], kernel: Usage | None) -> Held | None:
    """What a cgroup held, by the statistics of v1 (`total_rss`, or `rss` of each cgroup below it) or v2 (`anon`)."""
    if not stats:
        return None
    prefix = "total_" if "total_rss" in stats else ""
    anon = stats.get("anon", stats.get(f"{prefix}rss"))
    shmem = stats.get(f"{prefix}shmem", stats.get("shmem"))
    cache = stats.get("file", stats.get(f"{prefix}cache"))
    parts = [
        stats[name]
        for name in ("kernel_stack", "pagetables", "percpu", "sock", "slab_unreclaimable", "vmalloc")
        if name in stats
    ]
    in_kernel = stats.get("kernel", sum(parts) if parts else None)
    if in_kernel is None and kernel is not None:
        in_kernel = kernel.usage_bytes
    return Held(
        anon,
        shmem,
        None if cache is None else max(0, cache - (shmem or 0)),
        in_kernel,
        stats.get(f"{prefix}swap"),
    )
