"""Which limit stops the next thread, and how many can start until then: one row per limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.limits.limit import UNREAD, Headroom, Limit
from opskit.analysis.limits.stack_space import ThreadCost, threads_in_address_space, threads_in_maps
from opskit.analysis.limits.thread_stack import Stack, compiler_stack_bytes, cost_of, stack_of
from opskit.proc.files.limits import UNLIMITED
from opskit.proc.namespaces import INITIAL
from opskit.proc.task_counts import RESERVED_PIDS
from opskit.quantities import plural, short_size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opskit.collect.limits.facts import ThreadLimitFacts
    from opskit.proc.cgroup.limits import CgroupLimit, CgroupLimits

_CAP_IPC_LOCK, _CAP_SYS_ADMIN, _CAP_SYS_RESOURCE = 14, 21, 24
_ARENA_TOUCHED = 132 << 10  # what glibc makes writable of a new arena
_THREAD_CHARGE = 44 << 10  # kernel stack, task and page tables, and what is touched of stack and arena
_ADDRESS_SPACE_64 = 1 << 47
_UNKNOWN_MALLOC = 2 << 20  # what a thread's first allocations map at most, in allocators with small arenas
_ORDER = {"counts": 0, "unknown": 1, "unlimited": 2, "exempt": 2}


class _Case(NamedTuple):
    """What a rule judges by. `cost` is None where the address space could not be read."""

    facts: ThreadLimitFacts
    stack: Stack
    cost: ThreadCost | None

    def bytes_of(self, key: str) -> int:
        return self.facts.status.bytes_of(key) or 0

    def has(self, capability: int) -> bool:
        return bool((self.facts.status.mask("CapEff") or 0) >> capability & 1)

    @property
    def in_initial_user_namespace(self) -> bool:
        return self.facts.user_namespace in (None, INITIAL["user"])

    def unread(self, row: Limit, name: str = "maps", more: str = "") -> Limit:
        reason = self.facts.unreadable.get(name)
        return row.unknown(f"/proc/{self.facts.pid}/{name}: {reason or 'empty'}{more}", reason)


class _Rule(NamedTuple):
    """A limit with a value and a use: where the use is from, and how many threads fit into what is left."""

    name: str
    unit: str
    use: Callable[[ThreadLimitFacts], int | None]
    used_in: str
    left: Callable[[_Case, Limit, int], Limit]


def headroom(facts: ThreadLimitFacts, stack_bytes: int | None = None) -> Headroom:
    """Every limit with its headroom, the smallest first. `stack_bytes` overrides the stack's size."""
    stack = stack_of(facts, stack_bytes)
    case = _Case(facts, stack, cost_of(facts, stack) if facts.space else None)
    found = [
        *_cgroup_rows(
            facts, facts.pids, ("pids.max", "threads"), lambda row, _: row.counts(row.room or 0, row.room or 0)
        ),
        *_nproc(case),
        _stack(case),
        *(_rated(case, rule) for rule in _RULES),
        _overcommit(case),
        *_cgroup_rows(facts, facts.memory, ("memory.max", "bytes"), _memory_left),
        _seccomp(case),
    ]
    found.sort(key=lambda limit: (_ORDER[limit.state], limit.threads_left or 0))  # stable: the list's order breaks ties
    return Headroom(tuple(found), stack)


def _rated(case: _Case, rule: _Rule) -> Limit:
    facts, pid = case.facts, case.facts.pid
    if rule.name.startswith("RLIMIT_"):
        value, source = facts.soft(rule.name), f"/proc/{pid}/limits"
    else:
        value, source = facts.sysctl.get(rule.name), f"/proc/sys/{rule.name.replace('.', '/')}"
    row = Limit(rule.name, rule.unit, value, rule.use(facts), f"{source}, {rule.used_in.format(pid=pid)}")
    if value == UNLIMITED:
        return row.free()
    if row.room is not None:
        return rule.left(case, row, row.room)
    if rule.used_in.endswith("/maps") and facts.space is None:
        return case.unread(row)
    return row


# Each of these says how many threads fit into what is left of a limit.


def _address_space(case: _Case, row: Limit, room: int) -> Limit:
    space, cost = case.facts.space, case.cost
    if cost is None or space is None:
        return case.unread(row)
    most = cost.cached + room // cost.mapped_bytes
    if space.glibc and space.allocator is None:
        left = threads_in_address_space(room, space.gaps, cost)
        arenas = f"its threads' malloc arenas take 64 MiB each: up to {most} if they never call malloc()"
        return row.counts(left, room, arenas if cost.arenas_left and left < most else None)
    if space.musl:
        least, why = room // (cost.mapped_bytes + (64 << 10)), "musl's malloc maps more as its threads allocate"
    else:
        what = space.allocator.rpartition("/")[2] if space.allocator else "a static program's malloc"
        least, why = room // (cost.mapped_bytes + _UNKNOWN_MALLOC), f"{what} maps an unknown amount a thread"
    return row.counts(least, room, f"{least} to {most}: {why}")._replace(threads_left_max=most)


def _data(case: _Case, row: Limit, room: int) -> Limit:
    arenas, cached = (case.cost.arenas_left, case.cost.cached) if case.cost else (0, 0)
    with_arena = case.stack.bytes + _ARENA_TOUCHED
    first = min(arenas, room // with_arena)
    return _unless_guessed(case, row.counts(cached + first + (room - first * with_arena) // case.stack.bytes, room))


def _locked(case: _Case, row: Limit, room: int) -> Limit:
    facts, stack, used = case.facts, case.stack, row.in_use or 0
    if case.has(_CAP_IPC_LOCK) and case.in_initial_user_namespace:
        return row.free("does not hold for a process with CAP_IPC_LOCK", "exempt")
    left = room // (stack.bytes + stack.guard_bytes)
    if case.cost and facts.space:
        left = threads_in_address_space(room, facts.space.gaps, case.cost)
    if facts.locks_new or used * 2 >= case.bytes_of("VmSize"):
        return _unless_guessed(case, row.counts(left, room, "mlockall(MCL_FUTURE) is in force: new stacks are locked"))
    if used:
        return row.unknown(f"some memory is locked; new stacks are too only after mlockall(MCL_FUTURE), and {left} fit")
    return row.free("nothing is locked: it holds for stacks only after mlockall(MCL_FUTURE)")


def _unless_guessed(case: _Case, row: Limit) -> Limit:
    """The row as unknown where the unread maps leave the size of stacks open, unless not even one would fit."""
    if case.facts.space is not None or case.stack.kind == "given" or not row.left_share:
        return row
    fit = f"{row.threads_left} of {short_size(case.stack.bytes)} fit"
    return case.unread(row, more=f": the size of its stacks is unknown; {fit}")


def _ids(case: _Case, row: Limit, _: int) -> Limit:
    """Ids from RESERVED_PIDS up, and the lowest ones only until the ids wrap for the first time."""
    facts, tasks = case.facts, case.facts.tasks
    taken = tasks.high_ids if tasks.processes and not tasks.hidden else row.in_use or 0
    unwrapped = max(0, RESERVED_PIDS - 1 - facts.last_pid) if facts.last_pid is not None else 0
    left = max(0, int(row.value or 0) - RESERVED_PIDS - taken) + unwrapped
    note = None
    if facts.shows_all_pids is False:
        note = "at most: the pid namespaces above this one give an id to each thread too, and may have fewer left"
    elif len(facts.status.ns_pids) > 1 and (facts.release is None or facts.release >= (6, 14)):
        note = "at most: its own pid namespace may have a smaller one, which is visible from inside only"
    return row.counts(left, left, note, at_most=note is not None)


_RULES = (
    _Rule("RLIMIT_AS", "bytes", lambda it: it.status.bytes_of("VmSize"), "VmSize of /proc/{pid}/status", _address_space),
    _Rule("RLIMIT_DATA", "bytes", lambda it: it.status.bytes_of("VmData"), "VmData of /proc/{pid}/status", _data),
    _Rule("RLIMIT_MEMLOCK", "bytes", lambda it: it.status.bytes_of("VmLck"), "VmLck of /proc/{pid}/status", _locked),
    _Rule(
        "kernel.threads-max", "threads",
        lambda it: it.total_tasks, "/proc/loadavg", lambda _, row, room: row.counts(room, room),
    ),
    _Rule(
        "kernel.pid_max", "pids",
        lambda it: it.tasks.threads if it.shows_all_pids is False else it.total_tasks, "/proc/loadavg", _ids,
    ),
    _Rule(
        "vm.max_map_count", "maps", lambda it: it.space.maps if it.space else None, "/proc/{pid}/maps",
        lambda case, row, room: row.counts(threads_in_maps(room, case.cost), room) if case.cost else row,
    ),
)  # fmt: skip


def _cgroup_rows(
    facts: ThreadLimitFacts, cgroups: CgroupLimits, kind: tuple[str, str], left: Callable[[Limit, CgroupLimit], Limit]
) -> Iterator[Limit]:
    """A row for each cgroup with a limit, and one for what is above the last visible one, or where none has a limit."""
    unread = Limit(*kind, None, None, f"/proc/{facts.pid}/cgroup")
    limited = [level for level in cgroups.levels if level.limit != UNLIMITED]
    for level in limited:
        row = _cgroup_row(unread, level)
        yield row if row.room is None else left(row, level)
    if cgroups.unknown:
        yield unread.unknown(cgroups.unknown)
    elif not limited and cgroups.levels:
        yield _cgroup_row(unread, cgroups.levels[0]).free(
            f"max in {plural(len(cgroups.levels), 'cgroup')} up to the root"
        )
    elif not limited:
        yield unread._replace(value=UNLIMITED).free("in the root cgroup")


def _cgroup_row(unread: Limit, level: CgroupLimit) -> Limit:
    name = level.file.rpartition("/")[2]
    return Limit(name, unread.unit, level.limit, level.usage, level.file, level.path)


def _memory_left(row: Limit, level: CgroupLimit) -> Limit:
    room = max(0, int(row.value or 0) - (row.in_use or 0) + min(level.reclaimable_bytes, row.in_use or 0))
    note = "about: a thread is charged some 44 KiB to begin with; past the limit the OOM killer comes first"
    return row.counts(room // _THREAD_CHARGE, room, note)


def _nproc(case: _Case) -> list[Limit]:
    facts = case.facts
    source = f"/proc/{facts.pid}/limits, threads of its real uid"
    row = Limit("RLIMIT_NPROC", "threads", facts.soft("RLIMIT_NPROC"), facts.user_threads, source)
    if exempt := _nproc_exemption(case):
        return [row.free(exempt, "exempt")]
    if row.value == UNLIMITED:
        return [row.free()]
    if row.room is None:
        unmapped = "its uid is not mapped into our user namespace: which threads count is unknown"
        return [row.unknown(unmapped if row.in_use is None else UNREAD)]
    note = None
    if facts.tasks.hidden:
        note = "at most: some processes are hidden (hidepid, or a partial copy), and those of this user count too"
    elif facts.shows_all_pids is False:
        note = "at most: threads of the same uid outside this pid namespace count too, and are not visible from here"
    own = row.counts(row.room, row.room, note, at_most=note is not None)
    has_other = not case.in_initial_user_namespace and facts.namespace_owner != 0
    return [own, _nproc_above(case, row)] if has_other else [own]


def _nproc_exemption(case: _Case) -> str | None:
    """kernel/fork.c, copy_process: who may pass RLIMIT_NPROC."""
    if case.facts.status.real_uid == 0 and case.facts.reader_user_namespace in (None, INITIAL["user"]):
        return "does not hold for uid 0 of the initial user namespace"
    names = {_CAP_SYS_RESOURCE: "CAP_SYS_RESOURCE", _CAP_SYS_ADMIN: "CAP_SYS_ADMIN"}
    name = next((names[each] for each in names if case.in_initial_user_namespace and case.has(each)), None)
    return name and f"does not hold for a process with {name}"


def _nproc_above(case: _Case, row: Limit) -> Limit:
    """The parent user namespace counts the namespace's threads for its creator, up to the limit of that moment."""
    owner, source = case.facts.namespace_owner, "user namespace's owner"
    if owner is None:
        why = "the parent user namespace has a limit too: that of the namespace's creator, when it was made"
        return row._replace(value=None, in_use=None, source=source).unknown(why)
    above = row._replace(in_use=case.facts.tasks.of_uid(owner), source=source)
    note = f"of uid {owner}, who made the user namespace; the limit of that moment is taken to be the same"
    return above.counts(above.room or 0, above.room or 0, note)


def _stack(case: _Case) -> Limit:
    facts, stack = case.facts, case.stack
    row = Limit("RLIMIT_STACK", "bytes", facts.soft("RLIMIT_STACK"), None, f"/proc/{facts.pid}/limits")
    if row.value is None:
        return case.unread(row, "limits")._replace(reason=None)
    note = None if stack.follows_rlimit and row.value != UNLIMITED else f"each new thread's stack: {stack.origin}"
    if stack.kind == "java":
        compiler = short_size(compiler_stack_bytes(facts.program.java_options))
        note = (
            f"a JVM's threads do not follow it: their stack is {short_size(stack.bytes)}, {stack.origin}; compiler threads "
            f"have {compiler} of their own"
        )
    elif stack.kind == "musl":
        note = "musl's threads do not follow it: their stack is 128 KiB"
    ram = facts.meminfo.get("MemTotal")
    if not facts.sysctl.get("vm.overcommit_memory"):
        if ram is not None and stack.bytes > ram + facts.meminfo.get("SwapTotal", 0):
            return row.counts(0, 0, note)
        if ram is None and stack.bytes > 1 << 30:
            return row.unknown("whether one stack is more than RAM + swap is unknown without /proc/meminfo")
    top = facts.space.top if facts.space else _ADDRESS_SPACE_64
    room = top - case.bytes_of("VmSize")
    left = room // (stack.bytes + stack.guard_bytes)
    note = note or f"as many stacks as the address space of {short_size(top)} holds"
    return row.counts(left, 0, note)._replace(left_share=max(0.0, room / top))


def _overcommit(case: _Case) -> Limit:
    facts, stack, name = case.facts, case.stack, "vm.overcommit_memory"
    mode = facts.sysctl.get(name)
    if mode != 2:
        row = Limit(name, "", mode, None, "/proc/sys/vm/overcommit_memory")
        why = "a request is refused only where it alone is above RAM + swap" if mode == 0 else "nothing is refused"
        return row if mode is None else row.free(f"mode {mode}: {why}")
    total, used = facts.meminfo.get("CommitLimit"), facts.meminfo.get("Committed_AS")
    row = Limit(name, "bytes", total, used, "/proc/meminfo, CommitLimit and Committed_AS")
    if total is None or used is None:
        return row._replace(value=None, in_use=None)
    # mm/util.c, __vm_enough_memory: what is kept for root, and for a user to recover with.
    admin = 0 if case.has(_CAP_SYS_ADMIN) else facts.sysctl.get("vm.admin_reserve_kbytes", 0) * 1024
    user = min(case.bytes_of("VmSize") // 32, facts.sysctl.get("vm.user_reserve_kbytes", 0) * 1024)
    room = max(0, total - admin - user - used)
    note = "mode 2: all stacks are counted against CommitLimit"
    return _unless_guessed(case, row.counts(room // stack.bytes, room, note))


def _seccomp(case: _Case) -> Limit:
    facts, clone3, mode = case.facts, case.facts.clone3, case.facts.status.fields.get("Seccomp")
    row = Limit("seccomp", "", None, None, f"Seccomp of /proc/{facts.pid}/status")
    if mode is None:
        return row.unknown("this kernel does not report it")
    if mode == "0":
        return row.free("no filter")
    if clone3 == "allowed":
        return row.free("lets clone3() pass")
    if clone3 is not None:
        return row.counts(0, 0, f"the filter answers clone3() with {clone3}, and glibc tries clone() only after ENOSYS")
    if (facts.status.threads or 1) > 1:
        return row.free("its threads show that the filter lets them start")
    if facts.program.glibc is not None and facts.program.glibc < (2, 34):
        return row.free("a filter is in force; this glibc calls clone(), which filters let pass")
    return row.unknown(
        "a filter is in force and no thread was started yet: if it answers clone3() with EPERM, none will"
    )
