"""What is read to say how many more threads a process can start, and who set its limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.collect.limits.fillers import Filler
    from opskit.collect.limits.program import Program
    from opskit.proc.cgroup.limits import CgroupLimits
    from opskit.proc.cgroup.tree import Membership
    from opskit.proc.config.pam_limits import PamLimits
    from opskit.proc.config.setting import Setting
    from opskit.proc.files.limits import Rlimit
    from opskit.proc.files.maps import AddressSpace
    from opskit.proc.files.status import Status
    from opskit.proc.process import Process
    from opskit.proc.task_counts import TaskCounts


class Request(NamedTuple):
    """What to read. `uses`: also the use of rlimits that do not concern threads. `is_opskit`: the process is opskit itself.

    `traces`: its seccomp filters may be read, for which it is attached to by ptrace(2).
    """

    process: Process
    uses: bool = False
    is_opskit: bool = False
    traces: bool = True


class Ancestor(NamedTuple):
    """An ancestor of the process, and its rlimits."""

    pid: int
    command: str
    limits: dict[str, Rlimit]


class LimitSources(NamedTuple):
    """The files that may have set a limit: limits.conf, systemd units, sysctl.d.

    `unit` is the process's systemd unit; `unit_settings` are those of every unit on its cgroups' paths, `manager` the
    defaults of system.conf. `of_user_manager`: a user's own systemd runs the unit, which a PAM session started.
    """

    user: str
    pam: PamLimits
    unit: str | None
    unit_settings: dict[str, dict[str, Setting]]
    manager: dict[str, Setting]
    sysctl: dict[str, Setting]
    of_user_manager: bool = False

    @property
    def in_service(self) -> bool:
        """Whether systemd started the process as a service, which does not read limits.conf."""
        unit = self.unit or ""
        return unit.endswith(".service") and not unit.startswith("user@") and not self.of_user_manager


class ThreadLimitFacts(NamedTuple):
    """What was read, `at_s` seconds after the first sample. None: it could not be; `unreadable` says why, by file name.

    `locks_new`: new mappings are locked. `namespace_owner` is the uid that made its user namespace. `clone3` is what its seccomp filters answer to
    the start of a thread ("allowed", or an error's name). `shows_all_pids`: the tree is of the initial pid namespace.
    `user_threads` are those that RLIMIT_NPROC counts; None where the uid is not mapped into our user namespace.
    `ancestors` go from the parent up. `sysctl` has numbers of /proc/sys by name. `advice` says how to be allowed to read
    what was denied. `thread_names`: how many of its threads have a name of each pattern. `fillers`: who fills the nearly full
    limits. `open_kinds`: its open files by kind, and `raise_files`: the command for more, where they are nearly used up. `cpu_s` and `farthest_write_bytes` are read on request only.
    """

    ask: Request
    at_s: float
    page_bytes: int
    status: Status
    limits: dict[str, Rlimit]
    space: AddressSpace | None
    locks_new: bool | None
    program: Program
    user_namespace: bytes | None
    reader_user_namespace: bytes | None
    namespace_owner: int | None
    clone3: str | None
    shows_all_pids: bool | None
    tasks: TaskCounts
    user_threads: int | None
    pids: CgroupLimits
    memory: CgroupLimits
    memberships: tuple[Membership, ...]
    ancestors: tuple[Ancestor, ...]
    meminfo: dict[str, int]
    sysctl: dict[str, int]
    total_tasks: int | None
    last_pid: int | None
    open_files: int | None
    online_cpus: int | None
    release: tuple[int, int] | None
    unreadable: dict[str, str]
    advice: str | None
    sources: LimitSources
    thread_names: Mapping[str, int] = {}
    fillers: tuple[Filler, ...] = ()
    open_kinds: Mapping[str, int] = {}
    raise_files: str | None = None
    cpu_s: float | None = None
    farthest_write_bytes: int | None = None

    @property
    def pid(self) -> int:
        """The process's id."""
        return self.ask.process.pid

    def soft(self, name: str) -> float | None:
        """The soft limit of this name; None where it is unknown."""
        return self.limits[name].soft if name in self.limits else None
