"""Which limit stops the next thread, and how many are left until then. Pure: a situation in, a row a limit out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from opskit.analysis.stack_space import ThreadCost, threads_in_address_space, threads_in_maps
from opskit.analysis.thread_stack import Stack, compiler_stack_bytes, cost_of, stack_of
from opskit.proc.files.limits import UNLIMITED
from opskit.proc.task_counts import RESERVED_PIDS
from opskit.proc.thread_limits import INIT_USER_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.proc.thread_limits import CgroupLevel, CgroupLimits, Situation

_CAP_IPC_LOCK, _CAP_SYS_ADMIN, _CAP_SYS_RESOURCE = 14, 21, 24
_ARENA_TOUCHED = 132 << 10  # what glibc makes writable of a new arena
_THREAD_CHARGE = 44 << 10  # kernel stack, task and page tables, and what is touched of stack and arena
_ADDRESS_SPACE_64 = 1 << 47
_NOT_RUN_OUT = 0.1  # of the binding limit's value: less is as good as nothing

State = Literal["counts", "unlimited", "exempt", "unknown"]


@dataclass(frozen=True)
class Limit:
    """One limit. `value` and `in_use` are in `unit` ("bytes", "threads", "maps", "pids", ""); value may be UNLIMITED.

    `state`: "counts" (threads_left is a number), "unlimited", "exempt" or "unknown" (`note` says why). `cgroup` is set
    for a cgroup's limit. `left_share` is the part of the value that is left, 0 to 1. Where `threads_left_max` is set, the
    numbers are lowest estimates, with `threads_left_max` as the highest. `at_most`: what cannot be seen from here counts
    too. `reason` says in two words why it is unknown, where a file could not be read.
    """

    name: str
    unit: str
    value: float | None
    in_use: int | None
    threads_left: int | None
    state: State
    source: str
    note: str | None = None
    cgroup: str | None = None
    left_share: float | None = None
    threads_left_max: int | None = None
    set_by: str | None = None
    fix: str | None = None
    at_most: bool = False
    reason: str | None = None

    @property
    def full_name(self) -> str:
        """The name with the cgroup that it is of."""
        return f"{self.name} of {self.cgroup}" if self.cgroup else self.name


@dataclass(frozen=True)
class Verdict:
    """All limits, the one that binds first. `binding` is None where none could be told, or none counts."""

    limits: tuple[Limit, ...]
    stack: Stack

    @property
    def binding(self) -> Limit | None:
        """The limit that stops the next thread first."""
        return self.limits[0] if self.limits and self.limits[0].state == "counts" else None

    @property
    def threads_left(self) -> int | None:
        """How many more threads can start."""
        return None if self.binding is None else self.binding.threads_left

    @property
    def unknown(self) -> tuple[Limit, ...]:
        """The limits that could not be told."""
        return tuple(limit for limit in self.limits if limit.state == "unknown")

    @property
    def is_at_most(self) -> bool:
        """Whether fewer threads than `threads_left` may start: the limit's use is not all seen, or another one is unknown."""
        binding = self.binding
        return binding is not None and bool(binding.threads_left) and (binding.at_most or bool(self.unknown))

    @property
    def has_run_out(self) -> bool:
        """Whether nothing is left, or less than a tenth of the binding limit's value."""
        binding = self.binding
        if binding is None:
            return False
        return not binding.threads_left or (binding.left_share is not None and binding.left_share < _NOT_RUN_OUT)


def judge(
    situation: Situation,
    stack_bytes: int | None = None,
    page_bytes: int = 4096,
    *,
    namespace_owner: int | None = None,
    clone3: str | None = None,
) -> Verdict:
    """Every limit with its headroom, the smallest first.

    `stack_bytes` overrules the stack's size. `namespace_owner` is the uid that made the process's user namespace, None
    where it could not be asked. `clone3` is what a seccomp filter was seen to answer: "allowed", or an error's name.
    """
    stack = stack_of(situation, stack_bytes, page_bytes)
    cost = cost_of(situation, stack) if situation.space else None
    found = [
        *_cgroup_pids(situation.pid, situation.pids),
        *_nproc(situation, namespace_owner),
        _stack(situation, stack),
        _address_space(situation, cost),
        _data(situation, stack, cost),
        _locked(situation, stack, cost),
        _threads_max(situation),
        _pid_max(situation),
        _max_map_count(situation, cost),
        _overcommit(situation, stack),
        *_cgroup_memory(situation.pid, situation.memory),
        _seccomp(situation, clone3),
    ]
    order = {"counts": 0, "unknown": 1, "unlimited": 2, "exempt": 2}
    found.sort(key=lambda limit: (order[limit.state], limit.threads_left or 0))  # stable: the list's order breaks ties
    return Verdict(tuple(found), stack)


def _share(left: float, value: float) -> float:
    return max(0.0, left) / value if value > 0 else 0.0


def _row(
    name: str, unit: str, value: float | None, in_use: int | None, source: str, missing: str | None = None
) -> Limit | None:
    """The row of a limit that is not there to be computed with: unlimited, or not known. None: go on and compute."""
    if value is None or (in_use is None and value != UNLIMITED):
        return Limit(name, unit, value, in_use, None, "unknown", source, missing or "it could not be read")
    if value == UNLIMITED:
        return Limit(name, unit, value, in_use, None, "unlimited", source)
    return None


def _soft(situation: Situation, name: str) -> float | None:
    limit = situation.limits.get(name)
    return None if limit is None else limit.soft


def _limits_file(situation: Situation) -> str:
    return f"/proc/{situation.pid}/limits"


def _cgroup_pids(pid: int, cgroups: CgroupLimits) -> Iterator[Limit]:
    limited = [level for level in cgroups.levels if level.limit != UNLIMITED]
    for level in limited:
        yield _pids_row(level)
    if cgroups.unknown:
        yield Limit("pids.max", "threads", None, None, None, "unknown", f"/proc/{pid}/cgroup", cgroups.unknown)
    elif not limited:
        nearest = cgroups.levels[0] if cgroups.levels else None
        yield Limit(
            "pids.max",
            "threads",
            UNLIMITED,
            nearest.current if nearest else None,
            None,
            "unlimited",
            nearest.file if nearest else f"/proc/{pid}/cgroup",
            f"max in all {len(cgroups.levels)} cgroups up to the root" if nearest else "in the root cgroup",
            nearest.path if nearest else None,
        )


def _pids_row(level: CgroupLevel) -> Limit:
    if level.limit is None or level.current is None:
        return Limit(
            "pids.max", "threads", level.limit, level.current, None, "unknown", level.file, "it could not be read",
            level.path,
        )  # fmt: skip
    left = max(0, int(level.limit) - level.current)
    return Limit(
        "pids.max", "threads", level.limit, level.current, left, "counts", level.file, None, level.path,
        _share(left, level.limit),
    )  # fmt: skip


def _nproc(situation: Situation, owner: int | None) -> Iterator[Limit]:
    soft, source = _soft(situation, "RLIMIT_NPROC"), f"{_limits_file(situation)}, threads of its real uid"
    used = situation.user_threads
    reason = _nproc_exemption(situation)
    if reason:
        yield Limit("RLIMIT_NPROC", "threads", soft, used, None, "exempt", source, reason)
        return
    unmapped = (
        "its uid is not mapped into our user namespace: whose threads count cannot be told" if used is None else None
    )
    if (row := _row("RLIMIT_NPROC", "threads", soft, used, source, unmapped)) or soft is None or used is None:
        if row:
            yield row
        return
    left = max(0, int(soft) - used)
    note = None
    if situation.population.hidden:
        note = "at most: some processes cannot be seen (hidepid, or a partial copy), and those of this user count too"
    elif situation.shows_all_pids is False:
        note = "at most: threads of the same uid outside this pid namespace count too, and cannot be seen from here"
    yield Limit(
        "RLIMIT_NPROC", "threads", soft, used, left, "counts", source, note, None, _share(left, soft),
        at_most=note is not None,
    )  # fmt: skip
    if situation.user_namespace not in (None, INIT_USER_NAMESPACE) and owner != 0:
        yield _nproc_above(situation, soft, owner)


def _nproc_exemption(situation: Situation) -> str | None:
    """kernel/fork.c, copy_process: who may pass RLIMIT_NPROC."""
    in_init = situation.user_namespace in (None, INIT_USER_NAMESPACE)
    if situation.status.real_uid == 0 and situation.reader_user_namespace in (None, INIT_USER_NAMESPACE):
        return "does not hold for uid 0 of the initial user namespace"
    if not in_init:
        return None
    for capability, name in ((_CAP_SYS_RESOURCE, "CAP_SYS_RESOURCE"), (_CAP_SYS_ADMIN, "CAP_SYS_ADMIN")):
        if _has(situation, capability):
            return f"does not hold for a process with {name}"
    return None


def _nproc_above(situation: Situation, soft: float, owner: int | None) -> Limit:
    """The parent user namespace counts the namespace's threads for whoever made it, up to the limit of that moment."""
    source = "user namespace's owner"
    if owner is None:
        return Limit(
            "RLIMIT_NPROC", "threads", None, None, None, "unknown", source,
            "the parent user namespace has a limit too: that of whoever made this one, when it was made",
        )  # fmt: skip
    used = sum(member.threads for member in situation.population.members if member.uid == owner)
    left = max(0, int(soft) - used)
    return Limit(
        "RLIMIT_NPROC", "threads", soft, used, left, "counts", source,
        f"of uid {owner}, who made the user namespace; the limit is the one that held then, taken to be the same",
        left_share=_share(left, soft),
    )  # fmt: skip


def _has(situation: Situation, capability: int) -> bool:
    return bool((situation.status.mask("CapEff") or 0) >> capability & 1)


def _stack(situation: Situation, stack: Stack) -> Limit:
    soft, source = _soft(situation, "RLIMIT_STACK"), _limits_file(situation)
    mapped = situation.status.bytes_of("VmSize")
    top = situation.space.top if situation.space else _ADDRESS_SPACE_64
    note = None if stack.follows_rlimit and soft != UNLIMITED else f"each new thread's stack: {stack.origin}"
    if stack.kind == "java":
        compiler = compiler_stack_bytes(situation.java_options)
        note = (
            f"a JVM's threads do not follow it: their stack is {_kib(stack.bytes)}, {stack.origin}; compiler threads "
            f"have {_kib(compiler)} of their own"
        )
    elif stack.kind == "musl":
        note = "musl's threads do not follow it: their stack is 128 KiB"
    if soft is None:
        return Limit("RLIMIT_STACK", "bytes", None, None, None, "unknown", source, _why(situation, "limits"))
    ram = situation.meminfo.get("MemTotal")
    if situation.overcommit in (0, None) and ram is not None:
        if stack.bytes > ram + situation.meminfo.get("SwapTotal", 0):
            return Limit("RLIMIT_STACK", "bytes", soft, None, 0, "counts", source, note, left_share=0.0)
    elif situation.overcommit in (0, None) and stack.bytes > 1 << 30:
        reason = "whether one stack is more than RAM + swap cannot be told without /proc/meminfo"
        return Limit("RLIMIT_STACK", "bytes", soft, None, None, "unknown", source, reason)
    room = top - (mapped or 0)
    left = room // (stack.bytes + stack.guard_bytes)
    note = note or f"as many stacks as the address space of {_tib(top)} holds"
    return Limit("RLIMIT_STACK", "bytes", soft, None, left, "counts", source, note, left_share=_share(room, top))


def _kib(size: int) -> str:
    return f"{size >> 20} MiB" if size % (1 << 20) == 0 else f"{size >> 10} KiB"


def _tib(size: int) -> str:
    return f"{size >> 40} TiB" if size >= 1 << 40 else f"{size >> 30} GiB"


def _why(situation: Situation, name: str) -> str:
    return f"/proc/{situation.pid}/{name}: {situation.unreadable.get(name, 'empty')}"


def _address_space(situation: Situation, cost: ThreadCost | None) -> Limit:
    soft, used = _soft(situation, "RLIMIT_AS"), situation.status.bytes_of("VmSize")
    source = f"{_limits_file(situation)}, VmSize of /proc/{situation.pid}/status"
    if (row := _row("RLIMIT_AS", "bytes", soft, used, source)) or soft is None or used is None:
        return row or _unknown("RLIMIT_AS", "bytes", source)
    if cost is None or situation.space is None:
        why, reason = _why(situation, "maps"), situation.unreadable.get("maps")
        return Limit("RLIMIT_AS", "bytes", soft, used, None, "unknown", source, why, reason=reason)
    room = max(0, int(soft) - used)
    share = _share(room, soft)
    plain = cost.cached + room // cost.mapped_bytes
    if situation.space.glibc and situation.space.allocator is None:
        left = threads_in_address_space(room, situation.space.gaps, cost)
        note = None
        if cost.arenas_left and left < plain:
            note = f"its threads' malloc arenas take 64 MiB each: up to {plain} if they never call malloc()"
        return Limit("RLIMIT_AS", "bytes", soft, used, left, "counts", source, note, None, share)
    low, why = _range_low(situation, cost, room)
    return Limit(
        "RLIMIT_AS", "bytes", soft, used, low, "counts", source, f"{low} to {plain}: {why}", None, share, plain
    )


_UNKNOWN_MALLOC = 2 << 20  # what a thread's first allocations map at most, in allocators with small arenas


def _range_low(situation: Situation, cost: ThreadCost, room: int) -> tuple[int, str]:
    space = situation.space
    if space is not None and space.musl:
        return room // (cost.mapped_bytes + (64 << 10)), "musl's malloc maps more as its threads allocate"
    what = space.allocator.rpartition("/")[2] if space is not None and space.allocator else "a static program's malloc"
    return room // (cost.mapped_bytes + _UNKNOWN_MALLOC), f"{what} maps an unknown amount a thread"


def _unknown(name: str, unit: str, source: str) -> Limit:
    return Limit(name, unit, None, None, None, "unknown", source, "it could not be read")


def _data(situation: Situation, stack: Stack, cost: ThreadCost | None) -> Limit:
    soft, used = _soft(situation, "RLIMIT_DATA"), situation.status.bytes_of("VmData")
    source = f"{_limits_file(situation)}, VmData of /proc/{situation.pid}/status"
    if (row := _row("RLIMIT_DATA", "bytes", soft, used, source)) or soft is None or used is None:
        return row or _unknown("RLIMIT_DATA", "bytes", source)
    room = max(0, int(soft) - used)
    left = _writable(room, stack, cost)
    found = Limit("RLIMIT_DATA", "bytes", soft, used, left, "counts", source, None, None, _share(room, soft))
    return _unless_guessed(found, situation, stack)


def _unless_guessed(limit: Limit, situation: Situation, stack: Stack) -> Limit:
    """The row as unknown where its maps do not tell by whom the stacks are sized; not where no stack at all would fit."""
    if situation.space is not None or stack.kind == "given" or not limit.left_share:
        return limit
    why = f"{_why(situation, 'maps')}: how large its stacks are is not known; {limit.threads_left} of {_kib(stack.bytes)} fit"
    return replace(
        limit, threads_left=None, state="unknown", note=why, left_share=None, reason=situation.unreadable.get("maps")
    )


def _writable(room: int, stack: Stack, cost: ThreadCost | None) -> int:
    """How many stacks of writable memory fit, with the writable part of their arenas."""
    arenas, cached = (cost.arenas_left, cost.cached) if cost else (0, 0)
    dear = min(arenas, room // (stack.bytes + _ARENA_TOUCHED))
    return cached + dear + (room - dear * (stack.bytes + _ARENA_TOUCHED)) // stack.bytes


def _locked(situation: Situation, stack: Stack, cost: ThreadCost | None) -> Limit:
    soft, used = _soft(situation, "RLIMIT_MEMLOCK"), situation.status.bytes_of("VmLck")
    source = f"{_limits_file(situation)}, VmLck of /proc/{situation.pid}/status"
    if (row := _row("RLIMIT_MEMLOCK", "bytes", soft, used, source)) or soft is None or used is None:
        return row or _unknown("RLIMIT_MEMLOCK", "bytes", source)
    if _has(situation, _CAP_IPC_LOCK) and situation.user_namespace in (None, INIT_USER_NAMESPACE):
        why = "does not hold for a process with CAP_IPC_LOCK"
        return Limit("RLIMIT_MEMLOCK", "bytes", soft, used, None, "exempt", source, why)
    room = max(0, int(soft) - used)
    if cost is None or situation.space is None:
        left = room // (stack.bytes + stack.guard_bytes)
    else:
        left = threads_in_address_space(room, situation.space.gaps, cost)
    if situation.locks_new or used * 2 >= (situation.status.bytes_of("VmSize") or 0):
        note = "mlockall(MCL_FUTURE) is seen to hold: new stacks are locked"
        found = Limit("RLIMIT_MEMLOCK", "bytes", soft, used, left, "counts", source, note, None, _share(room, soft))
        return _unless_guessed(found, situation, stack)
    if used:
        why = f"some memory is locked; only if mlockall(MCL_FUTURE) was called, new stacks are too, and {left} fit"
        return Limit("RLIMIT_MEMLOCK", "bytes", soft, used, None, "unknown", source, why)
    why = "nothing is locked: it holds for stacks only after mlockall(MCL_FUTURE)"
    return Limit("RLIMIT_MEMLOCK", "bytes", soft, used, None, "unlimited", source, why)


def _threads_max(situation: Situation) -> Limit:
    value, used = situation.threads_max, situation.total_tasks
    source = "/proc/sys/kernel/threads-max, /proc/loadavg"
    if (row := _row("kernel.threads-max", "threads", value, used, source)) or value is None or used is None:
        return row or _unknown("kernel.threads-max", "threads", source)
    left = max(0, value - used)
    return Limit("kernel.threads-max", "threads", value, used, left, "counts", source, None, None, _share(left, value))


def _pid_max(situation: Situation) -> Limit:
    value, source = situation.pid_max, "/proc/sys/kernel/pid_max, /proc/loadavg"
    inside = situation.shows_all_pids is False
    seen = situation.population
    used = seen.threads if inside else situation.total_tasks
    if (row := _row("kernel.pid_max", "pids", value, used, source)) or value is None or used is None:
        return row or _unknown("kernel.pid_max", "pids", source)
    high = seen.high_ids if seen.members and not seen.hidden else max(0, used)
    # The lowest ids are given out only until the ids wrap for the first time.
    unwrapped = max(0, RESERVED_PIDS - 1 - situation.last_pid) if situation.last_pid is not None else 0
    left = max(0, value - RESERVED_PIDS - high) + unwrapped
    note = None
    if inside:
        note = "at most: the pid namespaces above this one give an id to each thread too, and may have fewer left"
    elif len(situation.status.ns_pids) > 1 and (situation.release is None or situation.release >= (6, 14)):
        note = "at most: its own pid namespace may have a smaller one, which only shows from inside"
    return Limit(
        "kernel.pid_max", "pids", value, used, left, "counts", source, note, None, _share(left, value),
        at_most=note is not None,
    )  # fmt: skip


def _max_map_count(situation: Situation, cost: ThreadCost | None) -> Limit:
    value, source = situation.max_map_count, f"/proc/sys/vm/max_map_count, /proc/{situation.pid}/maps"
    used = situation.space.maps if situation.space else None
    missing = None if situation.space else _why(situation, "maps")
    if (row := _row("vm.max_map_count", "maps", value, used, source, missing)) or value is None or cost is None:
        return replace(row or _unknown("vm.max_map_count", "maps", source), reason=situation.unreadable.get("maps"))
    room = max(0, value - (used or 0))
    left = threads_in_maps(room, cost)
    return Limit("vm.max_map_count", "maps", value, used, left, "counts", source, None, None, _share(room, value))


def _overcommit(situation: Situation, stack: Stack) -> Limit:
    mode, name = situation.overcommit, "vm.overcommit_memory"
    if mode is None:
        return _unknown(name, "", "/proc/sys/vm/overcommit_memory")
    if mode != 2:
        why = "a request is refused only where it alone is above RAM + swap" if mode == 0 else "nothing is refused"
        return Limit(name, "", mode, None, None, "unlimited", "/proc/sys/vm/overcommit_memory", f"mode {mode}: {why}")
    source = "/proc/meminfo, CommitLimit and Committed_AS"
    total, used = situation.meminfo.get("CommitLimit"), situation.meminfo.get("Committed_AS")
    if total is None or used is None:
        return _unknown(name, "bytes", source)
    # mm/util.c, __vm_enough_memory: what is kept for root, and for a user to recover with.
    admin = 0 if _has(situation, _CAP_SYS_ADMIN) else situation.admin_reserve_bytes
    user = min((situation.status.bytes_of("VmSize") or 0) // 32, situation.user_reserve_bytes)
    room = max(0, total - admin - user - used)
    left = room // stack.bytes
    found = Limit(
        name, "bytes", total, used, left, "counts", source, "mode 2: all stacks are counted against CommitLimit", None,
        _share(room, total),
    )  # fmt: skip
    return _unless_guessed(found, situation, stack)


def _cgroup_memory(pid: int, cgroups: CgroupLimits) -> Iterator[Limit]:
    limited = [level for level in cgroups.levels if level.limit != UNLIMITED]
    for level in limited:
        name = level.file.rpartition("/")[2]
        if level.limit is None or level.current is None:
            yield Limit(name, "bytes", level.limit, level.current, None, "unknown", level.file, "it could not be read", level.path)  # fmt: skip
            continue
        room = max(0, int(level.limit) - level.current + min(level.reclaimable_bytes, level.current))
        note = "about: a thread is charged some 44 KiB to begin with; past the limit the OOM killer comes first"
        yield Limit(
            name, "bytes", level.limit, level.current, room // _THREAD_CHARGE, "counts", level.file, note, level.path,
            _share(room, level.limit),
        )  # fmt: skip
    if cgroups.unknown:
        yield Limit("memory.max", "bytes", None, None, None, "unknown", f"/proc/{pid}/cgroup", cgroups.unknown)
    elif not limited:
        nearest = cgroups.levels[0] if cgroups.levels else None
        name, source = (
            (nearest.file.rpartition("/")[2], nearest.file) if nearest else ("memory.max", f"/proc/{pid}/cgroup")
        )
        yield Limit(name, "bytes", UNLIMITED, nearest.current if nearest else None, None, "unlimited", source)


def _seccomp(situation: Situation, clone3: str | None) -> Limit:
    status, source = situation.status, f"Seccomp of /proc/{situation.pid}/status"
    mode = status.fields.get("Seccomp")
    if mode in (None, "0"):
        note = "no filter" if mode else "this kernel does not say"
        return Limit("seccomp", "", None, None, None, "unlimited" if mode else "unknown", source, note)
    if clone3 is not None and clone3 != "allowed":
        note = f"the filter answers clone3() with {clone3}, and glibc tries clone() only after ENOSYS"
        return Limit("seccomp", "", None, None, 0, "counts", source, note, left_share=0.0)
    if clone3 == "allowed" or (status.threads or 1) > 1:
        why = "lets clone3() pass" if clone3 else "its threads show that the filter lets them start"
        return Limit("seccomp", "", None, None, None, "unlimited", source, why)
    if situation.glibc is not None and situation.glibc < (2, 34):
        note = "a filter is in force; this glibc calls clone(), which filters let pass"
        return Limit("seccomp", "", None, None, None, "unlimited", source, note)
    return Limit(
        "seccomp", "", None, None, None, "unknown", source,
        "a filter is in force and no thread was started yet: if it answers clone3() with EPERM, none will",
    )  # fmt: skip
