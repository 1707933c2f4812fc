"""What a probe does to prove a headroom (how many threads, under which limits, as which user), and its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.limits import UNLIMITED
from opskit.proc.namespaces import INITIAL
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.analysis.limits.limit import Headroom
    from opskit.collect.limits.facts import ThreadLimitFacts
    from opskit.proc.files.limits import Rlimit

_MOST_THREADS = 8
_EVERYWHERE = ("RLIMIT_STACK", "kernel.threads-max", "kernel.pid_max", "vm.overcommit_memory")


class ProbePlan(NamedTuple):
    """A child that starts `threads` threads of this stack (bytes) and ends.

    `limits` are the rlimits it takes on; of RLIMIT_AS and RLIMIT_DATA it takes `rooms`: as many bytes as the process has
    left. `uid`, `gid` and `groups` are the process's. `cgroup_procs` is the file that moves it into the process's pids
    cgroup. `proves` names the limits that hold for the child as they do for the process.
    """

    pid: int
    threads: int
    predicted: int
    stack_bytes: int
    guard_bytes: int
    limits: dict[str, Rlimit]
    rooms: dict[str, int]
    uid: int
    gid: int
    groups: tuple[int, ...]
    cgroup_procs: str | None
    proves: tuple[str, ...]


class ProbeResult(NamedTuple):
    """How many threads were tried and started; the call that failed first with its errno's name; how long it took (s).

    `failed_call` is "mmap" or "mprotect" (the stack), "clone" (the thread), "fork" (the child itself), "setup:…" (a limit,
    the user or the cgroup could not be taken on), or "timeout".
    """

    tried: int
    started: int
    failed_call: str | None
    errno: str | None
    took_s: float


class Probed(NamedTuple):
    """A plan and its result; None: it was not made, since it would have taken the process's last threads."""

    plan: ProbePlan
    result: ProbeResult | None


def probe_plan(facts: ThreadLimitFacts, found: Headroom, *, in_cgroup: bool) -> ProbePlan | None:
    """The plan: at most 8 threads and half of what is left, one where none is; None: the headroom is unknown."""
    left = found.threads_left
    if left is None:
        return None
    limits, proves, rooms = dict(facts.limits), [*_EVERYWHERE], {}
    for name, used in (("RLIMIT_AS", "VmSize"), ("RLIMIT_DATA", "VmData")):
        limit, in_use = limits.pop(name, None), facts.status.bytes_of(used)
        if limit is not None and limit.soft != UNLIMITED and in_use is not None:
            rooms[name] = max(0, int(limit.soft) - in_use)
            proves.append(name)
    exempt = any(limit.name == "RLIMIT_NPROC" and limit.state == "exempt" for limit in found.limits)
    foreign = facts.user_namespace not in (None, INITIAL["user"])
    if foreign or (exempt and facts.status.real_uid != 0):
        limits.pop("RLIMIT_NPROC", None)  # the child is not exempt, or counts in another namespace
    else:
        proves.append("RLIMIT_NPROC")
    own_cgroup = facts.pids.levels[0] if facts.pids.levels and in_cgroup else None
    if own_cgroup:
        proves.append("pids.max")
    return ProbePlan(
        pid=facts.pid,
        threads=1 if left == 0 else min(_MOST_THREADS, (left - 1) // 2),
        predicted=left,
        stack_bytes=found.stack.bytes,
        guard_bytes=found.stack.guard_bytes,
        limits=limits,
        rooms=rooms,
        uid=facts.status.real_uid,
        gid=facts.status.real_gid,
        groups=facts.status.groups,
        cgroup_procs=own_cgroup.file.rpartition("/")[0] + "/cgroup.procs" if own_cgroup else None,
        proves=tuple(proves),
    )
