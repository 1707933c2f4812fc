"""What a probe would do to prove a verdict: how many threads it may take, under which limits, as whom. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opskit.proc.files.limits import UNLIMITED
from opskit.proc.thread_limits import INIT_USER_NAMESPACE

if TYPE_CHECKING:
    from opskit.analysis.limits import Verdict
    from opskit.proc.files.limits import Rlimit
    from opskit.proc.thread_limits import Situation

_MOST_THREADS = 8
_EVERYWHERE = ("RLIMIT_STACK", "kernel.threads-max", "kernel.pid_max", "vm.overcommit_memory")


@dataclass(frozen=True)
class ProbePlan:
    """A child that starts `threads` threads of this stack (bytes) and ends.

    `limits` are the rlimits it takes on; of RLIMIT_AS and RLIMIT_DATA it takes `rooms`: as many bytes as the process has
    left. `uid`, `gid` and `groups` are the process's. `cgroup_procs` is the file that moves it into the process's pids
    cgroup. `proves` names the limits that it is under, and so the process would be.
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


def probe_plan(situation: Situation, verdict: Verdict, *, in_cgroup: bool) -> ProbePlan | None:
    """The plan; None where no headroom is known. No threads where these would be among the process's last ones.

    At most the smaller of 8 and half of the headroom, the child itself counted. Where none is left, one is tried: it is
    not to be had.
    """
    left = verdict.threads_left
    if left is None:
        return None
    limits = dict(situation.limits)
    proves = [*_EVERYWHERE]
    rooms = {}
    for name, used in (("RLIMIT_AS", "VmSize"), ("RLIMIT_DATA", "VmData")):
        limit, in_use = limits.pop(name, None), situation.status.bytes_of(used)
        if limit is not None and limit.soft != UNLIMITED and in_use is not None:
            rooms[name] = max(0, int(limit.soft) - in_use)
            proves.append(name)
    row = next((limit for limit in verdict.limits if limit.name == "RLIMIT_NPROC"), None)
    foreign = situation.user_namespace not in (None, INIT_USER_NAMESPACE)
    if foreign or (row is not None and row.state == "exempt" and situation.status.real_uid != 0):
        limits.pop("RLIMIT_NPROC", None)  # the child is not exempt, or counts in another namespace
    else:
        proves.append("RLIMIT_NPROC")
    own_cgroup = situation.pids.levels[0] if situation.pids.levels else None
    if in_cgroup and own_cgroup:
        proves.append("pids.max")
    return ProbePlan(
        pid=situation.pid,
        threads=1 if left == 0 else min(_MOST_THREADS, (left - 1) // 2),
        predicted=left,
        stack_bytes=verdict.stack.bytes,
        guard_bytes=verdict.stack.guard_bytes,
        limits=limits,
        rooms=rooms,
        uid=situation.status.real_uid,
        gid=situation.status.real_gid,
        groups=situation.status.groups,
        cgroup_procs=own_cgroup.file.rpartition("/")[0] + "/cgroup.procs" if in_cgroup and own_cgroup else None,
        proves=tuple(proves),
    )
